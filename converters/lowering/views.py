"""Views: typed, strided windows on storages. Transposes, slices, splits and most reshapes are arithmetic on these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgekit.package.program import dense_strides

StorageKind = Literal["arena", "constants", "input", "output"]
Dims = tuple[int, ...]


@dataclass(frozen=True)
class Quant:
    """Affine quantization of stored values: real = (q - zero) * scale, in the dtype that the target stores.

    Attributes:
        scale: Exactly representable in float32.
        zero: Zero point.
    """

    scale: float
    zero: int


@dataclass(eq=False)
class Storage:
    """Memory that views look at.

    Attributes:
        kind: Where it lives.
        dtype: Program dtype, such as f32; one for all elements.
        elements: Number of elements.
        name: Of the first value stored, for reports.
        data: Contents of a constant.
        slot: Position among the program's inputs or outputs.
    """

    kind: StorageKind
    dtype: str
    elements: int
    name: str = ""
    data: NDArray[np.generic] | None = None
    slot: int = -1


@dataclass(frozen=True)
class View:
    """A strided window.

    Attributes:
        storage: What it looks at.
        offset: Of element [0, ..., 0], in elements.
        dims: Each at least 1.
        strides: In elements; 0 repeats, negative runs backwards.
        quant: Set for quantized values.
    """

    storage: Storage
    offset: int
    dims: Dims
    strides: Dims
    quant: Quant | None = None

    @property
    def dtype(self) -> str:
        """Program dtype of the elements."""
        return self.storage.dtype

    @property
    def rank(self) -> int:
        """Number of dims."""
        return len(self.dims)

    @property
    def elements(self) -> int:
        """Number of elements, repeated ones counted."""
        return int(np.prod(self.dims, dtype=np.int64))

    def same_place(self, other: View) -> bool:
        """Whether both see the same elements at the same indices."""
        return (
            self.storage is other.storage
            and self.offset == other.offset
            and self.dims == other.dims
            and all(d == 1 or a == b for d, a, b in zip(self.dims, self.strides, other.strides, strict=True))
        )

    def covers_storage(self) -> bool:
        """Whether it sees every element of its storage exactly once."""
        if self.elements != self.storage.elements or self.offset:
            return False
        expected = 1
        for stride, dim in sorted(zip(self.strides, self.dims, strict=True)):
            if dim != 1 and stride != expected:
                return False
            expected *= dim
        return True

    def is_dense(self) -> bool:
        """Whether elements lie in row-major order without gaps."""
        return all(d == 1 or s == e for d, s, e in zip(self.dims, self.strides, dense_strides(self.dims), strict=True))

    def order(self) -> Dims:
        """Dims from outermost to innermost in memory."""
        return tuple(sorted(range(self.rank), key=lambda axis: (-abs(self.strides[axis]), axis)))

    def permuted(self, permutation: Sequence[int]) -> View:
        """numpy.transpose."""
        return replace(
            self, dims=tuple(self.dims[a] for a in permutation), strides=tuple(self.strides[a] for a in permutation)
        )

    def sliced(self, axis: int, start: int, count: int, step: int = 1) -> View:
        """Elements start, start + step, ... of an axis."""
        dims, strides = list(self.dims), list(self.strides)
        offset = self.offset + start * strides[axis]
        dims[axis] = count
        strides[axis] *= step
        return replace(self, offset=offset, dims=tuple(dims), strides=tuple(strides))

    def selected(self, axis: int, index: int) -> View:
        """One index of an axis, the axis removed."""
        return self.sliced(axis, index, 1).without_axes([axis])

    def without_axes(self, axes: Sequence[int]) -> View:
        """Drops axes of extent 1."""
        keep = [axis for axis in range(self.rank) if axis not in axes]
        return self.permuted(keep)

    def with_axis(self, axis: int) -> View:
        """Inserts an axis of extent 1."""
        stride = self.dims[axis] * self.strides[axis] if axis < self.rank else 1
        dims, strides = list(self.dims), list(self.strides)
        dims.insert(axis, 1)
        strides.insert(axis, stride)
        return replace(self, dims=tuple(dims), strides=tuple(strides))

    def expanded(self, dims: Dims) -> View:
        """numpy.broadcast_to."""
        missing = len(dims) - self.rank
        own_dims, own_strides = (1,) * missing + self.dims, (0,) * missing + self.strides
        strides = tuple(
            stride if own == dim else 0 for dim, own, stride in zip(dims, own_dims, own_strides, strict=True)
        )
        return replace(self, dims=dims, strides=strides)

    def reshaped(self, dims: Dims) -> View | None:
        """Row-major reshape without a copy; None where the strides don't allow it."""
        if dims == self.dims:
            return self
        old = [(d, s) for d, s in zip(self.dims, self.strides, strict=True) if d != 1]
        strides = [0] * len(dims)
        axis = len(dims) - 1
        while old:
            # One group: the fewest trailing old dims and new dims with equal products.
            extent, inner = old.pop()
            product, position = extent, inner * extent
            filled, step = 1, inner
            while filled != product:
                if filled < product:
                    if axis < 0:
                        return None
                    strides[axis] = step
                    filled *= dims[axis]
                    step *= dims[axis]
                    axis -= 1
                else:
                    if not old or old[-1][1] != position:
                        return None
                    extent, _ = old.pop()
                    product *= extent
                    position *= extent
        strides = _unit_strides(dims, strides)
        return replace(self, dims=dims, strides=tuple(strides))


@dataclass(frozen=True)
class Want:
    """What a new value should be.

    Attributes:
        dims: Logical dims.
        dtype: Program dtype.
        order: Axes from outermost to innermost in memory, if it is free.
        quant: Of quantized values.
        accept: Whether the kernel can write a given view; None: any.
    """

    dims: Dims
    dtype: str
    order: Dims | None = None
    quant: Quant | None = None
    accept: Callable[[View], bool] | None = None


def _unit_strides(dims: Dims, strides: list[int]) -> list[int]:
    """Gives axes of extent 1 the stride that a dense layout would, so that order() keeps them in place."""
    for axis in reversed(range(len(dims))):
        if dims[axis] == 1:
            strides[axis] = dims[axis + 1] * strides[axis + 1] if axis + 1 < len(dims) else 1
    return strides


def dense_view(storage: Storage, dims: Dims, order: Dims | None = None, quant: Quant | None = None) -> View:
    """The view of a whole storage whose axes lie in memory from outermost to innermost as `order` says."""
    strides = [0] * len(dims)
    step = 1
    for axis in reversed(order if order is not None else tuple(range(len(dims)))):
        strides[axis] = step
        step *= dims[axis]
    return View(storage, 0, dims, tuple(strides), quant)


def channels_last_order(rank: int) -> Dims:
    """N, spatial axes, C of a value whose logical axes are N, C, spatial."""
    return (0, *range(2, rank), 1) if rank > 2 else tuple(range(rank))
