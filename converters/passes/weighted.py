"""Rewrites the weights of Conv, ConvTranspose and Gemm so that they include a scale and a shift around them.

Sums are done in float64 and rounded once to float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.passes.graph_edit import (
    add_constant,
    attribute,
    constant_of,
    fused_name,
    input_at,
    is_float32,
    is_op,
    remove_unused,
    take_over,
)

Float64 = NDArray[np.float64]


def weight_of(node: ir.Node) -> NDArray[Any] | None:
    """Returns the constant float32 weight of a Conv, ConvTranspose or Gemm, else None."""
    value = input_at(node, 1)
    return constant_of(value) if is_float32(value) else None


def output_channels(node: ir.Node) -> int | None:
    """Returns the number of output channels of a node whose weight is constant."""
    weight = weight_of(node)
    if weight is None:
        return None
    if is_op(node, "Conv"):
        return int(weight.shape[0])
    if is_op(node, "ConvTranspose"):
        return int(weight.shape[1]) * int(attribute(node, "group", 1))
    return int(weight.shape[0 if attribute(node, "transB", 0) else 1])


def _bias_of(node: ir.Node, channels: int) -> Float64 | None:
    """Bias as [channels], broadcast from any shape that Gemm allows; None where it varies by row or is no constant."""
    value = input_at(node, 2)
    if value is None:
        return np.zeros(channels)
    bias = constant_of(value)
    if bias is None or any(d != 1 for d in bias.shape[:-1]) or (bias.size not in (1, channels)):
        return None
    factor = attribute(node, "beta", 1.0) if is_op(node, "Gemm") else 1.0
    return np.broadcast_to(bias.reshape(-1).astype(np.float64) * factor, (channels,)).copy()


def scale_output(model: ir.Model, node: ir.Node, scale: Float64, shift: Float64) -> bool:
    """Makes a node give y * scale + shift, one value an output channel (or one for all).

    Args:
        model: The model.
        node: Conv, ConvTranspose or Gemm.
        scale: [1] or [output channels].
        shift: [1] or [output channels].

    Returns:
        False, with nothing changed, where weights or bias are no constants or the sizes do not fit.
    """
    weight, channels = weight_of(node), output_channels(node)
    if weight is None or channels is None or scale.size not in (1, channels) or shift.size not in (1, channels):
        return False
    bias = _bias_of(node, channels)
    if bias is None:
        return False
    scale = np.broadcast_to(scale.reshape(-1), (channels,))
    scaled = weight.astype(np.float64) * _along_output(node, weight, scale)
    if not _fits_float32(scaled) or not _fits_float32(bias * scale + shift.reshape(-1)):
        return False
    _set_weight(model, node, scaled)
    _set_bias(model, node, bias * scale + shift.reshape(-1))
    return True


def _along_output(node: ir.Node, weight: NDArray[Any], scale: Float64) -> Float64:
    if is_op(node, "Conv"):
        return scale.reshape(-1, *[1] * (weight.ndim - 1))
    if is_op(node, "ConvTranspose"):
        groups = attribute(node, "group", 1)
        rows = np.repeat(scale.reshape(groups, -1), weight.shape[0] // groups, axis=0)
        return rows.reshape(*weight.shape[:2], *[1] * (weight.ndim - 2))
    return scale.reshape(-1, 1) if attribute(node, "transB", 0) else scale.reshape(1, -1)


def scale_input(model: ir.Model, node: ir.Node, scale: Float64, shift: Float64) -> bool:
    """Makes a Conv compute what it did on x * scale + shift, given x.

    Args:
        model: The model.
        node: A Conv. With a shift other than zero it must have no padding, since padding is zero after the shift.
        scale: [1] or [input channels].
        shift: [1] or [input channels].

    Returns:
        False, with nothing changed, where that can't be done.
    """
    weight = weight_of(node)
    if weight is None or not is_op(node, "Conv"):
        return False
    groups = attribute(node, "group", 1)
    channels = weight.shape[1] * groups
    bias = _bias_of(node, weight.shape[0])
    if bias is None or scale.size not in (1, channels) or shift.size not in (1, channels):
        return False
    if np.any(shift) and not has_no_padding(node):
        return False
    old = weight.astype(np.float64)
    scaled = old * _along_input(weight, np.broadcast_to(scale.reshape(-1), (channels,)), groups)
    moved = old * _along_input(weight, np.broadcast_to(shift.reshape(-1), (channels,)), groups)
    bias = bias + moved.reshape(weight.shape[0], -1).sum(axis=1)
    if not _fits_float32(scaled) or not _fits_float32(bias):
        return False
    _set_weight(model, node, scaled)
    _set_bias(model, node, bias)
    return True


def _along_input(weight: NDArray[Any], values: Float64, groups: int) -> Float64:
    rows = np.repeat(values.reshape(groups, -1), weight.shape[0] // groups, axis=0)
    return rows.reshape(*weight.shape[:2], *[1] * (weight.ndim - 2))


def has_no_padding(node: ir.Node) -> bool:
    """Tells whether a Conv surely pads nothing."""
    mode = attribute(node, "auto_pad", "NOTSET")
    if mode == "VALID":
        return True
    return mode == "NOTSET" and not any(attribute(node, "pads", []))


def _fits_float32(array: Float64) -> bool:
    return bool(np.all(np.abs(array) < np.finfo(np.float32).max))


def _set_weight(model: ir.Model, node: ir.Node, weight: Float64) -> None:
    stem = str(node.inputs[1].name)  # type: ignore[union-attr]
    node.replace_input_with(1, add_constant(model, stem, weight.astype(np.float32)))


def _set_bias(model: ir.Model, node: ir.Node, bias: Float64) -> None:
    present = input_at(node, 2)
    if len(node.inputs) < 3:
        node.resize_inputs(3)
    stem = str(present.name) if present is not None else f"{node.outputs[0].name}_bias"
    node.replace_input_with(2, add_constant(model, stem, bias.astype(np.float32)))
    if is_op(node, "Gemm"):
        node.attributes.pop("beta", None)


def absorb_following(node: ir.Node, following: ir.Node) -> bool:
    """Removes a one-input node after `node` whose effect `node` now includes; its name is kept with "+"."""
    node.name = fused_name(node, following)
    if not take_over(following.outputs[0], node.outputs[0]):
        raise ValueError(f"{following.name} can't be absorbed")
    remove_unused(following)
    return True


def absorb_preceding(preceding: ir.Node, source: ir.Value, node: ir.Node) -> bool:
    """Lets `node` read `source` instead of the output of `preceding`, whose effect it now includes."""
    node.name = fused_name(preceding, node)
    node.replace_input_with(0, source)
    remove_unused(preceding)
    return True
