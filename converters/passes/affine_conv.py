"""Multiplications and additions by constants next to Conv, ConvTranspose or Gemm are folded into their weights.

After the node: any constant a channel, or one for all. Before a Conv: factors always, since padding stays zero; sums
only where nothing is padded. PaddleOCR's learnable affine blocks are such chains.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.passes import weighted
from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import (
    all_nodes,
    constant_operand,
    is_float32,
    is_op,
    live_nodes,
    only_consumer,
    producer,
    rank_of,
    used_once,
)

_WEIGHTED = ("Conv", "ConvTranspose", "Gemm")
Float64 = NDArray[np.float64]


def channel_affine(node: ir.Node) -> tuple[ir.Value, Float64, Float64] | None:
    """Reads Mul, Add, Sub or Div by a constant as x * scale + shift.

    Returns:
        (x, scale, shift), each of the latter [1] or [channels of axis 1]; None where the constant varies along another
        axis, or the form is c / x.
    """
    split = constant_operand(node)
    if split is None or not is_op(node, "Mul", "Add", "Sub", "Div"):
        return None
    value, constant, index = split
    rank = rank_of(value)
    per_channel = None if rank is None else _per_channel(constant, rank)
    if per_channel is None or not is_float32(value):
        return None
    one, zero = np.ones(1), np.zeros(1)
    if node.op_type == "Mul":
        return value, per_channel, zero
    if node.op_type == "Add":
        return value, one, per_channel
    if node.op_type == "Sub":
        return (value, one, -per_channel) if index == 0 else (value, -one, per_channel)
    if index == 0 and np.all(per_channel != 0):
        return value, 1.0 / per_channel, zero
    return None


def _per_channel(constant: NDArray[np.generic], rank: int) -> Float64 | None:
    """Flattens a constant that broadcasts along axis 1 only; None where it would add dims or vary along others."""
    if constant.ndim > rank:
        return None
    if constant.size == 1:
        return constant.reshape(-1).astype(np.float64)
    padded = (1,) * (rank - constant.ndim) + constant.shape
    if rank < 2 or any(d != 1 for axis, d in enumerate(padded) if axis != 1):
        return None
    return constant.reshape(-1).astype(np.float64)


def _apply(model: ir.Model, context: PassContext) -> int:
    changes = 0
    while True:
        found = sum(_fold(model, node) for node in live_nodes(all_nodes(model), "Mul", "Add", "Sub", "Div"))
        if not found:
            return changes
        changes += found


def _fold(model: ir.Model, node: ir.Node) -> bool:
    affine = channel_affine(node)
    if affine is None:
        return False
    value, scale, shift = affine
    before = producer(value, *_WEIGHTED)
    if before is not None and used_once(value) and weighted.scale_output(model, before, scale, shift):
        return weighted.absorb_following(before, node)
    after = only_consumer(node.outputs[0])
    if after is None or not is_op(after, "Conv") or after.inputs[0] is not node.outputs[0]:
        return False
    if weighted.scale_input(model, after, scale, shift):
        return weighted.absorb_preceding(node, value, after)
    return False


AFFINE_CONV = Pass("affine-conv", "Constant factors and sums next to Conv, ConvTranspose, Gemm folded in", _apply)
