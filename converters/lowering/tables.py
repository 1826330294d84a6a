"""Tables: dequantize -> elementwise operators of one variable -> quantize, as 256 entries.

A region is found from its QuantizeLinear backwards. Its entries are computed in float32 operator by operator, so a
table equals the composition that it replaces.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.graph import Array
from edgekit.converters.lowering.views import Quant
from edgekit.package.program_schema import numpy_dtype

Floats = NDArray[Any]


def quantize(values: Floats, quant: Quant, dtype: str) -> Array:
    """sat(rne(x / scale) + zero), NaN to the zero point, in the program dtype u8 or s8."""
    limits = np.iinfo(numpy_dtype(dtype))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        scaled = np.rint(values / np.float32(quant.scale))
    scaled = np.nan_to_num(scaled.astype(np.float64), nan=0.0, posinf=1e9, neginf=-1e9)
    clipped: Array = np.clip(scaled + quant.zero, limits.min, limits.max).astype(limits.dtype)
    return clipped


def dequantize_all(quant: Quant, dtype: str) -> Floats:
    """The 256 floats that a byte of a quantized tensor can stand for, from the least stored value upwards."""
    limits = np.iinfo(numpy_dtype(dtype))
    stored = np.arange(limits.min, limits.max + 1)
    return (stored - quant.zero).astype(np.float32) * np.float32(quant.scale)


def identity_table(source: Quant, target: Quant, dtype: str) -> Array:
    """Entries that change the quantization and nothing else."""
    return quantize(dequantize_all(source, dtype), target, dtype)


def _erf(x: Floats) -> Floats:
    return np.array([math.erf(v) for v in x.reshape(-1)], x.dtype).reshape(x.shape)


def _sigmoid(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return (1.0 / (1.0 + np.exp(-x.astype(np.float64)))).astype(np.float32)


def _softplus(x: Floats) -> Floats:
    return np.logaddexp(0.0, x.astype(np.float64)).astype(np.float32)


def _gelu(x: Floats, node: ir.Node) -> Floats:
    wide = x.astype(np.float64)
    if graph.attribute(node, "approximate", "none") == "tanh":
        inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
        return np.asarray(0.5 * wide * (1 + np.tanh(inner)), np.float32)
    return np.asarray(0.5 * wide * (1 + _erf(wide / np.sqrt(2))), np.float32)


def _number(node: ir.Node, name: str, default: float) -> np.float32:
    return np.float32(graph.attribute(node, name, default))


def _clip(node: ir.Node, x: Floats, *limits: Floats) -> Floats:
    bounds = clip_bounds(node)
    return x if bounds is None else np.minimum(np.maximum(x, np.float32(bounds[0])), np.float32(bounds[1]))


def _hard_sigmoid(x: Floats, node: ir.Node) -> Floats:
    line = _number(node, "alpha", 0.2) * x + _number(node, "beta", 0.5)
    return np.asarray(np.clip(line, np.float32(0), np.float32(1)))


def _elu(x: Floats, node: ir.Node) -> Floats:
    return np.where(x < 0, _number(node, "alpha", 1.0) * np.expm1(np.minimum(x, 0)), x)


def _selu(x: Floats, node: ir.Node) -> Floats:
    alpha, gamma = _number(node, "alpha", 1.67326319217681884765625), _number(node, "gamma", 1.05070102214813232421875)
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _celu(x: Floats, node: ir.Node) -> Floats:
    alpha = _number(node, "alpha", 1.0)
    return np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(np.minimum(x, 0) / alpha))


_Function = Callable[..., Array]

_FUNCTIONS: dict[str, _Function] = {
    "Relu": lambda n, x: np.maximum(x, 0),
    "Clip": _clip,
    "LeakyRelu": lambda n, x: np.where(x < 0, _number(n, "alpha", 0.01) * x, x),
    "Sigmoid": lambda n, x: _sigmoid(x),
    "HardSigmoid": lambda n, x: _hard_sigmoid(x, n),
    "HardSwish": lambda n, x: x * np.clip(x / np.float32(6) + np.float32(0.5), np.float32(0), np.float32(1)),
    "edgekit.Silu": lambda n, x: x * _sigmoid(x),
    "Swish": lambda n, x: x * _sigmoid(_number(n, "alpha", 1.0) * x),
    "Gelu": lambda n, x: _gelu(x, n),
    "Tanh": lambda n, x: np.tanh(x),
    "Exp": lambda n, x: np.exp(x),
    "Log": lambda n, x: np.log(x),
    "Sqrt": lambda n, x: np.sqrt(x),
    "Erf": lambda n, x: _erf(x),
    "Abs": lambda n, x: np.abs(x),
    "Neg": lambda n, x: -x,
    "Reciprocal": lambda n, x: np.float32(1) / x,
    "Floor": lambda n, x: np.floor(x),
    "Ceil": lambda n, x: np.ceil(x),
    "Round": lambda n, x: np.rint(x),
    "Sin": lambda n, x: np.sin(x),
    "Cos": lambda n, x: np.cos(x),
    "Elu": lambda n, x: _elu(x, n),
    "Selu": lambda n, x: _selu(x, n),
    "Celu": lambda n, x: _celu(x, n),
    "Softplus": lambda n, x: _softplus(x),
    "Softsign": lambda n, x: x / (1 + np.abs(x)),
    "Mish": lambda n, x: x * np.tanh(_softplus(x)),
    "Sign": lambda n, x: np.sign(x),
    "ThresholdedRelu": lambda n, x: np.where(x > _number(n, "alpha", 1.0), x, np.float32(0)),
    "Add": lambda n, a, b: a + b,
    "Sub": lambda n, a, b: a - b,
    "Mul": lambda n, a, b: a * b,
    "Div": lambda n, a, b: a / b,
    "Pow": lambda n, a, b: np.power(a, b.astype(np.float32)),
    "PRelu": lambda n, a, b: np.where(a < 0, a * b, a),
    "Max": lambda n, *xs: np.maximum.reduce(np.broadcast_arrays(*xs)),
    "Min": lambda n, *xs: np.minimum.reduce(np.broadcast_arrays(*xs)),
    "Identity": lambda n, x: x,
}
TABLE_OPS = tuple(_FUNCTIONS)


def clip_bounds(node: ir.Node) -> tuple[float, float] | None:
    """Constant bounds of Relu or Clip, infinite where open; None where the bounds are not constant."""
    if graph.is_op(node, "Relu"):
        return 0.0, math.inf
    bounds = []
    for index, default in ((1, -math.inf), (2, math.inf)):
        value = graph.operand(node, index)
        bound = default if value is None else graph.constant_scalar(value)
        if bound is None:
            return None
        bounds.append(bound)
    return bounds[0], bounds[1]


def is_function(node: ir.Node) -> bool:
    """Whether a node is an operator of one variable with a table: whatever else it reads is constant and scalar."""
    if not graph.is_op(node, *TABLE_OPS) or not _is_region_node(node) or graph.constant_of(node.inputs[0]) is not None:
        return False
    return all(value is None or graph.constant_scalar(value) is not None for value in node.inputs[1:])


def function_table(node: ir.Node, source: Quant, dtype: str) -> Floats:
    """What is_function(node) makes of every stored value of a quantized variable.

    Args:
        node: The operator.
        source: Quantization of its variable.
        dtype: u8 or s8, of the variable.

    Returns:
        float32 [256], from the least stored value upwards.
    """
    name = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
    constants = [graph.constant_of(value) for value in node.inputs[1:] if value is not None]
    with np.errstate(all="ignore"):
        return _FUNCTIONS[name](node, dequantize_all(source, dtype), *constants).reshape(256).astype(np.float32)


@dataclass(frozen=True)
class TableRegion:
    """Elementwise operators of one variable before a QuantizeLinear.

    Attributes:
        source: The float value that all of it depends on.
        nodes: The operators, in topological order.
        quantizer: The QuantizeLinear.
    """

    source: ir.Value
    nodes: tuple[ir.Node, ...]
    quantizer: ir.Node

    def table(self, source: Quant, target: Quant, dtype: str) -> Array:
        """The entries, by stored value of the source from the least upwards.

        Args:
            source: Quantization of the variable.
            target: Quantization of the result.
            dtype: u8 or s8, of both.
        """
        known: dict[ir.Value, Floats] = {self.source: dequantize_all(source, dtype)}
        with np.errstate(all="ignore"):
            for node in self.nodes:
                name = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
                operands = [_operand(known, value) for value in node.inputs if value is not None]
                known[node.outputs[0]] = _FUNCTIONS[name](node, *operands).astype(np.float32)
        result = known[graph.required(self.quantizer, 0)]
        return quantize(np.broadcast_to(result, (256,)), target, dtype)


def _operand(known: dict[ir.Value, Floats], value: ir.Value) -> Floats:
    if value in known:
        return known[value]
    constant = graph.constant_of(value)
    assert constant is not None
    return constant.reshape(())


def find_region(quantizer: ir.Node) -> TableRegion | None:
    """The region that ends in a QuantizeLinear; None where there is none or something outside reads its inside."""
    inside: dict[ir.Node, None] = {}
    sources: dict[ir.Value, None] = {}
    pending = [graph.required(quantizer, 0)]
    while pending:
        value = pending.pop()
        producer = value.producer()
        if graph.constant_of(value) is not None:
            if graph.constant_scalar(value) is None:
                return None
        elif producer is not None and graph.is_op(producer, *TABLE_OPS) and _is_region_node(producer):
            if producer not in inside:
                inside[producer] = None
                pending += [v for v in producer.inputs if v is not None]
        else:
            sources[value] = None
    if not inside or len(sources) != 1:
        return None
    source = next(iter(sources))
    members = {*inside, quantizer}
    for node in inside:
        for output in node.outputs:
            closed = not output.is_graph_output() and all(c in members for c in graph.consumers(output))
            if not closed or output.shape is None or output.shape != source.shape:
                return None
    return TableRegion(source, tuple(_topological(inside)), quantizer)


def _is_region_node(node: ir.Node) -> bool:
    return not graph.is_op(node, "Clip") or clip_bounds(node) is not None


def _topological(nodes: dict[ir.Node, None]) -> list[ir.Node]:
    ordered: list[ir.Node] = []

    def visit(node: ir.Node) -> None:
        if node in nodes and node not in ordered:
            for value in node.inputs:
                producer = None if value is None else value.producer()
                if producer is not None:
                    visit(producer)
            ordered.append(node)

    for node in nodes:
        visit(node)
    return ordered


class TableRegions:
    """All regions of a graph, by the nodes inside and by the value they depend on."""

    def __init__(self, source: ir.Graph) -> None:
        self._by_node: dict[ir.Node, TableRegion] = {}
        self._by_source: dict[ir.Value, list[TableRegion]] = {}
        for node in source:
            region = find_region(node) if graph.is_op(node, "QuantizeLinear") else None
            if region is not None:
                self._by_source.setdefault(region.source, []).append(region)
                self._by_node.update(dict.fromkeys(region.nodes, region))

    def holding(self, node: ir.Node) -> TableRegion | None:
        """The region that a node is inside of."""
        return self._by_node.get(node)

    def only_reader(self, value: ir.Value) -> TableRegion | None:
        """The region that alone reads a float value."""
        regions = self._by_source.get(value, [])
        if len(regions) != 1 or value.is_graph_output():
            return None
        inside = set(regions[0].nodes)
        return regions[0] if all(node in inside for node in graph.consumers(value)) else None
