"""Inputs to measure with: never zeros, since some kernels are faster on zeros."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edgekit.engines.base import Array
from edgekit.package.specs import TensorSpec

SEED = 20_240_607


def synthetic_inputs(specs: tuple[TensorSpec, ...], bucket: Mapping[str, int]) -> dict[str, Array]:
    """Makes smooth, noisy inputs like a normalised photograph.

    Args:
        specs: Inputs of the model.
        bucket: Sizes of the symbolic dims.

    Returns:
        Input name to array: floats within about [0, 1]; integers within the range of their type, at most 255.
    """
    rng = np.random.default_rng(SEED)
    return {spec.name: _one(spec, bucket, rng) for spec in specs}


def _one(spec: TensorSpec, bucket: Mapping[str, int], rng: np.random.Generator) -> Array:
    shape = tuple(bucket[dim] if isinstance(dim, str) else dim for dim in spec.shape)
    dtype = np.dtype(spec.dtype)
    count = int(np.prod(shape, dtype=np.int64))
    wave = 0.5 + 0.35 * np.sin(np.arange(count, dtype=np.float64) * 0.013)
    values = np.clip(wave + rng.normal(0.0, 0.1, count), 0.0, 1.0).reshape(shape)
    if dtype.kind == "f":
        return values.astype(dtype)
    if dtype.kind == "b":
        return values > 0.5
    top = min(int(np.iinfo(dtype).max), 255)
    return np.rint(values * top).astype(dtype)
