"""Source operators of one variable as the activations of the program schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.tables import clip_bounds
from edgekit.package.program_schema import program_schema

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Activation:
    """An activation with its two numbers, as enums.activation describes them."""

    name: str = "none"
    alpha: float = 0.0
    beta: float = 0.0

    @property
    def is_identity(self) -> bool:
        """Whether it does nothing."""
        return self.name == "none"

    @property
    def number(self) -> int:
        """Value in enums.activation."""
        return program_schema().enums["activation"][self.name]

    def attributes(self, prefix: str = "") -> dict[str, int | float]:
        """Attribute words: act and, with the prefix, alpha and beta."""
        return {"act": self.number, f"{prefix}alpha": self.alpha, f"{prefix}beta": self.beta}


def _clip(node: ir.Node) -> Activation | None:
    bounds = clip_bounds(node)
    if bounds is None:
        return None
    low, high = (min(max(bound, -_LARGEST), _LARGEST) for bound in bounds)  # programs hold finite numbers only
    return Activation("clip", low, high)


def _with_alpha(name: str, default: float) -> Callable[[ir.Node], Activation]:
    return lambda node: Activation(name, float(graph.attribute(node, "alpha", default)))


def _selu(node: ir.Node) -> Activation:
    alpha = float(graph.attribute(node, "alpha", 1.67326319217681884765625))
    return Activation("selu", alpha, float(graph.attribute(node, "gamma", 1.05070102214813232421875)))


def _hard_sigmoid(node: ir.Node) -> Activation:
    return Activation(
        "hard_sigmoid", float(graph.attribute(node, "alpha", 0.2)), float(graph.attribute(node, "beta", 0.5))
    )


def _gelu(node: ir.Node) -> Activation:
    return Activation("gelu_tanh" if graph.attribute(node, "approximate", "none") == "tanh" else "gelu")


def _swish(node: ir.Node) -> Activation | None:
    return Activation("silu") if float(graph.attribute(node, "alpha", 1.0)) == 1.0 else None


_PLAIN = {
    "Relu": "relu", "Sigmoid": "sigmoid", "HardSwish": "hard_swish", "edgekit.Silu": "silu", "Tanh": "tanh",
    "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Erf": "erf", "Abs": "abs", "Neg": "neg", "Reciprocal": "reciprocal",
    "Floor": "floor", "Ceil": "ceil", "Round": "round", "Sin": "sin", "Cos": "cos", "Softplus": "softplus",
    "Softsign": "softsign",
    "Mish": "mish", "Sign": "sign", "Atan": "atan", "Asin": "asin", "Acos": "acos", "Tan": "tan", "Sinh": "sinh",
    "Cosh": "cosh", "Not": "logical_not",
}  # fmt: skip

_WITH_NUMBERS: dict[str, Callable[[ir.Node], Activation | None]] = {
    "Clip": _clip,
    "LeakyRelu": _with_alpha("leaky_relu", 0.01),
    "Elu": _with_alpha("elu", 1.0),
    "Celu": _with_alpha("celu", 1.0),
    "ThresholdedRelu": _with_alpha("thresholded_relu", 1.0),
    "HardSigmoid": _hard_sigmoid,
    "Selu": _selu,
    "Gelu": _gelu,
    "Swish": _swish,
}
UNARY_OPS = tuple(name for name in (*_PLAIN, *_WITH_NUMBERS) if "." not in name)


def activation_of(node: ir.Node) -> Activation | None:
    """The activation that an operator is; None where it is none, or its bounds are not constant."""
    name = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
    if name in _PLAIN:
        return Activation(_PLAIN[name])
    return _WITH_NUMBERS[name](node) if name in _WITH_NUMBERS else None
