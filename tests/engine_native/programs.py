"""Small native programs, written by hand, and what they must compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgekit.package.program import Buffer, ConstantPool, Op, Plan, Program, Tensor, dense_strides
from edgekit.package.program_codec import write_program

INVERTED = np.arange(255, -1, -1, dtype=np.uint8)
SCALE, ZERO = 0.0625, 8  # a power of two: every quotient below is exact


class PlanBuilder:
    """Collects the records of one plan; every value is dense and has a buffer range of its own."""

    def __init__(self, pool: ConstantPool) -> None:
        self._pool = pool
        self.plan = Plan([Buffer("arena", 0), Buffer("constants", 0)], [], [], [], [])

    def _add(self, name: str, dtype: str, dims: tuple[int, ...], buffer: int, **rest: Any) -> int:
        self.plan.tensors.append(Tensor(name, dtype, dims, dense_strides(dims), buffer, **rest))
        return len(self.plan.tensors) - 1

    def bound(self, kind: str, name: str, dtype: str, dims: tuple[int, ...], **rest: Any) -> int:
        """An input or output."""
        index = self._add(name, dtype, dims, len(self.plan.buffers), **rest)
        self.plan.buffers.append(Buffer(kind, self.plan.tensors[index].size_bytes))  # type: ignore[arg-type]
        (self.plan.inputs if kind == "input" else self.plan.outputs).append(index)
        return index

    def constant(self, name: str, dtype: str, values: NDArray[Any]) -> int:
        """A constant."""
        return self._add(name, dtype, values.shape, 1, offset_bytes=self._pool.add(values))

    def temporary(self, name: str, dtype: str, dims: tuple[int, ...], **rest: Any) -> int:
        """A value in the arena."""
        arena = self.plan.buffers[0]
        index = self._add(name, dtype, dims, 0, offset_bytes=arena.size_bytes, **rest)
        arena.size_bytes += -(-self.plan.tensors[index].size_bytes // 64) * 64
        return index

    def op(self, opcode: str, inputs: tuple[int, ...], outputs: tuple[int, ...], **attributes: int | float) -> None:
        """An instruction, named after its position."""
        self.plan.ops.append(Op(opcode, inputs, outputs, attributes, name=f"{opcode}_{len(self.plan.ops)}", macs=7))


def assemble(plans: list[PlanBuilder], pool: ConstantPool, isa: str = "scalar") -> bytes:
    """The bytes of a program."""
    constants = pool.section()
    for builder in plans:
        builder.plan.buffers[1].size_bytes = len(constants)
    return write_program(Program(isa, [builder.plan for builder in plans], constants))


def inverter(*widths: int, isa: str = "scalar") -> bytes:
    """y = 255 - quantize(x), one plan a width: x f32 [2, width], y u8 [2, width]."""
    pool = ConstantPool()
    plans = []
    for width in widths:
        builder = PlanBuilder(pool)
        x = builder.bound("input", "x", "f32", (2, width))
        q = builder.temporary("q", "u8", (2, width), scale=SCALE, zero_point=ZERO)
        table = builder.constant("table", "u8", INVERTED)
        y = builder.bound("output", "y", "u8", (2, width))
        builder.op("convert", (x,), (q,))
        builder.op("lut_q8", (q, table), (y,))
        plans.append(builder)
    return assemble(plans, pool, isa)


def inverted(x: NDArray[np.float32]) -> NDArray[np.uint8]:
    """What inverter() must compute."""
    quantized = np.clip(np.rint(x / np.float32(SCALE)) + ZERO, 0, 255).astype(np.uint8)
    return INVERTED[quantized]


@dataclass
class Pointwise:
    """A 1x1 convolution over u8, and its operands."""

    data: bytes
    x: NDArray[np.uint8]
    w: NDArray[np.int8]
    bias: NDArray[np.int32]
    scale: NDArray[np.float32]

    def expected(self) -> NDArray[np.uint8]:
        """The result, from exact integer sums."""
        acc = self.x.astype(np.int64) @ self.w.astype(np.int64).T + self.bias
        value = acc.astype(np.float32) * self.scale
        return np.clip(np.rint(np.clip(value, -3, 252)) + 3, 0, 255).astype(np.uint8)


def pointwise(pixels: int = 256, channels: int = 64, filters: int = 48, isa: str = "scalar") -> Pointwise:
    """y [1, 1, pixels, filters] = conv_q8(x [1, 1, pixels, channels]), u8; channels a multiple of 4, filters of 16."""
    rng = np.random.default_rng(7)
    x = rng.integers(0, 256, (1, 1, pixels, channels), dtype=np.uint8)
    w = rng.integers(-64, 65, (filters, channels), dtype=np.int8)  # no pair is beyond the bound
    bias = rng.integers(-5000, 5000, filters, dtype=np.int32)
    scale = rng.uniform(1e-4, 1e-3, filters).astype(np.float32)
    pool = ConstantPool()
    builder = PlanBuilder(pool)
    panels = w.reshape(filters // 16, 16, channels // 4, 4).transpose(0, 2, 1, 3).reshape(1, filters // 16, -1, 64)
    operands = (
        builder.bound("input", "x", "u8", x.shape),
        builder.constant("w", "s8", panels),
        builder.constant("bias", "i32", bias),
        builder.constant("scale", "f32", scale),
    )
    y = builder.bound("output", "y", "u8", (1, 1, pixels, filters))
    ones = dict.fromkeys(("groups", "kernel_h", "kernel_w", "stride_h", "stride_w", "dilation_h", "dilation_w"), 1)
    builder.op("conv_q8", operands, (y,), **ones, nr=16, kg=4, x_zero=0, y_zero=3, y_min=0, y_max=255)
    return Pointwise(assemble([builder], pool, isa), x, w, bias, scale)
