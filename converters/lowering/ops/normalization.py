"""Normalisations: layer, RMS, instance and group norm, and what is left of batch norm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.views import Dims, View, Want
from edgekit.package.program_schema import program_schema


@dataclass(frozen=True)
class _Norm:
    """Attributes of layer_norm."""

    axes: int
    epsilon: float
    rms: bool = False


def _require_float(build: PlanBuilder, node: ir.Node) -> View:
    view = build.raw(graph.required(node, 0))
    if view.dtype != "f32":
        raise NotLowerableError(f"{node.op_type} of {view.dtype}")
    return view


def _require_unused(node: ir.Node, first: int) -> None:
    if any(output.uses() or output.is_graph_output() for output in node.outputs[first:]):
        raise NotLowerableError("its statistics are used")


def _emit_norm(build: PlanBuilder, view: View, y: View, norm: _Norm, scales: list[View | None]) -> None:
    """Emits layer_norm on a row-major view."""
    source = view if view.is_dense() else build.copied(view)
    words = {"axes": norm.axes, "epsilon": norm.epsilon, "rms": int(norm.rms)}
    operands = [source, *scales]
    while operands[-1] is None:
        operands.pop()
    build.emit("layer_norm", operands, [y], words)


def _scale_operand(build: PlanBuilder, value: ir.Value | None, dims: Dims) -> View | None:
    """Gamma or beta, dense and of the normalised dims."""
    if value is None:
        return None
    constant = graph.constant_of(value)
    if constant is not None:
        return build.constant(np.broadcast_to(constant, dims).astype(np.float32))
    view = build.raw(value).expanded(dims)
    return view if view.is_dense() else build.copied(view)


@lowers("LayerNormalization")
def lower_layer_norm(build: PlanBuilder, node: ir.Node) -> None:
    """Over all axes from `axis` on."""
    view = _require_float(build, node)
    axis = graph.normalised_axis(int(graph.attribute(node, "axis", -1)), view.rank)
    norm = _Norm(view.rank - axis, float(graph.attribute(node, "epsilon", 1e-5)))
    _lower_last_axes(build, node, view, norm)
    if any(output.uses() or output.is_graph_output() for output in node.outputs[1:]):
        _emit_statistics(build, node, view, norm)


def _emit_statistics(build: PlanBuilder, node: ir.Node, view: View, norm: _Norm) -> None:
    """Mean and 1 / sqrt(variance + epsilon), for whoever reads them."""
    enums = program_schema().enums
    first = view.rank - norm.axes
    kept = (*view.dims[:first], *(1,) * norm.axes)
    mean_of = {"kind": enums["reduce_kind"]["mean"], "axes_mask": sum(1 << axis for axis in range(first, view.rank))}
    results = [build.new(output, Want(kept, "f32")) for output in node.outputs[1:]]
    mean = results[0]
    build.emit("reduce", [view], [mean], mean_of)
    centred, squares = (build.temporary(Want(view.dims, "f32", view.order())) for _ in range(2))
    build.emit("binary", [view, mean.expanded(view.dims)], [centred], {"kind": enums["binary_kind"]["sub"]})
    build.emit("unary", [centred], [squares], {"act": enums["activation"]["square"]})
    variance, shifted, deviation = (build.temporary(Want(kept, "f32")) for _ in range(3))
    epsilon = build.constant(np.array([norm.epsilon], np.float32)).expanded(kept)
    build.emit("reduce", [squares], [variance], mean_of)
    build.emit("binary", [variance, epsilon], [shifted], {"kind": enums["binary_kind"]["add"]})
    build.emit("unary", [shifted], [deviation], {"act": enums["activation"]["sqrt"]})
    if len(results) > 1:
        build.emit("unary", [deviation], [results[1]], {"act": enums["activation"]["reciprocal"]})
    for output, result in zip(node.outputs[1:], results, strict=True):
        build.bind(output, result)


@lowers("RMSNormalization")
@lowers("RMSNormalization", domain="edgekit")
def lower_rms_norm(build: PlanBuilder, node: ir.Node) -> None:
    """Without a mean, over the last axes."""
    view = _require_float(build, node)
    axis = graph.normalised_axis(int(graph.attribute(node, "axis", -1)), view.rank)
    norm = _Norm(view.rank - axis, float(graph.attribute(node, "epsilon", 1e-5)), rms=True)
    _lower_last_axes(build, node, view, norm)


def _lower_last_axes(build: PlanBuilder, node: ir.Node, view: View, norm: _Norm) -> None:
    dims = view.dims[view.rank - norm.axes :]
    scales = [_scale_operand(build, graph.operand(node, index), dims) for index in (1, 2)]
    build.fuse([node])
    result = build.temporary(Want(view.dims, "f32"))
    placed = build.new(node.outputs[0], Want(view.dims, "f32", accept=View.is_dense))
    result = placed if placed.is_dense() else result
    _emit_norm(build, view, result, norm, scales)
    build.bind(node.outputs[0], result)


@lowers("InstanceNormalization", "GroupNormalization")
def lower_group_norm(build: PlanBuilder, node: ir.Node) -> None:
    """As a layer norm over each group of channels, then a scale and a shift a channel."""
    view = _require_float(build, node)
    channels = view.dims[1]
    groups = channels if node.op_type == "InstanceNormalization" else int(graph.attribute(node, "num_groups"))
    scale, shift = (build.raw(graph.required(node, index)) for index in (1, 2))
    if scale.elements != channels or shift.elements != channels:
        raise NotLowerableError("scale and bias are not given for each channel")
    build.fuse([node])
    grouped = build.reshaped(view, (view.dims[0], groups, view.elements // (view.dims[0] * groups)))
    normal = build.temporary(Want(grouped.dims, "f32"))
    _emit_norm(build, grouped, normal, _Norm(1, float(graph.attribute(node, "epsilon", 1e-5))), [])
    whole = normal.reshaped(view.dims)
    assert whole is not None
    _emit_scale_and_shift(build, node, whole, (scale, shift))


def _emit_scale_and_shift(build: PlanBuilder, node: ir.Node, view: View, parameters: tuple[View, View]) -> None:
    """Y = view * scale[c] + shift[c] over [N, C, ...]."""
    kinds = program_schema().enums["binary_kind"]
    spread = (1, view.dims[1], *(1,) * (view.rank - 2))
    scale, shift = ((parameter.reshaped(spread) or parameter).expanded(view.dims) for parameter in parameters)
    scaled = build.temporary(Want(view.dims, "f32", view.order()))
    result = build.new(node.outputs[0], Want(view.dims, "f32", view.order()))
    build.emit("binary", [view, scale], [scaled], {"kind": kinds["mul"]})
    build.emit("binary", [scaled, shift], [result], {"kind": kinds["add"]})
    build.bind(node.outputs[0], result)


@lowers("BatchNormalization")
def lower_batch_norm(build: PlanBuilder, node: ir.Node) -> None:
    """In inference, with constant statistics: a scale and a shift a channel."""
    _require_unused(node, 1)
    constants = [graph.constant_of(graph.operand(node, index)) for index in range(1, 5)]
    if int(graph.attribute(node, "training_mode", 0)) or any(array is None for array in constants):
        raise NotLowerableError("training mode or statistics that are not constant")
    gamma, beta, mean, variance = (array.astype(np.float64) for array in constants if array is not None)
    view = _require_float(build, node)
    factor = gamma / np.sqrt(variance + float(graph.attribute(node, "epsilon", 1e-5)))
    build.fuse([node])
    parameters = [build.constant(array.astype(np.float32)) for array in (factor, beta - mean * factor)]
    _emit_scale_and_shift(build, node, view, (parameters[0], parameters[1]))


@lowers("LpNormalization")
def lower_lp_norm(build: PlanBuilder, node: ir.Node) -> None:
    """A reduction and a division; a norm of zero gives zero, as ONNX says, by a divisor that is never below 1e-12."""
    view = _require_float(build, node)
    axis = graph.normalised_axis(int(graph.attribute(node, "axis", -1)), view.rank)
    schema = program_schema().enums
    kind = {1: "l1", 2: "l2"}.get(int(graph.attribute(node, "p", 2)))
    if kind is None:
        raise NotLowerableError(f"p is {graph.attribute(node, 'p')}")
    build.fuse([node])
    kept = (*view.dims[:axis], 1, *view.dims[axis + 1 :])
    norm, bounded = build.temporary(Want(kept, "f32")), build.temporary(Want(kept, "f32"))
    least = build.constant(np.array([1e-12], np.float32)).expanded(kept)
    build.emit("reduce", [view], [norm], {"kind": schema["reduce_kind"][kind], "axes_mask": 1 << axis})
    build.emit("binary", [norm, least], [bounded], {"kind": schema["binary_kind"]["max"]})
    result = build.new(node.outputs[0], Want(view.dims, "f32", view.order()))
    build.emit("binary", [view, bounded.expanded(view.dims)], [result], {"kind": schema["binary_kind"]["div"]})
    build.bind(node.outputs[0], result)
