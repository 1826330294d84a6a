"""Checks what a user gives to run() against the declared inputs, before any engine sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from edgekit.engines.base import Array
from edgekit.errors import TensorError
from edgekit.package.specs import TensorSpec

Buckets = Sequence[Mapping[str, int]]


def check_feeds(feeds: Mapping[str, Array], specs: Sequence[TensorSpec], buckets: Buckets) -> int:
    """Checks names, dtypes and shapes.

    Args:
        feeds: Input name to array; every input and nothing else.
        specs: The declared inputs.
        buckets: Sizes that symbolic dims may take together; empty when all shapes are fixed.

    Returns:
        Index of the bucket that the shapes select; 0 when all shapes are fixed.

    Raises:
        TensorError: A name, dtype or shape is wrong.
    """
    _check_names(feeds, specs)
    sizes: dict[str, int] = {}
    for spec in specs:
        array = feeds[spec.name]
        if not isinstance(array, np.ndarray):
            raise TensorError("input is not a numpy array", where=spec.name, got=type(array).__name__)
        if array.dtype != np.dtype(spec.dtype):
            raise TensorError("input has the wrong dtype", where=spec.name, got=array.dtype, expected=spec.dtype)
        _check_shape(array.shape, spec, sizes, buckets)
    return find_bucket(sizes, buckets)


def find_bucket(sizes: Mapping[str, int], buckets: Buckets) -> int:
    """Returns the index of the bucket with these sizes of the symbolic dims; 0 when all shapes are fixed.

    Raises:
        TensorError: There is none.
    """
    if not buckets:
        return 0
    for index, bucket in enumerate(buckets):
        if all(bucket.get(symbol) == size for symbol, size in sizes.items()):
            return index
    raise TensorError("no shape bucket fits", got=_describe(sizes), expected=_describe_buckets(buckets))


def resolve_shape(spec: TensorSpec, bucket: Mapping[str, int]) -> tuple[int, ...]:
    """Returns the shape of a tensor in a bucket."""
    return tuple(bucket[dim] if isinstance(dim, str) else dim for dim in spec.shape)


def _check_names(feeds: Mapping[str, Array], specs: Sequence[TensorSpec]) -> None:
    if not isinstance(feeds, Mapping):
        raise TensorError("not a dict of inputs", got=type(feeds).__name__, expected="{name: array}")
    names = [spec.name for spec in specs]
    for given in feeds:
        if given not in names:
            import difflib

            near = difflib.get_close_matches(str(given), names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else None
            raise TensorError("no such input", where=ascii(given)[:120], expected=", ".join(names)[:400], hint=hint)
    missing = [name for name in names if name not in feeds]
    if missing:
        raise TensorError("input is missing", where=missing[0], expected=", ".join(names)[:400])


def _check_shape(shape: tuple[int, ...], spec: TensorSpec, sizes: dict[str, int], buckets: Buckets) -> None:
    fits = len(shape) == len(spec.shape) and all(
        size == dim if isinstance(dim, int) else sizes.setdefault(dim, size) == size
        for size, dim in zip(shape, spec.shape, strict=True)
    )
    if not fits:
        expected = f"[{', '.join(str(dim) for dim in spec.shape)}]"
        if buckets and any(isinstance(dim, str) for dim in spec.shape):
            expected += f" with {_describe_buckets(buckets)}"
        raise TensorError("input has the wrong shape", where=spec.name, got=list(shape), expected=expected)


def _describe(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{symbol}={size}" for symbol, size in sorted(sizes.items()))


def _describe_buckets(buckets: Buckets) -> str:
    return " or ".join(_describe(bucket) for bucket in buckets[:8]) + (" or ..." if len(buckets) > 8 else "")
