"""Cast, CastLike, Where and Gather."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.views import Dims, View, Want


@lowers("Cast", "CastLike")
def lower_cast(build: PlanBuilder, node: ir.Node) -> None:
    """As C converts; floats to integers truncate and saturate."""
    source, output = graph.required(node, 0), node.outputs[0]
    before, after = graph.program_dtype_of(source), graph.program_dtype_of(output)
    if before == after:
        build.alias(node, build.either(source))
        return
    view = build.raw(source)
    build.fuse([node])
    result = build.new(output, Want(view.dims, after, view.order()))
    build.bind(output, result)
    build.emit("convert", [view], [result])


@lowers("Where")
def lower_where(build: PlanBuilder, node: ir.Node) -> None:
    """With broadcasting of all three operands."""
    views = [build.raw(graph.required(node, index)) for index in range(3)]
    if views[1].dtype != views[2].dtype:
        raise NotLowerableError("Where of mixed dtypes")
    dims = graph.dims_of(node.outputs[0])
    build.fuse([node])
    operands: list[View | None] = [view.expanded(dims) for view in views]
    widest = max(views, key=lambda view: view.elements)
    result = build.new(node.outputs[0], Want(dims, views[1].dtype, widest.expanded(dims).order()))
    build.bind(node.outputs[0], result)
    build.emit("where", operands, [result])


@lowers("Gather")
def lower_gather(build: PlanBuilder, node: ir.Node) -> None:
    """Constant indices in arithmetic progression are a slice; others are looked up."""
    view, indices = build.either(graph.required(node, 0)), graph.required(node, 1)
    axis = graph.normalised_axis(int(graph.attribute(node, "axis", 0)), view.rank)
    constant = graph.constant_of(indices)
    size = view.dims[axis]
    if constant is not None:
        constant = np.where(constant < 0, constant + size, constant)
        if constant.size and (constant.min() < 0 or constant.max() >= size):
            raise NotLowerableError("an index is out of range")
        sliced = _as_slice(view, axis, constant)
        if sliced is not None:
            build.alias(node, sliced)
            return
    looked_up = build.raw(indices) if constant is None else build.constant(np.atleast_1d(constant).astype(np.int32))
    dims = graph.dims_of(indices)
    build.fuse([node])
    _emit_gather(build, node, (view, looked_up, axis), dims)


def _as_slice(view: View, axis: int, indices: graph.Array) -> View | None:
    if indices.ndim == 0:
        return view.selected(axis, int(indices))
    if indices.ndim != 1 or indices.size == 0:
        return None
    steps = np.unique(np.diff(indices))
    if len(steps) > 1 or (len(steps) == 1 and steps[0] == 0):
        return None
    return view.sliced(axis, int(indices[0]), indices.size, int(steps[0]) if len(steps) else 1)


def _emit_gather(build: PlanBuilder, node: ir.Node, operands: tuple[View, View, int], index_dims: Dims) -> None:
    view, indices, axis = operands
    output = node.outputs[0]
    dims = (*view.dims[:axis], *index_dims, *view.dims[axis + 1 :])
    result = build.new(output, Want(dims, view.dtype, None, view.quant))
    build.bind(output, result)
    flat = indices.with_axis(0) if indices.rank == 0 else indices
    words = {"axis": axis, "drop_index_axis": int(not index_dims)}
    build.emit("gather", [view, flat], [result if result.rank else result.with_axis(0)], words)
