"""Where new values go. A value that ends in a concatenation, or is an output of the graph, is written there at once.

The way from the value to that place may lead through quantizers that change nothing and through reshapes, transposes
and splits, which are undone on the place's view.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.registry import NotLowerableError
from edgekit.converters.lowering.views import Dims, Quant, Storage, View, Want, dense_view

_RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout")
_FEW_CHANNELS = 4  # of a result: vectors along them would be mostly empty
_DEPTH = 12  # nodes between a value and its place
_LAYOUT_FREE = (
    "QuantizeLinear", "DequantizeLinear", "Add", "Sub", "Mul", "Div", "Max", "Min", "Relu", "Clip", "LeakyRelu",
    "PRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Concat", "Split", "Pad", "Cast", "Identity",
    "edgekit.Silu", "Gelu",
)  # fmt: skip
_IMAGE_OPS = (
    "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Resize",
    "BatchNormalization",
)  # fmt: skip


def is_channel_sum(node: ir.Node) -> bool:
    """Whether a node is a float convolution that gives a few weighted sums of channels, and nothing else.

    Where the channels of its operand are planes, that is a product of matrices whose columns are pixels.
    """
    weight, bias = graph.operand(node, 1), graph.constant_of(graph.operand(node, 2))
    floats = graph.constant_of(weight)
    if not graph.is_op(node, "Conv") or floats is None or floats.dtype != np.float32:
        return False
    if graph.quantized_constant(weight) is not None or (graph.operand(node, 2) is not None and bias is None):
        return False
    plain = graph.attribute(node, "group", 1) == 1 and (bias is None or not bias.any())
    plain = plain and not any(graph.attribute(node, "pads", ())) and set(graph.attribute(node, "strides", ())) <= {1}
    return plain and max(floats.shape[2:]) == 1 and len(floats) <= _FEW_CHANNELS


def prefers_channels_last(value: ir.Value) -> bool:
    """Whether a value of rank 3 or more reaches an operator on images through operators that don't care for layout."""
    rank = None if value.shape is None else len(value.shape)
    seen, pending = {value}, [value]
    while pending:
        current = pending.pop()
        for node in graph.consumers(current):
            if graph.is_op(node, *_IMAGE_OPS) and node.inputs[0] is current and not is_channel_sum(node):
                return True
            if graph.is_op(node, *_LAYOUT_FREE):
                fresh = [o for o in node.outputs if o not in seen and o.shape is not None and len(o.shape) == rank]
                seen.update(fresh)
                pending += fresh
    return False


@dataclass
class _ConcatBuffer:
    """Memory of a concatenation: the whole, its slices, and which of them a producer writes."""

    whole: View
    slots: list[View]
    claimed: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class _Place:
    """A place and the slot or output that it takes up."""

    view: View
    taken: tuple[object, ...]


class Placement:
    """Finds places in concatenations and outputs."""

    def __init__(self, source: ir.Graph, outputs: list[View], activation_dtype: str) -> None:
        self._output_slots: dict[ir.Value, int] = {}
        for slot, value in enumerate(source.outputs):
            self._output_slots.setdefault(value, slot)
        self._outputs = outputs
        self._activation_dtype = activation_dtype
        self._concats: dict[ir.Node, _ConcatBuffer] = {}
        self._taken: set[object] = set()

    def find(self, value: ir.Value, want: Want) -> View | None:
        """A view of the wanted dims inside a concatenation or an output; None where there is none."""
        place = self._find(value, want, _DEPTH)
        return None if place is None else place.view

    def claim(self, value: ir.Value, want: Want) -> None:
        """Takes the place that find() gives, so that nobody else gets it."""
        place = self._find(value, want, _DEPTH)
        if place is not None:
            self._taken.update(place.taken)

    def concat_slots(self, node: ir.Node, order: Dims | None) -> tuple[View, list[View]]:
        """The whole and the slices of a concatenation, made with that order of axes if it isn't there yet."""
        buffer = self._concat(node, order)
        return buffer.whole, buffer.slots

    def concat_quant(self, node: ir.Node) -> Quant | None:
        """Quantization in which a concatenation is stored; None: in the dtype of the model."""
        quantizer = graph.sole_consumer(node.outputs[0])
        if quantizer is not None and graph.is_op(quantizer, "QuantizeLinear"):
            return graph.quant_parameters(quantizer, self._activation_dtype)
        quants = {self._dequantized_from(value) for value in node.inputs}
        return quants.pop() if len(quants) == 1 else None

    def _dequantized_from(self, value: ir.Value | None) -> Quant | None:
        producer = None if value is None else value.producer()
        if producer is None or not graph.is_op(producer, "DequantizeLinear") or graph.constant_of(value) is not None:
            return None
        return graph.quant_parameters(producer, self._activation_dtype)

    def _find(self, value: ir.Value, want: Want, depth: int) -> _Place | None:
        if depth == 0:
            return None
        slot = self._output_slots.get(value)
        if slot is not None and want.quant is None and ("output", slot) not in self._taken:
            view = self._outputs[slot]
            return _Place(view, (("output", slot),)) if view.dtype == want.dtype and view.dims == want.dims else None
        for use in value.uses():
            try:
                place = self._through(use.node, use.idx, want, depth - 1)
            except NotLowerableError:
                place = None
            if place is not None and place.view.dims == want.dims:
                return place
        return None

    def _through(self, node: ir.Node, index: int, want: Want, depth: int) -> _Place | None:
        if graph.is_op(node, "QuantizeLinear", "DequantizeLinear"):
            same = want.quant is not None and graph.quant_parameters(node, self._activation_dtype) == want.quant
            return self._find(node.outputs[0], want, depth) if same and index == 0 else None
        if graph.is_op(node, "Concat"):
            return self._in_concat(node, index, want)
        if graph.is_op(node, *_RESHAPES) and index == 0:
            return self._through_reshape(node, want, depth)
        if graph.is_op(node, "Transpose"):
            return self._through_transpose(node, want, depth)
        if graph.is_op(node, "Split") and index == 0:
            return self._through_split(node, want, depth)
        return None

    def _through_reshape(self, node: ir.Node, want: Want, depth: int) -> _Place | None:
        dims = graph.dims_of(node.outputs[0])
        forward = dense_view(Storage("arena", want.dtype, 0), want.dims, want.order).reshaped(dims)
        if forward is None:
            return None
        place = self._find(node.outputs[0], replace(want, dims=dims, order=forward.order()), depth)
        back = None if place is None else place.view.reshaped(want.dims)
        return None if place is None or back is None else _Place(back, place.taken)

    def _through_transpose(self, node: ir.Node, want: Want, depth: int) -> _Place | None:
        rank = len(want.dims)
        permutation = graph.attribute(node, "perm", tuple(reversed(range(rank))))
        forward = dense_view(Storage("arena", want.dtype, 0), want.dims, want.order).permuted(permutation)
        place = self._find(node.outputs[0], replace(want, dims=forward.dims, order=forward.order()), depth)
        if place is None:
            return None
        inverse = tuple(int(axis) for axis in np.argsort(permutation))
        return _Place(place.view.permuted(inverse), place.taken)

    def _through_split(self, node: ir.Node, want: Want, depth: int) -> _Place | None:
        """A value whose parts, all of them, are neighbours in one concatenation."""
        axis = graph.normalised_axis(int(graph.attribute(node, "axis", 0)), len(want.dims))
        places = [self._part_place(output, want, axis, depth) for output in node.outputs]
        if any(place is None for place in places):
            return None
        views = [place.view for place in places if place is not None]
        first = views[0]
        start = first.offset
        for view in views:
            if view.storage is not first.storage or view.strides != first.strides or view.offset != start:
                return None
            start += view.dims[axis] * view.strides[axis]
        whole = first.sliced(axis, 0, want.dims[axis])
        return _Place(whole, tuple(taken for place in places if place is not None for taken in place.taken))

    def _part_place(self, output: ir.Value, want: Want, axis: int, depth: int) -> _Place | None:
        dims = graph.dims_of(output)
        return self._find(output, replace(want, dims=dims), depth) if dims[axis] else None

    def _in_concat(self, node: ir.Node, index: int, want: Want) -> _Place | None:
        if self.concat_quant(node) != want.quant or (node, index) in self._taken:
            return None
        if want.quant is None and graph.program_dtype_of(node.outputs[0]) != want.dtype:
            return None
        view = self._concat(node, want.order).slots[index]
        return _Place(view, ((node, index),))

    def _concat(self, node: ir.Node, order: Dims | None) -> _ConcatBuffer:
        buffer = self._concats.get(node)
        if buffer is None:
            buffer = self._concats[node] = self._new_concat(node, order)
        return buffer

    def _new_concat(self, node: ir.Node, order: Dims | None) -> _ConcatBuffer:
        output = node.outputs[0]
        dims, quant = graph.dims_of(output), self.concat_quant(node)
        dtype = graph.program_dtype_of(output) if quant is None else self._activation_dtype
        want = Want(dims, dtype, order, quant)
        place = self._find(output, want, _DEPTH)
        if place is None:
            elements = int(np.prod(dims, dtype=np.int64))
            whole = dense_view(Storage("arena", dtype, elements, output.name or ""), dims, order, quant)
        else:
            self._taken.update(place.taken)
            whole = place.view
        axis = graph.normalised_axis(int(graph.attribute(node, "axis")), len(dims))
        slots, start = [], 0
        for index in range(len(node.inputs)):
            size = graph.dims_of(graph.required(node, index))[axis]
            slots.append(whole.sliced(axis, start, size))
            start += size
        return _ConcatBuffer(whole, slots)
