"""Weights and biases in integers: s8 symmetric per output channel in [-127, 127], bias int32.

The bias shares the scale x_scale * w_scale of the accumulator. Where it would overflow int32 together with the
products, the weight scale of that channel is raised: such weights are so small against the bias that nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgekit.converters.quantization.ranges import LEAST_SCALE

WEIGHT_LIMIT = 127
_ACCUMULATOR_LIMIT = 2**31 - 1
_ACTIVATION_SPAN = 255  # |x - zero_point|
_SHRINK = np.linspace(1.0, 0.8, 11)
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class QuantizedWeight:
    """Weights of one layer.

    Attributes:
        values: int8, the shape of the float weights.
        scale: float32, one an index of axis.
        axis: Axis of the weights along which scales differ.
    """

    values: NDArray[np.int8]
    scale: Floats
    axis: int

    def dequantized(self) -> Floats:
        """What the layer computes with, float32."""
        scale = self.scale.reshape(_along(self.axis, self.values.ndim))
        return np.asarray(self.values.astype(np.float32) * scale)


def _along(axis: int, rank: int) -> list[int]:
    return [-1 if a == axis else 1 for a in range(rank)]


def channel_scales(weight: Floats, axis: int) -> Floats:
    """Scale of each channel with the least squared error; never 0.

    A dead channel takes the largest scale of the others: its values are all 0 and its bias is then as exact as theirs.

    Args:
        weight: Float weights.
        axis: Channel axis.

    Returns:
        float32, one a channel.
    """
    rows = np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1).astype(np.float64)
    largest = np.abs(rows).max(axis=1)
    dead = largest == 0
    fallback = float(largest.max()) or 1.0
    full = np.maximum(np.where(dead, fallback, largest) / WEIGHT_LIMIT, LEAST_SCALE)
    best, best_error = full, np.full(full.shape, np.inf)
    for share in _SHRINK:
        scale = full * share
        q = np.clip(np.rint(rows / scale[:, None]), -WEIGHT_LIMIT, WEIGHT_LIMIT)
        error = ((q * scale[:, None] - rows) ** 2).sum(axis=1)
        better = error < best_error
        best, best_error = np.where(better, scale, best), np.where(better, error, best_error)
    return best.astype(np.float32)


def guarded_scales(scale: Floats, bias: Floats | None, input_scale: float, depth: int) -> Floats:
    """Raises scales of channels whose int32 accumulator could overflow.

    Args:
        scale: Weight scale of each output channel.
        bias: Bias of each output channel, or None.
        input_scale: Scale of the layer's input.
        depth: Products summed into one output.

    Returns:
        float32 scales, each at least as large as before.
    """
    if bias is None:
        return scale
    room = _ACCUMULATOR_LIMIT - depth * WEIGHT_LIMIT * _ACTIVATION_SPAN - 1
    # half of the room: the zero point's share is folded into the stored bias, and float32 rounds
    least = np.abs(bias.astype(np.float64)) / (input_scale * (room / 2))
    return np.maximum(scale, least.astype(np.float32))


def quantize_weight(weight: Floats, axis: int, scale: Floats) -> QuantizedWeight:
    """Rounds weights to nearest even multiples of their channel's scale, within [-127, 127]."""
    scaled = weight.astype(np.float64) / scale.reshape(_along(axis, weight.ndim))
    values = np.clip(np.rint(scaled), -WEIGHT_LIMIT, WEIGHT_LIMIT).astype(np.int8)
    return QuantizedWeight(values, scale, axis)


def quantize_bias(bias: Floats, scale: Floats) -> NDArray[np.int32]:
    """Rounds a bias to int32 multiples of the accumulator's scale."""
    return np.rint(bias.astype(np.float64) / scale).astype(np.int32)
