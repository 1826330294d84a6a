"""Operators that only look at a value in another way; a copy is made where strides can't express it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.views import Dims, View, Want


@lowers("Identity")
def lower_identity(build: PlanBuilder, node: ir.Node) -> None:
    """The value itself."""
    build.alias(node, build.either(graph.required(node, 0)))


@lowers("Dropout")
def lower_dropout(build: PlanBuilder, node: ir.Node) -> None:
    """In inference the value itself, and a mask that keeps all."""
    training_value = graph.operand(node, 2)
    training = graph.constant_of(training_value)
    if training_value is not None and (training is None or training.any()):
        raise NotLowerableError("training mode")
    view = build.either(graph.required(node, 0))
    build.alias(node, view)
    for mask in node.outputs[1:]:
        if mask.uses() or mask.is_graph_output():
            kept = build.new(mask, Want(view.dims, "bool"))
            build.bind(mask, kept)
            build.emit("fill", [], [kept], {"bits_low": 1})


@lowers("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def lower_reshape(build: PlanBuilder, node: ir.Node) -> None:
    """All of them by the dims of the result."""
    view = build.either(graph.required(node, 0))
    dims = graph.dims_of(node.outputs[0])
    if node.op_type in ("Squeeze", "Unsqueeze"):
        build.alias(node, _with_axes(node, view, dims))
        return
    build.fuse([node])
    build.bind(node.outputs[0], build.reshape_for(node.outputs[0], view, dims))


def _with_axes(node: ir.Node, view: View, dims: Dims) -> View:
    """Squeeze and Unsqueeze, which never need a copy."""
    if node.op_type == "Squeeze":
        axes = graph.constant_ints(graph.operand(node, 1))
        chosen = [a for a, d in enumerate(view.dims) if d == 1] if axes is None else axes
        return view.without_axes([graph.normalised_axis(axis, view.rank) for axis in chosen])
    axes = graph.constant_ints(graph.operand(node, 1))
    if axes is None:
        raise NotLowerableError("its axes are not constant")
    for axis in sorted(graph.normalised_axis(axis, len(dims)) for axis in axes):
        view = view.with_axis(axis)
    return view


@lowers("Transpose")
def lower_transpose(build: PlanBuilder, node: ir.Node) -> None:
    """A permutation of strides."""
    view = build.either(graph.required(node, 0))
    build.alias(node, view.permuted(graph.attribute(node, "perm", tuple(reversed(range(view.rank))))))


@lowers("Expand")
def lower_expand(build: PlanBuilder, node: ir.Node) -> None:
    """Strides of zero."""
    build.alias(node, build.either(graph.required(node, 0)).expanded(graph.dims_of(node.outputs[0])))


@lowers("Split")
def lower_split(build: PlanBuilder, node: ir.Node) -> None:
    """One slice an output."""
    view = build.either(graph.required(node, 0))
    axis = graph.normalised_axis(int(graph.attribute(node, "axis", 0)), view.rank)
    build.fuse([node])
    start = 0
    for output in node.outputs:
        size = graph.dims_of(output)[axis]
        build.bind(output, view.sliced(axis, start, size))
        start += size


@lowers("Slice")
def lower_slice(build: PlanBuilder, node: ir.Node) -> None:
    """Constant bounds; negative steps run backwards."""
    view = build.either(graph.required(node, 0))
    bounds = [graph.constant_ints(graph.operand(node, index)) for index in (1, 2)]
    axes, steps = (graph.constant_ints(graph.operand(node, index)) for index in (3, 4))
    starts, ends = bounds
    if (
        starts is None
        or ends is None
        or any(given is None and graph.operand(node, index) is not None for index, given in ((3, axes), (4, steps)))
    ):
        raise NotLowerableError("its bounds are not constant")
    dims = graph.dims_of(node.outputs[0])
    for axis, start, end, step in zip(axes or range(view.rank), starts, ends, steps or [1] * len(starts), strict=False):
        number = graph.normalised_axis(axis, view.rank)
        first, _, _ = slice(start, end, step).indices(view.dims[number])
        view = view.sliced(number, first, dims[number], step)
    build.alias(node, view)


@lowers("DepthToSpace", "SpaceToDepth")
def lower_depth_space(build: PlanBuilder, node: ir.Node) -> None:
    """A reshape to six dims, a transpose and a reshape back."""
    view = build.either(graph.required(node, 0))
    size = int(graph.attribute(node, "blocksize"))
    n, c, h, w = view.dims
    columns_first = graph.attribute(node, "mode", "DCR") == "CRD"
    if node.op_type == "SpaceToDepth":
        split = (n, c, h // size, size, w // size, size)
        permutation = (0, 1, 3, 5, 2, 4) if columns_first else (0, 3, 5, 1, 2, 4)
    elif not columns_first:
        split, permutation = (n, size, size, c // size**2, h, w), (0, 3, 4, 1, 5, 2)
    else:
        split, permutation = (n, c // size**2, size, size, h, w), (0, 1, 4, 2, 5, 3)
    build.fuse([node])
    spread = build.reshaped(view, split).permuted(permutation)
    build.bind(node.outputs[0], build.reshape_for(node.outputs[0], spread, graph.dims_of(node.outputs[0])))


@lowers("Tile")
def lower_tile(build: PlanBuilder, node: ir.Node) -> None:
    """Repeats by strides of zero, one axis after the other; a copy joins the repeats of an axis longer than 1."""
    view = build.either(graph.required(node, 0))
    repeats = graph.constant_ints(graph.operand(node, 1))
    if repeats is None:
        raise NotLowerableError("its repeats are not constant")
    build.fuse([node])
    repeated = [axis for axis, repeat in enumerate(repeats) if repeat > 1]
    for axis in repeated:
        spread = view.with_axis(axis)
        spread = spread.expanded((*view.dims[:axis], repeats[axis], *view.dims[axis:]))
        dims = (*view.dims[:axis], repeats[axis] * view.dims[axis], *view.dims[axis + 1 :])
        last = axis == repeated[-1]
        view = build.reshape_for(node.outputs[0], spread, dims) if last else build.reshaped(spread, dims)
    build.bind(node.outputs[0], view)


@lowers("Shape", "Size", "ConstantOfShape", "Range", "Constant")
def lower_shape(build: PlanBuilder, node: ir.Node) -> None:
    """What static shapes make constant."""
    if graph.is_op(node, "Constant"):
        build.fuse([node])
        return
    array = _shape_arithmetic(node)
    build.fuse([node])
    build.bind(node.outputs[0], build.constant(array, node.outputs[0].name or ""))


def _shape_arithmetic(node: ir.Node) -> graph.Array:
    if node.op_type in ("Shape", "Size"):
        dims = np.asarray(graph.dims_of(graph.required(node, 0)), np.int64)
        if node.op_type == "Size":
            return np.asarray(dims.prod(), np.int64)
        return dims[int(graph.attribute(node, "start", 0)) : graph.attribute(node, "end", None)]
    operands = [graph.constant_of(value) for value in node.inputs]
    if any(array is None for array in operands):
        raise NotLowerableError("its operands are not constant")
    if node.op_type == "Range":
        start, limit, delta = (array.reshape(())[()] for array in operands if array is not None)
        return np.asarray(np.arange(start.item(), limit.item(), delta.item()), start.dtype)
    fill = node.attributes.get("value")
    value = np.zeros(1, np.float32) if fill is None else fill.value.numpy()
    return np.full(graph.constant_ints(node.inputs[0]) or (), value.reshape(-1)[0], value.dtype)
