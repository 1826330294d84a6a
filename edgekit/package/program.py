"""A native program as Python values; program_schema.toml says what each op means.

The lowering builds a Program, program_codec.py turns it into bytes and back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgekit.package.program_schema import numpy_dtype, program_schema

ARENA, CONSTANTS = 0, 1  # indices of the two buffers that every plan starts with
ABSENT = -1  # an optional operand that is not there

BufferKind = Literal["arena", "constants", "input", "output"]


@dataclass
class Buffer:
    """A stretch of memory.

    Attributes:
        kind: arena, constants, input or output; the last two are bound by the caller.
        size_bytes: Size of it.
    """

    kind: BufferKind
    size_bytes: int


@dataclass
class Tensor:
    """A typed, strided window on a buffer of its plan.

    Attributes:
        name: Of the value in the source model, or made up.
        dtype: f32, s8, u8, i32, i64 or bool.
        dims: Each at least 1, at most six.
        strides: In elements; 0 broadcasts, negative runs backwards.
        buffer: Index in Plan.buffers.
        offset_bytes: Of element [0, ..., 0] in the buffer.
        scale: 0: not quantized.
        zero_point: Of quantized values.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    buffer: int
    offset_bytes: int = 0
    scale: float = 0.0
    zero_point: int = 0

    @property
    def element_count(self) -> int:
        """Number of elements, repeated ones counted."""
        return int(np.prod(self.dims, dtype=np.int64))

    @property
    def size_bytes(self) -> int:
        """Bytes of the elements, were they dense."""
        return self.element_count * numpy_dtype(self.dtype).itemsize


@dataclass
class Op:
    """One instruction.

    Attributes:
        opcode: Name in [ops] of the schema.
        inputs, outputs: Tensor indices of the plan; -1: absent.
        attributes: By name; missing ones are 0. Enum attributes are numbers.
        name: Source layer(s), "a+b" when fused.
        macs: Multiply-accumulates.
    """

    opcode: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: dict[str, int | float] = field(default_factory=dict)
    name: str = ""
    macs: int = 0


@dataclass
class Plan:
    """The program for one shape bucket.

    Attributes:
        buffers: Arena, constants, then inputs and outputs.
        tensors: Windows on them.
        ops: In the order they run.
        inputs, outputs: Tensor indices in the order that run() takes and gives them.
    """

    buffers: list[Buffer]
    tensors: list[Tensor]
    ops: list[Op]
    inputs: list[int]
    outputs: list[int]

    @property
    def arena_bytes(self) -> int:
        """Size of the arena."""
        return self.buffers[ARENA].size_bytes


@dataclass
class Program:
    """A whole program.ekn.

    Attributes:
        isa: Name in enums.isa that weights are packed for.
        plans: One a shape bucket, smallest first.
        constants: The section that all plans share.
    """

    isa: str
    plans: list[Plan]
    constants: bytes | memoryview


class ConstantPool:
    """Builds the constants section: equal contents are stored once, each on a 64-byte boundary."""

    def __init__(self) -> None:
        self._alignment = program_schema().alignment_bytes
        self._chunks: list[bytes] = []
        self._offsets: dict[bytes, int] = {}
        self._size = 0

    def add(self, values: NDArray[Any]) -> int:
        """Stores an array, dense and little-endian, unless it is there already.

        Returns:
            Offset in the section, bytes.
        """
        data = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()
        digest = blake2b(data, digest_size=20).digest()
        offset = self._offsets.get(digest)
        if offset is None:
            offset = self._offsets[digest] = self._size
            padding = -len(data) % self._alignment
            self._chunks += [data, bytes(padding)]
            self._size += len(data) + padding
        return offset

    def section(self) -> bytes:
        """The section's bytes, with as many zero guard bytes at the end as kernels may read past an operand."""
        return b"".join([*self._chunks, bytes(self._alignment)])


def dense_strides(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides: list[int] = []
    step = 1
    for dim in reversed(dims):
        strides.insert(0, step)
        step *= dim
    return tuple(strides)
