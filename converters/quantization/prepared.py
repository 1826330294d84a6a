"""Integers of weighted layers: prepared once, then fitted to the scale of the layer's input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgekit.converters.quantization.layer_inputs import LayerInputs
from edgekit.converters.quantization.layers import WeightedLayer
from edgekit.converters.quantization.rounding import mean_error, rounded_weight
from edgekit.converters.quantization.weights import (
    QuantizedWeight,
    channel_scales,
    guarded_scales,
    quantize_bias,
    quantize_weight,
)


@dataclass(frozen=True)
class PreparedLayer:
    """Rounded weights of a layer, whatever its input's scale will be.

    Attributes:
        weight: int8 weights with their scales.
        bias_shift: Added to the float bias to make up for the mean error, one an output channel; None: nothing.
    """

    weight: QuantizedWeight
    bias_shift: NDArray[np.float32] | None = None

    def shifted(self, correction: NDArray[np.float32]) -> PreparedLayer:
        """With a further correction of the bias, one value an output channel."""
        before = 0.0 if self.bias_shift is None else self.bias_shift
        return PreparedLayer(self.weight, np.asarray(before + correction, np.float32))


@dataclass(frozen=True)
class LayerNumbers:
    """Integers of one weighted layer.

    Attributes:
        weight: int8 weights with their scales.
        bias: int32, one an output channel; None when the layer has none.
        bias_scale: float32, one an output channel.
    """

    weight: QuantizedWeight
    bias: NDArray[np.int32] | None
    bias_scale: NDArray[np.float32]


def prepare_layer(layer: WeightedLayer, inputs: LayerInputs | None, bias_correction: bool) -> PreparedLayer:
    """Rounds a layer's weights.

    Args:
        layer: The layer.
        inputs: Moments of its input; None: rounded to nearest.
        bias_correction: Make up for the mean error in the bias, where the layer has room for one.

    Returns:
        The prepared layer.
    """
    scale = channel_scales(layer.weight, layer.axis)
    weight = QuantizedWeight(rounded_weight(layer, scale, inputs), scale, layer.axis)
    has_room = layer.bias is not None or layer.node.op_type != "MatMul"
    if inputs is None or not bias_correction or not has_room:
        return PreparedLayer(weight)
    return PreparedLayer(weight, mean_error(layer, weight.dequantized(), inputs))


def layer_numbers(layer: WeightedLayer, input_scale: float, prepared: PreparedLayer) -> LayerNumbers:
    """Fits a layer to its input's scale.

    Args:
        layer: The layer.
        input_scale: Scale of its input.
        prepared: Its rounded weights.

    Returns:
        The integers; no accumulator can overflow int32.
    """
    bias = layer.bias
    if prepared.bias_shift is not None:
        bias = prepared.bias_shift if bias is None else bias + prepared.bias_shift
    weight = prepared.weight
    scale = layer.per_axis(guarded_scales(layer.per_output(weight.scale), bias, input_scale, layer.depth))
    if not np.array_equal(scale, weight.scale):
        coarser = quantize_weight(layer.weight, layer.axis, scale)
        keep = (scale == weight.scale).reshape([-1 if a == layer.axis else 1 for a in range(layer.weight.ndim)])
        weight = QuantizedWeight(np.where(keep, weight.values, coarser.values), scale, layer.axis)
    bias_scale = (layer.per_output(scale) * np.float32(input_scale)).astype(np.float32)
    return LayerNumbers(weight, None if bias is None else quantize_bias(bias, bias_scale), bias_scale)
