"""Splits and activations go in front of the concatenations that they read.

A detector joins boxes and scores of each scale, then all scales, and takes boxes and scores apart again. Regrouped,

    Split(Concat(a, b)) = a, b            Split(Concat(Concat(a, b), Concat(c, d))) = Concat(a, c), Concat(b, d)
    f(Concat(a, b)) = Concat(f(a), f(b))

each part is written once, where and how its own readers want it, and an activation meets the integers it may be a table
of. Splits pass Reshapes that leave their axis alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.registry import NotLowerableError
from edgekit.converters.lowering.tables import TableRegions, is_function
from edgekit.converters.lowering.views import Dims

_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Identity")


def regroup(source: ir.Graph) -> None:
    """Rewrites a graph of named nodes in place; what nothing reads any more stays in it."""
    regions = TableRegions(source)  # these are tables already
    for node in list(source):
        try:
            if graph.is_op(node, "Split"):
                _regroup_split(source, node)
            elif is_function(node) and regions.holding(node) is None:
                _regroup_function(source, node)
        except NotLowerableError:  # a shape that is not static
            continue


def _maker(value: ir.Value, *op_types: str) -> ir.Node | None:
    """The node of those kinds that gives a value which nothing else reads."""
    producer = value.producer()
    return producer if graph.sole_consumer(value) is not None and graph.is_op(producer, *op_types) else None


def _axis(node: ir.Node) -> int:
    return graph.normalised_axis(int(graph.attribute(node, "axis", 0)), len(graph.dims_of(graph.required(node, 0))))


def _operands(concat: ir.Node) -> list[ir.Value]:
    return [graph.required(concat, index) for index in range(len(concat.inputs))]


def _regroup_split(source: ir.Graph, split: ir.Node) -> None:
    value, axis = graph.required(split, 0), _axis(split)
    sizes = [graph.dims_of(output)[axis] for output in split.outputs]
    if any(output.is_graph_output() for output in split.outputs) or not _comes_apart(value, axis, sizes):
        return
    for index, output in enumerate(split.outputs):
        part = _Writer(source, split, f"part{index}").part(value, axis, index)
        output.replace_all_uses_with(part)


def _comes_apart(value: ir.Value, axis: int, sizes: Sequence[int]) -> bool:
    """Whether a value is made of parts of those sizes along an axis."""
    concat, reshape = _maker(value, "Concat"), _maker(value, "Reshape")
    if concat is not None:
        if _axis(concat) == axis:
            return [graph.dims_of(operand)[axis] for operand in _operands(concat)] == list(sizes)
        return all(_comes_apart(operand, axis, sizes) for operand in _operands(concat))
    if reshape is None:
        return False
    before = graph.required(reshape, 0)
    keeps_axis = graph.dims_of(before)[: axis + 1] == graph.dims_of(value)[: axis + 1]
    return keeps_axis and _comes_apart(before, axis, sizes)


def _regroup_function(source: ir.Graph, function: ir.Node) -> None:
    """Only where every operand of the concatenation is quantized: a table costs less than an activation of all."""
    value, output = graph.required(function, 0), function.outputs[0]
    concat = _maker(value, "Concat")
    if concat is None or output.is_graph_output() or not all(_is_dequantized(v) for v in _operands(concat)):
        return
    output.replace_all_uses_with(_Writer(source, function, function.name or "").mapped(value, function))


def _is_dequantized(value: ir.Value) -> bool:
    """Whether a value is a view of integers, or a concatenation of such values that will be one of floats."""
    producer = value.producer()
    concat = _maker(value, "Concat")
    if concat is not None:
        return all(_is_dequantized(operand) for operand in _operands(concat))
    while graph.is_op(producer, *_VIEWS) and producer is not None:
        producer = graph.required(producer, 0).producer()
    return graph.constant_of(value) is None and graph.is_op(producer, "DequantizeLinear")


class _Writer:
    """Writes a value anew from parts of what it was made of. New nodes go before `place`, their names end in `tag`."""

    def __init__(self, source: ir.Graph, place: ir.Node, tag: str) -> None:
        self._source, self._place, self._tag = source, place, tag
        self._mapped_count = 0

    def part(self, value: ir.Value, axis: int, index: int) -> ir.Value:
        """One part of a value that comes apart."""
        maker = value.producer()
        assert maker is not None
        if graph.is_op(maker, "Reshape"):
            operand = self.part(graph.required(maker, 0), axis, index)
            dims = list(graph.dims_of(value))
            dims[axis] = graph.dims_of(operand)[axis]
            return self._reshape(maker, operand, tuple(dims))
        if _axis(maker) == axis:
            return graph.required(maker, index)
        return self._concat(maker, [self.part(operand, axis, index) for operand in _operands(maker)])

    def mapped(self, value: ir.Value, function: ir.Node) -> ir.Value:
        """A function of a value."""
        concat = _maker(value, "Concat")
        if concat is not None:
            return self._concat(concat, [self.mapped(operand, function) for operand in _operands(concat)])
        attributes = list(function.attributes.values())
        node = ir.Node(function.domain, function.op_type, [value, *function.inputs[1:]], attributes)
        self._mapped_count += 1
        return self._added(node, f"{function.name}:part{self._mapped_count - 1}", value, graph.dims_of(value))

    def _concat(self, old: ir.Node, operands: list[ir.Value]) -> ir.Value:
        axis = _axis(old)
        dims = list(graph.dims_of(operands[0]))
        dims[axis] = sum(graph.dims_of(operand)[axis] for operand in operands)
        node = ir.Node("", "Concat", operands, [ir.AttrInt64("axis", axis)])
        return self._added(node, f"{old.name}:{self._tag}", operands[0], tuple(dims))

    def _reshape(self, old: ir.Node, operand: ir.Value, dims: Dims) -> ir.Value:
        name = f"{old.name}:{self._tag}"
        shape = ir.Value(name=f"{name}:shape", const_value=ir.tensor(np.array(dims, np.int64)))
        self._source.register_initializer(shape)
        return self._added(ir.Node("", "Reshape", [operand, shape]), name, operand, dims)

    def _added(self, node: ir.Node, name: str, like: ir.Value, dims: Dims) -> ir.Value:
        node.name = name
        result = node.outputs[0]
        result.name, result.shape, result.type = name, ir.Shape(dims), like.type
        self._source.insert_before(self._place, node)
        return result
