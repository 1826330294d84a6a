"""Reference of the ops on values of any rank; see program_interpreter.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgekit.package.program_schema import program_schema
from reference.program_activations import activate
from reference.program_image_ops import requantize, saturate

if TYPE_CHECKING:
    pass

Array = np.ndarray
Attrs = dict[str, float]
Operands = list

_BINARY = {number: name for name, number in program_schema().enums["binary_kind"].items()}
_REDUCE = {number: name for name, number in program_schema().enums["reduce_kind"].items()}
_FLOAT_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power, "min": np.minimum,
    "max": np.maximum, "prelu": lambda a, b: np.where(a < 0, a * b, a), "equal": np.equal, "less": np.less,
    "greater": np.greater, "less_equal": np.less_equal, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor, "mod": np.mod,
    "fmod": np.fmod,
}  # fmt: skip


def _truncating_divide(a: Array, b: Array) -> Array:
    quotient = np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64))
    return np.where((a < 0) != (b < 0), -quotient, quotient)


def matmul_f32(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    left, right = inputs[0].array.astype(np.float64), inputs[1].array.astype(np.float64)
    outputs[0].array[...] = np.float64(np.float32(a["alpha"])) * (left @ right)


def binary(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    left, right, y = inputs[0].array, inputs[1].array, outputs[0].array
    kind = _BINARY[int(a["kind"])]
    function = _truncating_divide if kind == "div" and left.dtype.kind == "i" else _FLOAT_BINARY[kind]
    result = np.asarray(function(left, right))
    y[...] = activate(int(a["act"]), result, a["act_alpha"], a["act_beta"]) if a["act"] else result


def binary_q8(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    left = (inputs[0].array.astype(np.int64) - int(a["a_zero"])).astype(np.float32)
    right = (inputs[1].array.astype(np.int64) - int(a["b_zero"])).astype(np.float32)
    left_scale, right_scale = np.float32(a["a_scale"]), np.float32(a["b_scale"])
    v = {
        "add": lambda: left * left_scale + right * right_scale,
        "sub": lambda: left * left_scale - right * right_scale,
        "mul": lambda: (left * right) * left_scale,
    }[_BINARY[int(a["kind"])]]()
    y = outputs[0].array
    y[...] = saturate(requantize(v, int(a["y_zero"]), int(a["y_min"]), int(a["y_max"])), y.dtype)


def unary(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    outputs[0].array[...] = activate(int(a["act"]), inputs[0].array, a["alpha"], a["beta"])


def lut_q8(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    x, table = inputs[0].array, inputs[1].array
    outputs[0].array[...] = table[x.astype(np.int64) + (128 if x.dtype == np.int8 else 0)]


def copy(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    assert inputs[0].array.dtype == outputs[0].array.dtype
    assert inputs[0].array.shape == outputs[0].array.shape
    outputs[0].array[...] = inputs[0].array


def convert(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    x, y = inputs[0], outputs[0]
    assert x.array.shape == y.array.shape
    small = (np.uint8, np.int8)
    if x.array.dtype == np.float32 and y.array.dtype in small and y.scale > 0:
        q = np.rint(x.array / y.scale).astype(np.float64) + y.zero
        result = saturate(np.nan_to_num(q, nan=y.zero), y.array.dtype)
    elif len(inputs) > 1 and inputs[1] is not None:
        result = inputs[1].array[x.array.astype(np.int64) - np.iinfo(x.array.dtype).min]
    elif x.array.dtype in small and y.array.dtype == np.float32 and x.scale > 0:
        result = (x.array.astype(np.int64) - x.zero).astype(np.float32) * x.scale
    elif x.array.dtype in small and y.array.dtype in small and x.scale > 0 and y.scale > 0:
        v = (x.array.astype(np.int64) - x.zero).astype(np.float32) * np.float32(x.scale / y.scale)
        result = saturate(np.rint(v).astype(np.int64) + y.zero, y.array.dtype)
    elif y.array.dtype == bool:
        result = x.array != 0
    elif x.array.dtype == np.float32 and y.array.dtype.kind in "iu":
        limits = np.iinfo(y.array.dtype)
        truncated = np.trunc(np.nan_to_num(x.array.astype(np.float64)))
        result = np.where(truncated >= limits.max, limits.max, np.where(truncated <= limits.min, limits.min, truncated))
    else:
        result = x.array.astype(y.array.dtype)
    y.array[...] = result


def fill(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    y, bits = outputs[0].array, np.array([int(a["bits_low"])], np.int32)
    if y.dtype.itemsize == 4:
        y[...] = bits.view(y.dtype)[0]
    elif y.dtype.itemsize == 8:
        y[...] = bits.astype(np.int64)[0]
    else:
        y[...] = bits.view(np.uint8)[:1].view(y.dtype)[0]


def gather(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    data, indices, y = inputs[0].array, inputs[1].array, outputs[0].array
    axis = int(a["axis"])
    assert indices.min() >= -data.shape[axis] and indices.max() < data.shape[axis]
    result = np.take(data, indices, axis)
    y[...] = (result.squeeze(axis) if a["drop_index_axis"] else result).reshape(y.shape)


def _reduce_floats(kind: str, x: Array, axes: tuple[int, ...]) -> Array:
    wide = x.astype(np.float64)
    if kind == "log_sum_exp":
        largest = wide.max(axes, keepdims=True)
        return np.log(np.exp(wide - largest).sum(axes, keepdims=True)) + largest
    return {
        "mean": lambda: wide.mean(axes, keepdims=True),
        "max": lambda: wide.max(axes, keepdims=True),
        "min": lambda: wide.min(axes, keepdims=True),
        "sum": lambda: wide.sum(axes, keepdims=True),
        "prod": lambda: wide.prod(axes, keepdims=True),
        "l1": lambda: np.abs(wide).sum(axes, keepdims=True),
        "l2": lambda: np.sqrt((wide**2).sum(axes, keepdims=True)),
        "sum_square": lambda: (wide**2).sum(axes, keepdims=True),
        "log_sum": lambda: np.log(wide.sum(axes, keepdims=True)),
    }[kind]()


def reduce(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    x, y = inputs[0].array, outputs[0].array
    kind, mask = _REDUCE[int(a["kind"])], int(a["axes_mask"])
    axes = tuple(axis for axis in range(x.ndim) if mask >> axis & 1)
    if x.dtype == np.float32:
        y[...] = _reduce_floats(kind, x, axes)
    elif x.dtype in (np.int32, np.int64):
        total = {"max": np.max, "min": np.min, "sum": np.sum, "prod": np.prod, "mean": np.sum}[kind]
        result = total(x.astype(np.int64), axis=axes, keepdims=True)
        count = x.size // result.size
        y[...] = _truncating_divide(result, np.asarray(count)) if kind == "mean" else result
    elif kind in ("max", "min"):
        y[...] = (np.max if kind == "max" else np.min)(x, axis=axes, keepdims=True)
    else:
        acc = (x.astype(np.int64) - int(a["x_zero"])).sum(axes, keepdims=True)
        v = (acc.astype(np.float32) / np.float32(x.size // acc.size)) * np.float32(a["ratio"])
        y[...] = saturate(np.rint(v).astype(np.int64) + int(a["y_zero"]), y.dtype)


def softmax(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    x, axis = inputs[0].array.astype(np.float64), int(a["axis"])
    shifted = x - x.max(axis, keepdims=True)
    total = np.exp(shifted).sum(axis, keepdims=True)
    outputs[0].array[...] = shifted - np.log(total) if a["log"] else np.exp(shifted) / total


def layer_norm(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    x = inputs[0].array.astype(np.float64)
    axes = tuple(range(x.ndim - int(a["axes"]), x.ndim))
    gamma = inputs[1].array if len(inputs) > 1 and inputs[1] is not None else 1.0
    beta = inputs[2].array if len(inputs) > 2 and inputs[2] is not None else 0.0
    centred = x if a["rms"] else x - x.mean(axes, keepdims=True)
    variance = (centred**2).mean(axes, keepdims=True)
    outputs[0].array[...] = centred / np.sqrt(variance + np.float32(a["epsilon"])) * gamma + beta


def arg_reduce(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    x, axis = inputs[0].array, int(a["axis"])
    find = np.argmin if a["least"] else np.argmax
    result = x.shape[axis] - 1 - find(np.flip(x, axis), axis) if a["select_last"] else find(x, axis)
    outputs[0].array[...] = np.expand_dims(result, axis)


def top_k(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    x, axis = inputs[0].array, int(a["axis"])
    key = -x if a["largest"] else x
    order = np.argsort(key, axis=axis, kind="stable")
    order = np.take(order, np.arange(int(a["k"])), axis)
    outputs[0].array[...] = np.take_along_axis(x, order, axis)
    outputs[1].array[...] = order


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    x, w, r, b, h0, c0 = ([operand and operand.array.astype(np.float64) for operand in inputs] + [None] * 3)[:6]
    hidden, steps = int(a["hidden"]), x.shape[0]
    for slot in range(w.shape[0]):
        backwards = int(a["direction"]) == 1 or slot == 1
        bias = 0.0 if b is None else b[slot, : 4 * hidden] + b[slot, 4 * hidden :]
        h = np.zeros((x.shape[1], hidden)) if h0 is None else h0[slot]
        c = np.zeros((x.shape[1], hidden)) if c0 is None else c0[slot]
        for step in reversed(range(steps)) if backwards else range(steps):
            gates = x[step] @ w[slot].T + h @ r[slot].T + bias
            i, o, f, g = np.split(gates, 4, axis=1)
            c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
            h = _sigmoid(o) * np.tanh(c)
            if outputs[0] is not None:
                outputs[0].array[step, slot] = h
        for position, state in ((1, h), (2, c)):
            if len(outputs) > position and outputs[position] is not None:
                outputs[position].array[slot] = state


def where(inputs: Operands, outputs: Operands, a: Attrs) -> None:
    outputs[0].array[...] = np.where(inputs[0].array, inputs[1].array, inputs[2].array)


FUNCTIONS = {
    "matmul_f32": matmul_f32, "binary": binary, "binary_q8": binary_q8, "unary": unary, "lut_q8": lut_q8, "copy": copy,
    "convert": convert, "fill": fill, "gather": gather, "reduce": reduce, "softmax": softmax, "layer_norm": layer_norm,
    "arg_reduce": arg_reduce, "top_k": top_k, "lstm": lstm, "where": where,
}  # fmt: skip
