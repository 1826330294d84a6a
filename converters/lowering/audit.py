"""The coverage audit: what became of every node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import onnx_ir as ir

from edgekit.converters.contracts import LayerAudit, LayerPlan, Precision
from edgekit.converters.lowering.builder import LoweredOp, PlanBuilder
from edgekit.converters.lowering.emission import live_ops, source_name
from edgekit.converters.lowering.graph import is_op

_QUANTIZED_OPCODES = frozenset(("conv_q8", "conv_q8_winograd", "depthwise_q8", "binary_q8", "lut_q8"))
_ARITHMETIC_OPCODES = frozenset(("pool", "reduce", "resize_linear"))
_MOVING_OPCODES = frozenset(("copy", "fill", "gather", "resize_nearest", "convert", "where", "arg_reduce", "top_k"))
_QUANTIZERS = ("QuantizeLinear", "DequantizeLinear")


def _precision(op: LoweredOp) -> Precision:
    result = op.outputs[0]
    if op.opcode in _QUANTIZED_OPCODES:
        return "int8"
    has_table = op.opcode == "convert" and len(op.inputs) > 1
    if op.opcode in _MOVING_OPCODES and not has_table:
        return "int"
    if op.opcode in _ARITHMETIC_OPCODES and result is not None and result.quant is not None:
        return "int8"
    return "fp32" if result is not None and result.dtype == "f32" else "int"


def native_rows(build: PlanBuilder, plan: Mapping[str, LayerPlan]) -> list[LayerAudit]:
    """One row for every node of a native part, or group of fused ones; conversions between dtypes have none."""
    groups: dict[tuple[ir.Node, ...], list[LoweredOp]] = {}
    for op in live_ops(build):
        groups.setdefault(op.nodes, []).append(op)
    rows = [_native_row(build, nodes, ops, plan) for nodes, ops in groups.items() if _is_layer(nodes)]
    covered = {node for nodes in groups for node in nodes}
    for node in build.source:
        if node not in covered and not is_op(node, *_QUANTIZERS, "Constant"):
            rows.append(LayerAudit(node.name or node.op_type, "view", 0, "int", "int"))
    return rows


def _is_layer(nodes: Iterable[ir.Node]) -> bool:
    return any(not is_op(node, *_QUANTIZERS) for node in nodes)


def _native_row(
    build: PlanBuilder, nodes: tuple[ir.Node, ...], ops: list[LoweredOp], plan: Mapping[str, LayerPlan]
) -> LayerAudit:
    main = max(ops, key=lambda op: op.macs)
    precisions = {_precision(op) for op in ops}
    actual = _strongest(precisions, ("fp32", "int8"), "int")
    planned = _planned(nodes, plan, actual)
    notes = [build.notes[node] for node in nodes if node in build.notes]
    reasons = notes if planned != actual else []
    if not reasons and actual == "fp32":
        reasons = [layer.reason for layer in _layers(nodes, plan) if layer.reason]
    macs = sum(op.macs for op in ops)
    return LayerAudit(
        source_name(nodes), main.opcode, macs, planned, actual, "native", "; ".join(dict.fromkeys(reasons))
    )


def _layers(nodes: Iterable[ir.Node], plan: Mapping[str, LayerPlan]) -> list[LayerPlan]:
    return [plan[node.name] for node in nodes if node.name is not None and node.name in plan]


def _planned(nodes: Iterable[ir.Node], plan: Mapping[str, LayerPlan], actual: Precision) -> Precision:
    planned = [layer.planned for layer in _layers(nodes, plan)]
    return _strongest(planned, ("int8", "fp32"), actual)


def _strongest(found: Collection[Precision], ranking: tuple[Precision, ...], default: Precision) -> Precision:
    return next((precision for precision in ranking if precision in found), default)


def foreign_rows(
    nodes: Iterable[ir.Node], reasons: Mapping[str, str], plan: Mapping[str, LayerPlan]
) -> list[LayerAudit]:
    """One row for every node that ONNX Runtime runs."""
    rows = []
    for node in nodes:
        if not is_op(node, *_QUANTIZERS, "Constant"):
            name = node.name or node.op_type
            reason = reasons.get(name, "")
            rows.append(
                LayerAudit(name, node.op_type, 0, _planned([node], plan, "fp32"), "fp32", "onnxruntime", reason)
            )
    return rows
