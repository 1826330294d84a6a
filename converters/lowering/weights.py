"""Constant operands of products, quantized or float, brought into the form [OC, IC / groups, KH, KW]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.graph import Array, QuantizedConstant
from edgekit.converters.lowering.views import Quant

_INT32_MAX = 2**31 - 1


class NotQuantizedError(Exception):
    """A product can't run in INT8; the message says why, for the audit."""


@dataclass(frozen=True)
class QuantizedWeights:
    """INT8 weights of a product.

    Attributes:
        values: int8 [OC, IC / groups, KH, KW], zero point 0.
        scale: float64 [OC].
        bias: int64 [OC], in units of x_scale * scale, the zero point of x not yet folded in.
    """

    values: NDArray[np.int8]
    scale: NDArray[np.float64]
    bias: NDArray[np.int64]

    def folded_bias(self, x_zero: int) -> NDArray[np.int32]:
        """Bias - x_zero * sum(w), so that the kernel may multiply stored values."""
        sums = self.values.reshape(len(self.values), -1).astype(np.int64).sum(1)
        return np.asarray(self.bias - x_zero * sums, np.int32)


def signed_values(constant: QuantizedConstant) -> NDArray[np.int8]:
    """Weights as int8 with zero point 0.

    Raises:
        NotQuantizedError: They are of another width, asymmetric, or use -128.
    """
    values = constant.values.astype(np.int64)
    if constant.values.dtype.name not in ("int8", "uint8"):
        raise NotQuantizedError(f"weights of dtype {constant.values.dtype}")
    values = values - constant.per_channel(constant.zero).astype(np.int64)
    if values.min() < -127 or values.max() > 127:
        raise NotQuantizedError("weights are not symmetric in [-127, 127]")
    return values.astype(np.int8)


def quantized_weights(
    values: NDArray[np.int8], scale: NDArray[np.float32], x_quant: Quant, bias: ir.Value | None
) -> QuantizedWeights:
    """Joins weights with their bias.

    Args:
        values: int8 [OC, IC / groups, KH, KW].
        scale: float32, one or [OC].
        x_quant: Quantization of the activations.
        bias: float constant, or DequantizeLinear of int32; None: zero.

    Raises:
        NotQuantizedError: The bias is not constant, or a sum could leave int32.
    """
    channels = len(values)
    scales = np.broadcast_to(scale.astype(np.float64).reshape(-1), (channels,))
    unit = x_quant.scale * scales
    bias_values = np.zeros(channels, np.int64) if bias is None else _integer_bias(bias, unit)
    reach = 255 * np.abs(values.reshape(channels, -1).astype(np.int64)).sum(1) + np.abs(bias_values)
    if reach.max() > _INT32_MAX:
        raise NotQuantizedError("the sum could overflow int32: the bias is too large for the weights' scale")
    return QuantizedWeights(values, scales, bias_values)


def _integer_bias(bias: ir.Value, unit: NDArray[np.float64]) -> NDArray[np.int64]:
    quantized = graph.quantized_constant(bias)
    if quantized is not None and quantized.values.dtype == np.int32 and not quantized.zero.any():
        scale = np.broadcast_to(quantized.scale.reshape(-1).astype(np.float64), unit.shape)
        if np.allclose(scale, unit, rtol=1e-5, atol=0):
            return np.broadcast_to(quantized.values.reshape(-1), unit.shape).astype(np.int64)
    floats = graph.constant_of(bias)
    if floats is None:
        raise NotQuantizedError("the bias is not constant")
    rounded = np.rint(np.broadcast_to(floats.astype(np.float64).reshape(-1), unit.shape) / unit)
    if not np.all(np.abs(rounded) <= _INT32_MAX):
        raise NotQuantizedError("the bias overflows int32 at the weights' scale")
    return rounded.astype(np.int64)


def float_bias(bias: Array | None, channels: int) -> NDArray[np.float32]:
    """Bias as float32 [channels]."""
    if bias is None:
        return np.zeros(channels, np.float32)
    return np.ascontiguousarray(np.broadcast_to(bias.astype(np.float32).reshape(-1), (channels,)))
