"""Outputs as post-processing wants them: float32, C-contiguous, dequantized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgekit.errors import TensorError
from edgekit.package.specs import TensorSpec

Outputs = Mapping[str, NDArray[np.generic]]


def real_outputs(outputs: Outputs, specs: Sequence[TensorSpec]) -> list[NDArray[np.float32]]:
    """Declared outputs in their order, as real values.

    Args:
        outputs: Output name to array.
        specs: What the model declares; quantized outputs become (q - zero_point) * scale.

    Raises:
        TensorError: An output is missing.
    """
    missing = [spec.name for spec in specs if spec.name not in outputs]
    if missing:
        raise TensorError("outputs are missing", got=sorted(outputs), expected=missing)
    return [_real(outputs[spec.name], spec) for spec in specs]


def _real(array: NDArray[np.generic], spec: TensorSpec) -> NDArray[np.float32]:
    values = np.ascontiguousarray(array, dtype=np.float32)
    if spec.quantization is None:
        return values
    return (values - np.float32(spec.quantization.zero_point)) * np.float32(spec.quantization.scale)


def single_output(outputs: Outputs, specs: Sequence[TensorSpec]) -> NDArray[np.float32]:
    """The one output of a model that has one, or the first where others are by-products."""
    if not specs:
        raise TensorError("the model has no output")
    return real_outputs(outputs, specs[:1])[0]
