"""What a quantized product takes in behind itself: activation, quantizer, table, residual.

    product -> [Relu | Clip] -> Q [-> DQ -> table region -> Q] [-> DQ -> Add(other) -> [Relu | Clip] -> Q]

Each step is taken only where nothing else reads what it would hide, so the fused operation equals the composition.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.graph import Array
from edgekit.converters.lowering.tables import clip_bounds, quantize
from edgekit.converters.lowering.views import Dims, Quant, View
from edgekit.package.program_schema import numpy_dtype


@dataclass(frozen=True)
class Residual:
    """The other operand of a fused Add and the result's quantization.

    Attributes:
        view: Quantized, of the result's dims.
        quant: Of the sum.
        low, high: Stored values that the sum is clamped to.
    """

    view: View
    quant: Quant
    low: int
    high: int


@dataclass
class QuantizedTail:
    """Attributes:
    result: The quantized value that the fused operation gives.
    quant: Quantization of the product, before table and residual.
    low, high: Stored values that the product is clamped to.
    nodes: Everything taken in, without the product itself.
    lut: Table, if any, and the quantization that it gives.
    residual: Fused Add, if any.
    """  # noqa: D205

    result: ir.Value
    quant: Quant
    low: int
    high: int
    nodes: list[ir.Node] = field(default_factory=list)
    lut: Array | None = None
    lut_quant: Quant | None = None
    residual: Residual | None = None

    @property
    def final_quant(self) -> Quant:
        """Quantization of the result."""
        if self.residual is not None:
            return self.residual.quant
        return self.lut_quant or self.quant

    def attributes(self) -> dict[str, int | float]:
        """The epilogue attributes of conv_q8 and depthwise_q8."""
        words: dict[str, int | float] = {
            "y_zero": self.quant.zero,
            "y_min": self.low,
            "y_max": self.high,
            "fuse_lut": int(self.lut is not None),
            "fuse_add": int(self.residual is not None),
        }
        if self.residual is not None:
            before, other, after = self.lut_quant or self.quant, self.residual.view.quant, self.residual.quant
            assert other is not None
            words |= {
                "add_lhs_zero": before.zero,
                "add_lhs_scale": scale_ratio(before.scale, after.scale),
                "add_rhs_zero": other.zero,
                "add_rhs_scale": scale_ratio(other.scale, after.scale),
                "add_zero": after.zero,
                "add_min": self.residual.low,
                "add_max": self.residual.high,
            }
        return words


def scale_ratio(numerator: float, denominator: float) -> float:
    """A quotient of scales, rounded once to float32."""
    return float(np.float32(np.float64(numerator) / np.float64(denominator)))


@dataclass(frozen=True)
class QuantizedEnd:
    """[Relu | Clip] -> QuantizeLinear behind a value.

    Attributes:
        result: Output of the quantizer.
        quant: Its parameters.
        low, high: Clamp in stored values.
        nodes: The nodes passed.
    """

    result: ir.Value
    quant: Quant
    low: int
    high: int
    nodes: tuple[ir.Node, ...]


def match_quantized_end(value: ir.Value, act_dtype: str) -> QuantizedEnd | None:
    """Finds [Relu | Clip] -> Q behind a value that nothing else reads."""
    nodes: list[ir.Node] = []
    bounds = (-np.inf, np.inf)
    node = graph.sole_consumer(value)
    if node is not None and graph.is_op(node, "Relu", "Clip") and node.inputs[0] is value:
        clip = clip_bounds(node)
        if clip is None:
            return None
        bounds = clip
        nodes.append(node)
        node = graph.sole_consumer(node.outputs[0])
    if node is None or not graph.is_op(node, "QuantizeLinear"):
        return None
    quant = graph.quant_parameters(node, act_dtype)
    if quant is None:
        return None
    nodes.append(node)
    low, high = (int(q) for q in quantize(np.asarray(bounds, np.float32), quant, act_dtype))
    return QuantizedEnd(node.outputs[0], quant, low, high, tuple(nodes))


def match_quantized_tail(build: PlanBuilder, value: ir.Value, dims: Dims) -> QuantizedTail | None:
    """Finds all that the product giving `value` takes in; None where its result isn't quantized.

    Args:
        build: State of the lowering.
        value: Output of the product.
        dims: Its dims.
    """
    act_dtype = build.packing.act
    end = match_quantized_end(value, act_dtype)
    if end is None:
        return None
    tail = QuantizedTail(end.result, end.quant, end.low, end.high, list(end.nodes))
    _take_table(build, tail)
    _take_residual(build, tail, dims)
    return tail


def _dequantized(value: ir.Value) -> ir.Node | None:
    """The DequantizeLinear that alone reads a quantized value."""
    node = graph.sole_consumer(value)
    return node if graph.is_op(node, "DequantizeLinear") else None


def _take_table(build: PlanBuilder, tail: QuantizedTail) -> None:
    reader = _dequantized(tail.result)
    if reader is None:
        return
    floats = reader.outputs[0]
    follower = graph.sole_consumer(floats)
    if follower is not None and graph.is_op(follower, "QuantizeLinear"):
        region = None
        target = graph.quant_parameters(follower, build.packing.act)
        nodes, quantizer = [reader, follower], follower
    else:
        region = build.regions.only_reader(floats)
        if region is None:
            return
        target = graph.quant_parameters(region.quantizer, build.packing.act)
        nodes, quantizer = [reader, *region.nodes, region.quantizer], region.quantizer
    if target is None:
        return
    tail.lut = build.table(region, tail.quant, target)
    tail.lut_quant = target
    tail.nodes += nodes
    tail.result = quantizer.outputs[0]


def _take_residual(build: PlanBuilder, tail: QuantizedTail, dims: Dims) -> None:
    reader = _dequantized(tail.result)
    add = None if reader is None else graph.sole_consumer(reader.outputs[0])
    if reader is None or add is None or not graph.is_op(add, "Add"):
        return
    other_value = add.inputs[1] if add.inputs[0] is reader.outputs[0] else add.inputs[0]
    other = build.quantized(other_value)
    end = match_quantized_end(add.outputs[0], build.packing.act)
    if other is None or end is None or other.dims != dims or np.dtype(numpy_dtype(other.dtype)).itemsize != 1:
        return
    if graph.dims_of(add.outputs[0]) != dims:
        return
    tail.residual = Residual(other, end.quant, end.low, end.high)
    tail.nodes += [reader, add, *end.nodes]
    tail.result = end.result
