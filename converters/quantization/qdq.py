"""Writes a placement with its scales into the graph as QuantizeLinear and DequantizeLinear, in the canonical form.

Activations s8 with a zero point; weights int8 initializers behind DequantizeLinear(axis); bias int32 behind
DequantizeLinear with the scale of the accumulator. A tensor made by an integer unit exists only quantized, so
whoever reads it reads its DequantizeLinear; one made in float is quantized for its integer readers alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.quantization.graph_access import FreshNames
from edgekit.converters.quantization.layers import WeightedLayer
from edgekit.converters.quantization.placement import Placement
from edgekit.converters.quantization.prepared import PreparedLayer, layer_numbers
from edgekit.converters.quantization.ranges import AffineQuant
from edgekit.converters.quantization.units import Unit


class QdqWriter:
    """Changes one graph.

    Args:
        graph: The graph that the placement was made for.
        placement: What is in integers.
        quants: Scale and zero point by tensor name; tensors of one group hold the same object.
        prepared: Node name to its rounded weights.
    """

    def __init__(
        self,
        graph: ir.Graph,
        placement: Placement,
        quants: Mapping[str, AffineQuant],
        prepared: Mapping[str, PreparedLayer],
    ) -> None:
        self._graph = graph
        self._placement = placement
        self._quants = quants
        self._prepared = prepared
        self._names = FreshNames(graph)
        self._parameters: dict[AffineQuant, tuple[ir.Value, ir.Value]] = {}

    def write(self) -> None:
        """Inserts everything."""
        makers = {value for unit in self._placement.integer for value in unit.outputs}
        readers: dict[ir.Value, set[ir.Node]] = {}
        for unit in self._placement.integer:
            for value in unit.inputs:
                readers.setdefault(value, set()).update(unit.nodes)
        for unit in self._placement.units:
            if unit in self._placement.integer and unit.layer is not None:
                self._write_layer(unit, unit.layer)
        for value in self._placement.tensors:
            self._write_tensor(value, None if value in makers else readers[value])
        self._graph.sort()

    def _write_layer(self, unit: Unit, layer: WeightedLayer) -> None:
        input_quant = self._quants[unit.inputs[0].name or ""]
        numbers = layer_numbers(layer, input_quant.scale, self._prepared[layer.node.name or ""])
        source = layer.node.inputs[1]
        weight = self._dequantized(
            f"{source.name if source else layer.node.name}",
            numbers.weight.values,
            numbers.weight.scale,
            numbers.weight.axis,
        )
        layer.node.replace_input_with(1, weight)
        if numbers.bias is None:
            return
        bias = self._dequantized(f"{layer.node.name}_bias", numbers.bias, numbers.bias_scale, 0)
        if layer.bias_node is not None:
            position = 1 if layer.bias_node.inputs[0] is layer.node.outputs[0] else 0
            layer.bias_node.replace_input_with(position, bias)
            return
        if len(layer.node.inputs) < 3:
            layer.node.resize_inputs(3)
        layer.node.replace_input_with(2, bias)

    def _write_tensor(self, value: ir.Value, readers: set[ir.Node] | None) -> None:
        """Quantizes a tensor for the given nodes, or for whoever reads it."""
        name = value.name or ""
        scale, zero_point = self._parameter_values(name)
        stored = self._value(f"{name}_quantized", ir.DataType.INT8, value.shape)
        back = self._value(f"{name}_dequantized", ir.DataType.FLOAT, value.shape)
        uses = [use for use in value.uses() if readers is None or use.node in readers]
        for use in uses:
            use.node.replace_input_with(use.idx, back)
        if readers is None:
            self._replace_output(value, back)
        quantize = ir.node("QuantizeLinear", [value, scale, zero_point], outputs=[stored])
        dequantize = ir.node("DequantizeLinear", [stored, scale, zero_point], outputs=[back])
        for node, suffix in ((quantize, "quantize"), (dequantize, "dequantize")):
            node.name = self._names.make(f"{name}_{suffix}")
            self._graph.append(node)

    def _replace_output(self, value: ir.Value, back: ir.Value) -> None:
        for position, output in enumerate(self._graph.outputs):
            if output is value:
                name, value.name = value.name or "", self._names.make(f"{value.name}_float")
                back.name, back.type, back.shape = name, value.type, value.shape
                self._graph.outputs[position] = back

    def _parameter_values(self, name: str) -> tuple[ir.Value, ir.Value]:
        quant = self._quants[name]
        if quant not in self._parameters:
            self._parameters[quant] = (
                self._initializer(f"{name}_scale", np.array(quant.scale, np.float32)),
                self._initializer(f"{name}_zero_point", np.array(quant.zero_point, np.int8)),
            )
        return self._parameters[quant]

    def _dequantized(self, name: str, values: NDArray[np.generic], scale: NDArray[np.float32], axis: int) -> ir.Value:
        stored = self._initializer(f"{name}_quantized", values)
        scales = self._initializer(f"{name}_scale", scale)
        back = self._value(f"{name}_dequantized", ir.DataType.FLOAT, ir.Shape(values.shape))
        node = ir.node("DequantizeLinear", [stored, scales], {"axis": axis}, outputs=[back])
        node.name = self._names.make(f"{name}_dequantize")
        self._graph.append(node)
        return back

    def _initializer(self, name: str, array: NDArray[np.generic]) -> ir.Value:
        name = self._names.make(name)
        tensor = ir.tensor(np.asarray(array), name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
        self._graph.register_initializer(value)
        return value

    def _value(self, name: str, dtype: ir.DataType, shape: ir.Shape | None) -> ir.Value:
        return ir.Value(name=self._names.make(name), type=ir.TensorType(dtype), shape=shape)
