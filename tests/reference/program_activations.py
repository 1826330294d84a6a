"""Reference of enums.activation; see program_interpreter.py."""

from __future__ import annotations

import math

import numpy as np

from edgekit.package.program_schema import program_schema

Array = np.ndarray
_NAMES = {number: name for name, number in program_schema().enums["activation"].items()}
_erf = np.vectorize(math.erf, otypes=[np.float64])


def activate(number: int, x: Array, alpha: float = 0.0, beta: float = 0.0) -> Array:
    """act(x), in x's dtype. Transcendental ones are computed in double and rounded once."""
    name = _NAMES[number]
    a, b = np.float32(alpha), np.float32(beta)
    if x.dtype.kind in "ib":
        return _activate_integers(name, x, a, b)
    wide = x.astype(np.float64)
    result = {
        "none": lambda: x,
        "relu": lambda: np.maximum(x, 0),
        "clip": lambda: np.minimum(np.maximum(x, a), b),
        "leaky_relu": lambda: np.where(x < 0, a * x, x),
        "sigmoid": lambda: 1 / (1 + np.exp(-wide)),
        "hard_sigmoid": lambda: np.minimum(np.maximum(a * x + b, np.float32(0)), np.float32(1)),
        "hard_swish": lambda: x * np.minimum(np.maximum(x / np.float32(6) + np.float32(0.5), 0), 1),
        "silu": lambda: wide / (1 + np.exp(-wide)),
        "gelu": lambda: 0.5 * wide * (1 + _erf(wide / math.sqrt(2))),
        "gelu_tanh": lambda: 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))),
        "tanh": lambda: np.tanh(wide),
        "exp": lambda: np.exp(wide),
        "log": lambda: np.log(wide),
        "sqrt": lambda: np.sqrt(x),
        "erf": lambda: _erf(wide),
        "abs": lambda: np.abs(x),
        "neg": lambda: -x,
        "reciprocal": lambda: np.float32(1) / x,
        "floor": lambda: np.floor(x),
        "ceil": lambda: np.ceil(x),
        "round": lambda: np.rint(x),
        "sin": lambda: np.sin(wide),
        "cos": lambda: np.cos(wide),
        "elu": lambda: np.where(wide < 0, a * np.expm1(np.minimum(wide, 0)), wide),
        "selu": lambda: b * np.where(wide > 0, wide, a * np.expm1(np.minimum(wide, 0))),
        "softplus": lambda: np.logaddexp(0, wide),
        "softsign": lambda: x / (1 + np.abs(x)),
        "mish": lambda: wide * np.tanh(np.logaddexp(0, wide)),
        "sign": lambda: np.sign(x),
        "affine": lambda: a * x + b,
        "celu": lambda: np.maximum(wide, 0) + np.minimum(0, a * np.expm1(np.minimum(wide, 0) / np.float64(a))),
        "thresholded_relu": lambda: np.where(x > a, x, 0),
        "square": lambda: x * x,
        "atan": lambda: np.arctan(wide),
        "asin": lambda: np.arcsin(wide),
        "acos": lambda: np.arccos(wide),
        "tan": lambda: np.tan(wide),
        "sinh": lambda: np.sinh(wide),
        "cosh": lambda: np.cosh(wide),
    }[name]()
    return np.asarray(result).astype(np.float32)


def _activate_integers(name: str, x: Array, a: np.float32, b: np.float32) -> Array:
    result = {
        "abs": lambda: np.abs(x),
        "neg": lambda: -x,
        "sign": lambda: np.sign(x),
        "relu": lambda: np.maximum(x, 0),
        "clip": lambda: np.clip(x, int(a), int(b)),
        "logical_not": lambda: ~x,
        "none": lambda: x,
    }[name]()
    return np.asarray(result).astype(x.dtype)
