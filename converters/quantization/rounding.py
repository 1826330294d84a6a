"""Rounding of weights with the input in view: the error of one weight is made good by those not yet rounded.

Method: E. Frantar et al., "GPTQ", ICLR 2023, on the second moments of the layer's input, channel by channel against
plain rounding, whichever errs less. What mean error remains goes into the bias (M. Nagel et al., "Data-free
quantization through weight equalization and bias correction", ICCV 2019, with measured means).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgekit.converters.quantization.layer_inputs import LayerInputs
from edgekit.converters.quantization.layers import WeightedLayer
from edgekit.converters.quantization.weights import WEIGHT_LIMIT, quantize_weight

_DAMPING = 0.01  # of the mean of the diagonal, as in the paper


def rounded_weight(layer: WeightedLayer, scale: NDArray[np.float32], inputs: LayerInputs | None) -> NDArray[np.int8]:
    """Rounds a layer's weights.

    Args:
        layer: The layer.
        scale: One an index of layer.axis.
        inputs: Moments of its input; None: to nearest.

    Returns:
        int8, the shape of the weights.
    """
    nearest = quantize_weight(layer.weight, layer.axis, scale).values
    if inputs is None:
        return nearest
    moments = inputs.moments
    rows = _rows(layer, layer.weight)
    unit = rows / _rows_scale(layer, scale)[..., None]
    plain = _rows(layer, nearest).astype(np.float64)
    compensated = _compensated(unit, moments)
    better = _squared_error(unit - compensated, moments) < _squared_error(unit - plain, moments)
    return _from_rows(layer, np.where(better[..., None], compensated, plain).astype(np.int8))


def mean_error(layer: WeightedLayer, dequantized: NDArray[np.float32], inputs: LayerInputs) -> NDArray[np.float32]:
    """What the rounded weights lack on average, one value an output channel; to be added to the bias.

    Args:
        layer: The layer.
        dequantized: Its weights after rounding.
        inputs: Moments of its input.
    """
    lack = _rows(layer, layer.weight) - _rows(layer, dequantized).astype(np.float64)
    return np.asarray(np.einsum("gok,gk->go", lack, inputs.mean).reshape(-1), np.float32)


def _compensated(unit: NDArray[np.float64], moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rounds column by column, [groups, channels, depth] in units of the scale, columns that matter most first."""
    result = np.empty_like(unit)
    for group in range(unit.shape[0]):
        hessian = moments[group]
        diagonal = np.diagonal(hessian)
        damping = _DAMPING * float(diagonal.mean())
        if damping <= 0:  # the input is dead
            result[group] = _to_grid(unit[group])
            continue
        order = np.argsort(-diagonal, kind="stable")
        damped = hessian[np.ix_(order, order)] + damping * np.eye(order.size)
        upper = np.linalg.cholesky(np.linalg.inv(damped)).T
        rest = unit[group][:, order].copy()
        columns = np.empty_like(rest)
        for column in range(order.size):
            columns[:, column] = _to_grid(rest[:, column])
            error = (rest[:, column] - columns[:, column]) / upper[column, column]
            rest[:, column + 1 :] -= np.outer(error, upper[column, column + 1 :])
        result[group][:, order] = columns
    return result


def _to_grid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(np.rint(values), -WEIGHT_LIMIT, WEIGHT_LIMIT)


def _squared_error(lack: NDArray[np.float64], moments: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.einsum("gok,gok->go", np.matmul(lack, moments), lack))


def _rows(layer: WeightedLayer, weight: NDArray[np.generic]) -> NDArray[np.float64]:
    """Weights as [groups, output channels of a group, depth]."""
    channels_first = np.moveaxis(weight, layer.axis, 0)
    return channels_first.reshape(layer.groups, -1, layer.depth).astype(np.float64)


def _rows_scale(layer: WeightedLayer, scale: NDArray[np.float32]) -> NDArray[np.float64]:
    return scale.astype(np.float64).reshape(layer.groups, -1)


def _from_rows(layer: WeightedLayer, rows: NDArray[np.int8]) -> NDArray[np.int8]:
    moved = np.moveaxis(layer.weight, layer.axis, 0).shape
    return np.ascontiguousarray(np.moveaxis(rows.reshape(moved), 0, layer.axis))
