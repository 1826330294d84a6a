"""Reductions over axes, arg reductions and top-k."""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.quantized_tail import scale_ratio
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.views import Quant, View, Want
from edgekit.package.program_schema import program_schema

_KINDS = {
    "ReduceMean": "mean", "ReduceMax": "max", "ReduceMin": "min", "ReduceSum": "sum", "ReduceProd": "prod",
    "ReduceL1": "l1", "ReduceL2": "l2", "ReduceSumSquare": "sum_square", "ReduceLogSum": "log_sum",
    "ReduceLogSumExp": "log_sum_exp",
}  # fmt: skip
_INTEGER_KINDS = frozenset(("max", "min", "sum", "prod", "mean"))


@lowers(*_KINDS)
def lower_reduce(build: PlanBuilder, node: ir.Node) -> None:
    """Axes given by a constant input, or all."""
    rank = len(graph.dims_of(graph.required(node, 0)))
    axes_value = graph.operand(node, 1)
    axes = graph.constant_ints(axes_value)
    if axes is None and axes_value is not None:
        raise NotLowerableError("its axes are not constant")
    if not axes and int(graph.attribute(node, "noop_with_empty_axes", 0)):
        if node.op_type not in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd"):
            raise NotLowerableError("no axes")
        build.alias(node, build.either(graph.required(node, 0)))
        return
    chosen = [graph.normalised_axis(axis, rank) for axis in axes] if axes else list(range(rank))
    lower_reduction(build, node, _KINDS[node.op_type], chosen)


def lower_reduction(build: PlanBuilder, node: ir.Node, kind: str, axes: list[int]) -> None:
    """Emits a reduction; where `keepdims` is 0 the axes are dropped by a view.

    Args:
        build: State of the lowering.
        node: Source node; its first input is reduced.
        kind: Name in enums.reduce_kind.
        axes: To reduce, not negative.
    """
    source, output = graph.required(node, 0), node.outputs[0]
    view, quantizer, quant = build.quantized(source), None, None
    if view is not None and kind == "mean":
        quantizer = graph.sole_consumer(output)
        is_quantized = graph.is_op(quantizer, "QuantizeLinear")
        quant = graph.quant_parameters(quantizer, build.packing.act) if is_quantized else None  # type: ignore[arg-type]
    elif view is not None and kind in ("max", "min"):
        quant = view.quant
    if view is None or quant is None:
        view, quantizer = build.raw(source), None
    if view.dtype not in ("f32", "i32", "i64", build.packing.act) or (view.dtype == build.packing.act and not quant):
        raise NotLowerableError(f"{node.op_type} of {view.dtype}")
    if view.dtype in ("i32", "i64") and kind not in _INTEGER_KINDS:
        raise NotLowerableError(f"{node.op_type} of {view.dtype}")
    if view.rank == 0:
        view = view.with_axis(0)
        axes = [0]
    build.fuse([node] if quantizer is None else [node, quantizer])
    target = output if quantizer is None else quantizer.outputs[0]
    _emit_reduce(build, view, target, quant, (kind, axes))


def _emit_reduce(
    build: PlanBuilder, view: View, target: ir.Value, quant: Quant | None, what: tuple[str, list[int]]
) -> None:
    kind, axes = what
    kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(view.dims))
    dims = graph.dims_of(target)
    words: dict[str, int | float] = {"kind": program_schema().enums["reduce_kind"][kind]}
    words["axes_mask"] = sum(1 << axis for axis in set(axes))
    if quant is not None and view.quant is not None and kind == "mean":
        words |= {"x_zero": view.quant.zero, "y_zero": quant.zero, "ratio": scale_ratio(view.quant.scale, quant.scale)}
    result, image = build.new_seen_as(target, Want(dims, view.dtype, None, quant), kept)
    build.emit("reduce", [view], [image], words)
    build.bind(target, result)


@lowers("ArgMax", "ArgMin")
def lower_arg_reduce(build: PlanBuilder, node: ir.Node) -> None:
    """On floats, integers and quantized values alike."""
    view = build.either(graph.required(node, 0))
    if view.dtype == "bool" or (view.dtype in ("u8", "s8") and view.quant is None):
        raise NotLowerableError(f"{node.op_type} of {view.dtype}")
    axis = graph.normalised_axis(int(graph.attribute(node, "axis", 0)), view.rank)
    kept = (*view.dims[:axis], 1, *view.dims[axis + 1 :])
    build.fuse([node])
    output = node.outputs[0]
    result, image = build.new_seen_as(output, Want(graph.dims_of(output), "i64"), kept)
    words = {
        "axis": axis,
        "least": int(node.op_type == "ArgMin"),
        "select_last": int(graph.attribute(node, "select_last_index", 0)),
    }
    build.emit("arg_reduce", [view], [image], words)
    build.bind(output, result)


@lowers("TopK")
def lower_top_k(build: PlanBuilder, node: ir.Node) -> None:
    """A constant k; results come sorted whether asked for or not."""
    count = graph.constant_ints(graph.operand(node, 1))
    if count is None:
        raise NotLowerableError("k is not constant")
    view = build.raw(graph.required(node, 0))
    if view.dtype not in ("f32", "i32", "i64"):
        raise NotLowerableError(f"TopK of {view.dtype}")
    axis = graph.normalised_axis(int(graph.attribute(node, "axis", -1)), view.rank)
    dims = (*view.dims[:axis], count[0], *view.dims[axis + 1 :])
    build.fuse([node])
    values, indices = node.outputs
    results = [build.new(values, Want(dims, view.dtype)), build.new(indices, Want(dims, "i64"))]
    words = {"axis": axis, "k": count[0], "largest": int(graph.attribute(node, "largest", 1))}
    build.emit("top_k", [view], results, words)
    build.bind(values, results[0])
    build.bind(indices, results[1])
