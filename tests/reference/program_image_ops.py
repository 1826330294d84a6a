"""Reference of the ops on images [N, H, W, C] and of products; see program_interpreter.py."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from reference.program_activations import activate

if TYPE_CHECKING:
    from reference.program_interpreter import Operand

Array = np.ndarray
Attrs = dict[str, float]


def saturate(values: Array, dtype: np.dtype) -> Array:
    """sat(): clamps integers held as any numbers to a dtype."""
    limits = np.iinfo(dtype)
    return np.clip(values, limits.min, limits.max).astype(dtype)


def requantize(v: Array, zero: int, low: int, high: int) -> Array:
    """min(max(v, low - zero), high - zero), rounded half to even, plus zero; as int64."""
    clamped = np.minimum(np.maximum(v, np.float32(low - zero)), np.float32(high - zero))
    return np.rint(clamped).astype(np.int64) + zero


def taps(x: Array, y_shape: tuple[int, ...], a: Attrs, outside: float) -> Array:
    """[N, OH, OW, KH, KW, C]: what each kernel position sees; `outside` beyond the image."""
    height, width = x.shape[1:3]
    _, out_h, out_w, _ = y_shape
    kernel_h, kernel_w = int(a["kernel_h"]), int(a["kernel_w"])
    rows = (
        np.arange(out_h)[:, None] * int(a["stride_h"]) - int(a["pad_top"]) + np.arange(kernel_h) * int(a["dilation_h"])
    )
    cols = (
        np.arange(out_w)[:, None] * int(a["stride_w"]) - int(a["pad_left"]) + np.arange(kernel_w) * int(a["dilation_w"])
    )
    seen = x[:, np.clip(rows, 0, height - 1)][:, :, :, np.clip(cols, 0, width - 1)]  # [N, OH, KH, OW, KW, C]
    row_inside, col_inside = (rows >= 0) & (rows < height), (cols >= 0) & (cols < width)
    inside = row_inside[:, :, None, None] & col_inside[None, None]
    seen = np.where(inside[None, ..., None], seen, np.asarray(outside, x.dtype))
    return seen.transpose(0, 1, 3, 2, 4, 5)


def inside_count(x: Array, y_shape: tuple[int, ...], a: Attrs) -> Array:
    """[OH, OW]: taps inside the image, or with count_include_pad inside the image extended by its pads."""
    extend = int(a["count_include_pad"])
    counts = []
    for axis, (size, kernel, stride, dilation, before, after) in enumerate(
        (
            (x.shape[1], a["kernel_h"], a["stride_h"], a["dilation_h"], a["pad_top"], a["pad_bottom"]),
            (x.shape[2], a["kernel_w"], a["stride_w"], a["dilation_w"], a["pad_left"], a["pad_right"]),
        )
    ):
        positions = np.arange(y_shape[axis + 1])[:, None] * stride - before + np.arange(kernel) * dilation
        low, high = (-before, size + after) if extend else (0, size)
        counts.append(((positions >= low) & (positions < high)).sum(1))
    return counts[0][:, None] * counts[1][None]


ROW_FORMS = ("0123", "0213", "0312", "0C23", "012C", "0C2C")  # C: complemented


def from_rows(
    w: Array,
    rows: tuple[Array, Array, Array | None],
    shape: tuple[int, int, int],
    of_ones: int = 255,
) -> tuple[Array, Array]:
    """INT8 weights as a list of rows [n, nr * 4] -> [groups, panels, depth groups, nr * 4], and what they add besides.

    rows: row_start, row_group and row_order.
    of_ones: value of a complemented zero, 255 or -1.
    """
    row_start, row_group, row_order = rows
    groups, panels, count = shape
    dense = np.zeros((groups * panels, count, w.shape[1] // 4, 4), np.int64)
    besides = np.zeros((groups * panels, w.shape[1] // 4), np.int64)
    forms, orders = len(ROW_FORMS), iter(())
    if row_order is not None:
        forms, orders = forms + 1, iter(row_order.astype("<i4").view(np.uint8).reshape(-1, 4).tolist())
    for segment, (first, last) in enumerate(itertools.pairwise(row_start)):
        panel, form = segment * groups * panels // (len(row_start) - 1), segment % forms
        for i in range(first, last):
            taken = ROW_FORMS[form] if form < len(ROW_FORMS) else next(orders)
            for position, byte in enumerate(taken):
                values = w[i].reshape(-1, 4)[:, position].astype(np.int64)
                depth = position if byte == "C" else int(byte)
                dense[panel, row_group[i] + depth // 4, :, depth % 4] += -values if byte == "C" else values
                besides[panel] += of_ones * values if byte == "C" else 0
    return dense.reshape(*shape, -1), besides.reshape(groups, -1)


def unpack(w: Array, channels_per_group: int, runs: tuple[int, int], kg: int) -> Array:
    """Packed INT8 weights [groups, panels, depth groups, nr * kg] -> [groups, OCg, K]; runs: how many, how long."""
    groups, panels, depth_groups, lanes = w.shape
    spread = w.reshape(groups, panels, depth_groups, lanes // kg, kg).transpose(0, 1, 3, 2, 4)
    padded = spread.reshape(groups, panels * (lanes // kg), runs[0], -1)
    return padded[:, :channels_per_group, :, : runs[1]].reshape(groups, channels_per_group, -1)


def finish_q8(acc: Array, inputs: list[Operand | None], y: Operand, a: Attrs) -> None:
    """Everything behind the integer sum."""
    scale, lut = inputs[3].array, inputs[4].array if len(inputs) > 4 and inputs[4] is not None else None
    t = requantize(acc.astype(np.float32) * scale, int(a["y_zero"]), int(a["y_min"]), int(a["y_max"]))
    if a["fuse_lut"]:
        t = lut[t + (128 if y.array.dtype == np.int8 else 0)].astype(np.int64)
    if a["fuse_add"]:
        r = inputs[5].array.astype(np.int64)
        left = (t - int(a["add_lhs_zero"])).astype(np.float32) * np.float32(a["add_lhs_scale"])
        right = (r - int(a["add_rhs_zero"])).astype(np.float32) * np.float32(a["add_rhs_scale"])
        t = requantize(left + right, int(a["add_zero"]), int(a["add_min"]), int(a["add_max"]))
    y.array[...] = saturate(t, y.array.dtype)


def conv_q8(inputs: list[Operand | None], outputs: list[Operand | None], a: Attrs) -> None:
    x, w, bias, y = inputs[0].array, inputs[1].array, inputs[2].array, outputs[0]
    groups, out_channels = int(a["groups"]), y.array.shape[3]
    seen = taps(x, y.array.shape, a, a["x_zero"])
    n, out_h, out_w, kernel_h, kernel_w, channels = seen.shape
    seen = seen.reshape(n, out_h, out_w, kernel_h, kernel_w, groups, channels // groups)
    run = kernel_w * (channels // groups)
    depth, kg = kernel_h * run, int(a["kg"])
    if len(inputs) > 6 and inputs[6] is not None:
        shape = (groups, -(-out_channels // groups // int(a["nr"])), kernel_h * -(-run // kg))
        row_order = inputs[8].array if len(inputs) > 8 and inputs[8] is not None else None
        rows = inputs[6].array, inputs[7].array, row_order
        w, besides = from_rows(w, rows, shape, 255 if x.dtype == np.uint8 else -1)
        bias = bias + besides[:, : out_channels // groups].reshape(-1)
    weights = unpack(w, out_channels // groups, (kernel_h, run), kg)
    acc = np.empty((n, out_h, out_w, groups, out_channels // groups), np.int64)
    for group in range(groups):
        rows = seen[..., group, :].reshape(-1, depth).astype(np.float64)  # exact: sums stay below 2**53
        sums = rows @ weights[group].T.astype(np.float64)
        acc[..., group, :] = np.rint(sums).astype(np.int64).reshape(n, out_h, out_w, -1)
    acc = acc.reshape(y.array.shape) + bias
    assert np.abs(acc).max() < 2**31, "int32 overflow"
    finish_q8(acc, inputs, y, a)


def from_winograd(w: Array, out_channels: int, channels: int) -> Array:
    """Packed weights [panels, pairs, 9, 32] -> [OC, KH, KW, IC]."""
    panels, pairs = w.shape[:2]
    spread = w.reshape(panels, pairs, 3, 3, 16, 2).transpose(0, 4, 2, 3, 1, 5).reshape(panels * 16, 3, 3, pairs * 2)
    return spread[:out_channels, :, :, :channels].astype(np.int64)


def conv_q8_winograd(inputs: list[Operand | None], outputs: list[Operand | None], a: Attrs) -> None:
    x, w, bias, y = inputs[0].array, inputs[1].array, inputs[2].array, outputs[0]
    names = ("kernel", "stride", "dilation")
    window = {f"{name}_{axis}": 3 if name == "kernel" else 1 for name in names for axis in "hw"}
    seen = taps(x, y.array.shape, {**a, **window}, a["x_zero"]).astype(np.int64)
    weights = from_winograd(w, y.array.shape[3], x.shape[3])
    finish_q8(np.tensordot(seen, weights, ([3, 4, 5], [1, 2, 3])) + bias, inputs, y, a)


def depthwise_q8(inputs: list[Operand | None], outputs: list[Operand | None], a: Attrs) -> None:
    x, w, bias, y = inputs[0].array, inputs[1].array, inputs[2].array, outputs[0]
    seen = taps(x, y.array.shape, a, a["x_zero"]).astype(np.int64)
    seen = seen.reshape(*seen.shape[:3], -1, seen.shape[5])
    finish_q8((seen * w.astype(np.int64)).sum(3) + bias, inputs, y, a)


def finish_f32(acc: Array, residual: Operand | None, y: Operand, a: Attrs) -> None:
    """Activation and residual, in the order that the attributes say."""
    result = acc.astype(np.float32)
    if residual is not None and a["add_before_act"]:
        result = result + residual.array
    result = activate(int(a["act"]), result, a["act_alpha"], a["act_beta"])
    if residual is not None and not a["add_before_act"]:
        result = result + residual.array
    y.array[...] = result


def conv_f32(inputs: list[Operand | None], outputs: list[Operand | None], a: Attrs) -> None:
    x, w, bias, y = inputs[0].array, inputs[1].array, inputs[2].array, outputs[0]
    groups, out_channels = int(a["groups"]), y.array.shape[3]
    seen = taps(x, y.array.shape, a, 0.0)
    n, out_h, out_w, kernel_h, kernel_w, channels = seen.shape
    seen = seen.reshape(n, out_h, out_w, kernel_h, kernel_w, groups, channels // groups)
    acc = np.empty((n, out_h, out_w, groups, out_channels // groups))
    for group in range(groups):
        weights = w[group].transpose(0, 2, 1).reshape(-1, w.shape[2])[: out_channels // groups]
        rows = seen[..., group, :].reshape(n * out_h * out_w, -1).astype(np.float64)
        acc[..., group, :] = (rows @ weights.T.astype(np.float64)).reshape(n, out_h, out_w, -1)
    finish_f32(acc.reshape(y.array.shape) + bias, inputs[3] if len(inputs) > 3 else None, y, a)


def depthwise_f32(inputs: list[Operand | None], outputs: list[Operand | None], a: Attrs) -> None:
    x, w, bias, y = inputs[0].array, inputs[1].array, inputs[2].array, outputs[0]
    seen = taps(x, y.array.shape, a, 0.0).astype(np.float64)
    seen = seen.reshape(*seen.shape[:3], -1, seen.shape[5])
    finish_f32((seen * w).sum(3) + bias, inputs[3] if len(inputs) > 3 else None, y, a)


def pool(inputs: list[Operand | None], outputs: list[Operand | None], a: Attrs) -> None:
    x, y = inputs[0].array, outputs[0].array
    quantized = x.dtype != np.float32
    if a["kind"] == 0:
        lowest = np.iinfo(x.dtype).min if quantized else -np.inf
        y[...] = taps(x, y.shape, a, lowest).max((3, 4))
        return
    count = inside_count(x, y.shape, a)[None, :, :, None].astype(np.float32)
    if not quantized:
        y[...] = taps(x, y.shape, a, 0.0).astype(np.float64).sum((3, 4)) / count
        return
    acc = (taps(x.astype(np.int64), y.shape, a, a["x_zero"]) - int(a["x_zero"])).sum((3, 4))
    v = (acc.astype(np.float32) / count) * np.float32(a["ratio"])
    y[...] = saturate(np.rint(v).astype(np.int64) + int(a["y_zero"]), y.dtype)


def resize_nearest(inputs: list[Operand | None], outputs: list[Operand | None], a: Attrs) -> None:
    x, rows, cols = (operand.array for operand in inputs)
    outputs[0].array[...] = x[:, rows][:, :, cols]


def resize_linear(inputs: list[Operand | None], outputs: list[Operand | None], a: Attrs) -> None:
    x, y0, y1, wy, x0, x1, wx = (operand.array for operand in inputs)
    y = outputs[0].array
    quantized = x.dtype != np.float32
    source = (x.astype(np.int64) - int(a["x_zero"])).astype(np.float32) if quantized else x
    wx, wy = wx[None, None, :, None], wy[None, :, None, None]

    def row(index: Array) -> Array:
        left, right = source[:, index][:, :, x0], source[:, index][:, :, x1]
        return left + (right - left) * wx

    top, bottom = row(y0), row(y1)
    v = top + (bottom - top) * wy
    if quantized:
        v = saturate(np.rint(v * np.float32(a["ratio"])).astype(np.int64) + int(a["y_zero"]), y.dtype)
    y[...] = v


FUNCTIONS = {
    "conv_q8": conv_q8,
    "conv_q8_winograd": conv_q8_winograd,
    "depthwise_q8": depthwise_q8,
    "conv_f32": conv_f32,
    "depthwise_f32": depthwise_f32,
    "pool": pool,
    "resize_nearest": resize_nearest,
    "resize_linear": resize_linear,
}
