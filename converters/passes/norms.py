"""Decomposed LayerNormalization and RMSNormalization over the last axis become one node."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from edgekit.converters.passes import edgekit_ops
from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import (
    add_constant,
    all_nodes,
    attribute,
    constant_of,
    constant_operand,
    dim_of,
    fused_name,
    input_at,
    is_op,
    live_nodes,
    only_consumer,
    producer,
    rank_of,
    replace_node,
    scalar_of,
)
from edgekit.converters.passes.scalar_chain import affine_step


def _over_last_axis(node: ir.Node | None) -> bool:
    if node is None or not is_op(node, "ReduceMean") or not attribute(node, "keepdims", 1):
        return False
    axes = constant_of(input_at(node, 1))
    listed = attribute(node, "axes", None) if axes is None else [int(a) for a in axes.reshape(-1)]
    rank = rank_of(node.inputs[0])
    return listed is not None and len(listed) == 1 and listed[0] in (-1, None if rank is None else rank - 1)


def _square_of(value: ir.Value | None) -> ir.Value | None:
    """Matches Pow(x, 2) or Mul(x, x); returns x."""
    node = producer(value, "Pow", "Mul")
    if node is None:
        return None
    if node.op_type == "Mul":
        return node.inputs[0] if node.inputs[0] is node.inputs[1] else None
    return node.inputs[0] if scalar_of(node.inputs[1]) == 2.0 else None


def _normalised(node: ir.Node) -> tuple[ir.Value, float] | None:
    """Matches x / sqrt(mean(x^2) + epsilon), also x * (1 / sqrt(...)); returns (x, epsilon)."""
    x, root = node.inputs
    if node.op_type == "Mul":
        pairs = [(a, producer(b, "Reciprocal", "Div")) for a, b in ((x, root), (root, x))]
        x, inverse = next(((a, b) for a, b in pairs if b is not None), (None, None))
        if inverse is None:
            return None
        if inverse.op_type == "Div" and scalar_of(inverse.inputs[0]) != 1.0:
            return None
        root = inverse.inputs[-1]
    square_root = producer(root, "Sqrt")
    shifted = affine_step(producer(square_root.inputs[0], "Add")) if square_root else None
    mean = producer(shifted.source, "ReduceMean") if shifted else None
    if x is None or shifted is None or mean is None or not _over_last_axis(mean):
        return None
    return (x, shifted.shift) if _square_of(mean.inputs[0]) is x else None


def _centred(value: ir.Value) -> ir.Value | None:
    """Matches x - mean(x) over the last axis; returns x."""
    node = producer(value, "Sub")
    mean = producer(node.inputs[1], "ReduceMean") if node else None
    if node is None or mean is None or not _over_last_axis(mean) or mean.inputs[0] is not node.inputs[0]:
        return None
    return node.inputs[0]


def _vector_after(node: ir.Node, op_type: str, width: int) -> tuple[ir.Node, np.ndarray] | None:
    """Matches a Mul or Add by a constant of the last axis right after a node."""
    following = only_consumer(node.outputs[0])
    split = constant_operand(following) if following is not None and is_op(following, op_type) else None
    if following is None or split is None:
        return None
    constant = split[1]
    if constant.size not in (1, width) or (constant.size > 1 and constant.shape[-1] != width):
        return None
    if constant.ndim > (rank_of(node.outputs[0]) or 0):
        return None
    return following, np.broadcast_to(constant.reshape(-1), (width,)).astype(np.float32)


def _layer_norm(model: ir.Model, context: PassContext) -> int:
    changes = 0
    for node in live_nodes(all_nodes(model), "Div", "Mul"):
        found = _normalised(node) if len(node.inputs) == 2 else None
        x = _centred(found[0]) if found else None
        width = dim_of(x, -1)
        if found is None or x is None or width is None:
            continue
        scale = _vector_after(node, "Mul", width)
        last, gamma = scale if scale else (node, np.ones(width, np.float32))
        shift = _vector_after(last, "Add", width)
        last, beta = shift if shift else (last, None)
        stem = last.outputs[0].name
        inputs = [x, add_constant(model, f"{stem}_gamma", gamma)]
        if beta is not None:
            inputs.append(add_constant(model, f"{stem}_beta", beta))
        attributes = {"axis": -1, "epsilon": found[1]}
        replace_node(last, ir.node("LayerNormalization", inputs, attributes, name=fused_name(node, last)))
        changes += 1
    return changes


def _rms_norm(model: ir.Model, context: PassContext) -> int:
    changes = 0
    for node in live_nodes(all_nodes(model), "Div", "Mul"):
        found = _normalised(node) if len(node.inputs) == 2 else None
        width = dim_of(found[0], -1) if found else None
        scale = _vector_after(node, "Mul", width) if width is not None else None
        if found is None or scale is None or _centred(found[0]) is not None:
            continue
        last, gamma = scale
        edgekit_ops.declare(model)
        new = ir.node(
            edgekit_ops.RMS_NORMALIZATION,
            [found[0], add_constant(model, f"{last.outputs[0].name}_scale", gamma)],
            {"epsilon": found[1]},
            domain=edgekit_ops.DOMAIN,
            name=fused_name(node, last),
        )
        replace_node(last, new)
        changes += 1
    return changes


LAYER_NORM = Pass("layer-norm", "Decomposed layer normalisation to LayerNormalization", _layer_norm)
RMS_NORM = Pass("rms-norm", "Decomposed RMS normalisation to edgekit's RMSNormalization", _rms_norm)
