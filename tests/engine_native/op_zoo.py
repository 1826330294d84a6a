"""One small valid program for each op: seeds for mutations.

Run as a script with a folder, it writes them there for native/tools/ek_fuzz_load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from engine_native.programs import INVERTED, PlanBuilder, assemble
from numpy.typing import NDArray

from edgekit.package.program import ConstantPool

_RNG = np.random.default_rng(11)
_WINDOW = {"kernel_h": 3, "kernel_w": 3, "stride_h": 1, "stride_w": 1, "dilation_h": 1, "dilation_w": 1}
_PADS = {"pad_top": 1, "pad_left": 1}
_IMAGE = (1, 5, 6, 4)


class _Zoo:
    """Builds one program of one op."""

    def __init__(self) -> None:
        self._pool = ConstantPool()
        self._builder = PlanBuilder(self._pool)

    def input(self, dtype: str, *dims: int, **rest: Any) -> int:
        return self._builder.bound("input", f"in{len(self._builder.plan.inputs)}", dtype, dims, **rest)

    def output(self, dtype: str, *dims: int, **rest: Any) -> int:
        return self._builder.bound("output", f"out{len(self._builder.plan.outputs)}", dtype, dims, **rest)

    def f32(self, *dims: int) -> int:
        return self.constant("f32", _RNG.normal(size=dims).astype(np.float32))

    def s8(self, *dims: int) -> int:
        return self.constant("s8", _RNG.integers(-127, 128, dims).astype(np.int8))

    def i32(self, values: list[int]) -> int:
        return self.constant("i32", np.array(values, np.int32))

    def constant(self, dtype: str, values: NDArray[Any]) -> int:
        return self._builder.constant("c", dtype, values)

    def finish(self, opcode: str, inputs: tuple[int, ...], outputs: tuple[int, ...], **attributes: float) -> bytes:
        self._builder.op(opcode, inputs, outputs, **attributes)
        return assemble([self._builder], self._pool)


def _conv_q8(z: _Zoo) -> bytes:
    x, residual, y = z.input("u8", *_IMAGE), z.input("u8", 1, 5, 6, 3), z.output("u8", 1, 5, 6, 3)
    w, bias, scale = z.s8(10, 64), z.i32([5, -7, 9]), z.constant("f32", np.full(3, 0.001, np.float32))
    adds = {"fuse_add": 1, "add_lhs_scale": 0.5, "add_rhs_scale": 0.5, "add_max": 255, "y_max": 255}
    table = z.constant("u8", INVERTED)
    return z.finish(
        "conv_q8",
        (x, w, bias, scale, table, residual, z.i32([0, 3, 5, 6, 7, 8, 10]), z.i32([0, 1, 2, 3, 4, 5, 6, 7, 8, 5])),
        (y,),
        groups=1,
        nr=16,
        kg=4,
        x_zero=4,
        fuse_lut=1,
        **_WINDOW,
        **_PADS,
        **adds,
    )


def _conv_q8_orders(z: _Zoo) -> bytes:
    return listed_convolution([0, 3, 5, 6, 7, 8, 10, 12], [*range(10), 4, 32], [0x0F050200, 0x06040C01])


def listed_convolution(starts: list[int] | None, groups: list[int], orders: list[int]) -> bytes:
    """A 3x3 convolution of 16 channels, 12 depth groups a kernel row, whose weights are a list of rows that pick."""
    z = _Zoo()
    scale = z.constant("f32", np.full(3, 0.001, np.float32))
    operands = (z.input("u8", 1, 5, 6, 16), z.s8(len(groups), 64), z.i32([5, -7, 9]), scale)
    lists = (-1 if starts is None else z.i32(starts), z.i32(groups), z.i32(orders))
    image = z.output("u8", 1, 5, 6, 3)
    words = {"groups": 1, "nr": 16, "kg": 4, "y_max": 255, **_WINDOW, **_PADS}
    return z.finish("conv_q8", (*operands, -1, -1, *lists), (image,), **words)


def _conv_q8_winograd(z: _Zoo) -> bytes:
    scale = z.constant("f32", np.full(3, 0.001, np.float32))
    operands = (z.input("u8", *_IMAGE), z.s8(1, 2, 9, 32), z.i32([5, -7, 9]), scale)
    return z.finish("conv_q8_winograd", operands, (z.output("u8", 1, 5, 6, 3),), x_zero=4, y_max=255, **_PADS)


def _depthwise_q8(z: _Zoo) -> bytes:
    operands = (
        z.input("u8", *_IMAGE),
        z.s8(9, 4),
        z.i32([1, 2, 3, 4]),
        z.constant("f32", np.full(4, 0.01, np.float32)),
    )
    return z.finish("depthwise_q8", operands, (z.output("u8", *_IMAGE),), x_zero=4, y_max=255, **_WINDOW, **_PADS)


def _conv_f32(z: _Zoo) -> bytes:
    operands = (z.input("f32", *_IMAGE), z.f32(2, 1, 18, 16), z.f32(6), z.input("f32", 1, 5, 6, 6))
    return z.finish("conv_f32", operands, (z.output("f32", 1, 5, 6, 6),), groups=2, nr=16, act=1, **_WINDOW, **_PADS)


def _depthwise_f32(z: _Zoo) -> bytes:
    operands = (z.input("f32", *_IMAGE), z.f32(9, 4), z.f32(4))
    return z.finish("depthwise_f32", operands, (z.output("f32", *_IMAGE),), act=7, **_WINDOW, **_PADS)


def _pool(z: _Zoo) -> bytes:
    pads = {"pad_bottom": 1, "pad_right": 1, "count_include_pad": 1}
    operands, y = (z.input("f32", *_IMAGE),), (z.output("f32", *_IMAGE),)
    return z.finish("pool", operands, y, kind=1, ratio=1.0, **_WINDOW, **_PADS, **pads)


def _resize_linear(z: _Zoo) -> bytes:
    x, y = z.input("u8", 1, 3, 2, 2), z.output("u8", 1, 4, 3, 2)
    rows = (z.i32([0, 0, 1, 2]), z.i32([0, 1, 2, 2]), z.f32(4))
    columns = (z.i32([0, 0, 1]), z.i32([0, 1, 1]), z.f32(3))
    return z.finish("resize_linear", (x, *rows, *columns), (y,), ratio=1.0)


def _lstm(z: _Zoo) -> bytes:
    operands = (z.input("f32", 3, 2, 4), z.f32(1, 12, 4), z.f32(1, 12, 3), z.f32(1, 24), z.f32(1, 2, 3), z.f32(1, 2, 3))
    outputs = (z.output("f32", 3, 1, 2, 3), z.output("f32", 1, 2, 3), z.output("f32", 1, 2, 3))
    return z.finish("lstm", operands, outputs, hidden=3)


_BUILDERS: dict[str, Callable[[_Zoo], bytes]] = {
    "conv_q8": _conv_q8,
    "conv_q8, orders": _conv_q8_orders,
    "conv_q8_winograd": _conv_q8_winograd,
    "depthwise_q8": _depthwise_q8,
    "conv_f32": _conv_f32,
    "depthwise_f32": _depthwise_f32,
    "matmul_f32": lambda z: z.finish(
        "matmul_f32", (z.input("f32", 2, 3, 4), z.input("f32", 2, 4, 5)), (z.output("f32", 2, 3, 5),), alpha=1.0
    ),
    "binary": lambda z: z.finish(
        "binary", (z.input("f32", 2, 3), z.input("f32", 2, 3)), (z.output("f32", 2, 3),), kind=2
    ),
    "binary_q8": lambda z: z.finish(
        "binary_q8",
        (z.input("u8", 2, 3), z.input("u8", 2, 3)),
        (z.output("u8", 2, 3),),
        a_scale=0.5,
        b_scale=0.5,
        y_max=255,
    ),
    "unary": lambda z: z.finish("unary", (z.input("f32", 4, 5),), (z.output("f32", 4, 5),), act=4),
    "lut_q8": lambda z: z.finish("lut_q8", (z.input("u8", 7), z.constant("u8", INVERTED)), (z.output("u8", 7),)),
    "copy": lambda z: z.finish("copy", (z.input("f32", 4, 5),), (z.output("f32", 4, 5),)),
    "convert": lambda z: z.finish("convert", (z.input("f32", 9),), (z.output("u8", 9, scale=0.1, zero_point=3),)),
    "convert, table": lambda z: z.finish("convert", (z.input("u8", 9, scale=0.1), z.f32(256)), (z.output("f32", 9),)),
    "fill": lambda z: z.finish("fill", (), (z.output("i64", 3, 2),), bits_low=-1),
    "gather": lambda z: z.finish("gather", (z.input("f32", 4, 3), z.input("i64", 5)), (z.output("f32", 5, 3),)),
    "resize_nearest": lambda z: z.finish(
        "resize_nearest",
        (z.input("u8", 1, 3, 2, 2), z.i32([0, 1, 1, 2]), z.i32([0, 0, 1])),
        (z.output("u8", 1, 4, 3, 2),),
    ),
    "resize_linear": _resize_linear,
    "pool": _pool,
    "reduce": lambda z: z.finish("reduce", (z.input("f32", 4, 5),), (z.output("f32", 4, 1),), axes_mask=2, ratio=1.0),
    "softmax": lambda z: z.finish("softmax", (z.input("f32", 4, 5),), (z.output("f32", 4, 5),), axis=1),
    "layer_norm": lambda z: z.finish(
        "layer_norm", (z.input("f32", 4, 5), z.f32(5), z.f32(5)), (z.output("f32", 4, 5),), axes=1, epsilon=1e-5
    ),
    "arg_reduce": lambda z: z.finish("arg_reduce", (z.input("f32", 4, 5),), (z.output("i64", 4, 1),), axis=1),
    "top_k": lambda z: z.finish(
        "top_k", (z.input("f32", 4, 5),), (z.output("f32", 4, 2), z.output("i64", 4, 2)), axis=1, k=2, largest=1
    ),
    "lstm": _lstm,
    "where": lambda z: z.finish(
        "where", (z.input("bool", 3, 2), z.input("f32", 3, 2), z.input("f32", 3, 2)), (z.output("f32", 3, 2),)
    ),
}


def op_zoo() -> dict[str, bytes]:
    """Opcode name to the bytes of a program that has only that op."""
    return {name: build(_Zoo()) for name, build in _BUILDERS.items()}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for opcode, data in op_zoo().items():
        (folder / f"{opcode}.ekn").write_bytes(data)
