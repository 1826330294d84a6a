"""A float model in which the rounding of each tensor and of each layer's weights can be switched on by itself.

One session answers every "what if only this were in integers": the graph computes both forms and a Where picks one.
That is what sensitivity ranking and the search for float layers ask hundreds of times.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.contracts import Array, Feeds
from edgekit.converters.quantization.calibration import ModelRunner
from edgekit.converters.quantization.graph_access import FreshNames
from edgekit.converters.quantization.placement import Placement, place
from edgekit.converters.quantization.prepared import PreparedLayer, layer_numbers
from edgekit.converters.quantization.ranges import AffineQuant
from edgekit.converters.quantization.units import Unit

Switch = str
"""Name of a quantized tensor, or of a node with quantized weights."""


class SwitchedModel:
    """The float model with switches.

    Args:
        model: Float model; not changed.
        quants: Scale and zero point by tensor name.
        prepared: Node name to its rounded weights.
        probes: Tensors to give.
    """

    def __init__(
        self,
        model: ir.Model,
        quants: Mapping[str, AffineQuant],
        prepared: Mapping[str, PreparedLayer],
        probes: Sequence[str],
    ) -> None:
        clone = model.clone()
        self._graph = clone.graph
        self._names = FreshNames(clone.graph)
        self._inputs: dict[Switch, str] = {}
        placement = place(clone.graph)
        for unit in placement.units:
            if unit in placement.integer and unit.layer is not None:
                self._switch_weights(unit, quants, prepared)
        final = {name: name for name in probes}
        for value in placement.tensors:
            switched = self._switch_tensor(value, quants[value.name or ""])
            if value.name in final:
                final[value.name] = switched
        clone.graph.sort()
        self._probes = {final[name]: name for name in probes}
        self._runner = ModelRunner(clone, list(self._probes), simulate=True)

    def run(self, feeds: Feeds, on: Collection[Switch]) -> dict[str, Array]:
        """Runs one sample.

        Args:
            feeds: Inputs of the float model.
            on: What is rounded.

        Returns:
            Probe name to array.
        """
        switches = {held: np.array(switch in on) for switch, held in self._inputs.items()}
        arrays = self._runner.run({**feeds, **switches})
        return {name: arrays[held] for held, name in self._probes.items()}

    def _switch_weights(
        self, unit: Unit, quants: Mapping[str, AffineQuant], prepared: Mapping[str, PreparedLayer]
    ) -> None:
        layer = unit.layer
        assert layer is not None
        name = layer.node.name or ""
        numbers = layer_numbers(layer, quants[unit.inputs[0].name or ""].scale, prepared[name])
        control = self._control(name)
        weight = layer.node.inputs[1]
        layer.node.replace_input_with(1, self._where(control, self._constant(numbers.weight.dequantized()), weight))
        if numbers.bias is None:
            return
        rounded = self._constant((numbers.bias * numbers.bias_scale).astype(np.float32))
        exact = self._constant(np.zeros_like(numbers.bias_scale) if layer.bias is None else layer.bias)
        bias = self._where(control, rounded, exact)
        if layer.bias_node is not None:
            layer.bias_node.replace_input_with(1 if layer.bias_node.inputs[0] is layer.node.outputs[0] else 0, bias)
            return
        if len(layer.node.inputs) < 3:
            layer.node.resize_inputs(3)
        layer.node.replace_input_with(2, bias)

    def _switch_tensor(self, value: ir.Value, quant: AffineQuant) -> str:
        parameters = [
            self._constant(np.array(quant.scale, np.float32)),
            self._constant(np.array(quant.zero_point, np.int8)),
        ]
        uses = list(value.uses())
        stored = self._append("QuantizeLinear", [value, *parameters])
        rounded = self._append("DequantizeLinear", [stored, *parameters])
        picked = self._where(self._control(value.name or ""), rounded, value)
        for use in uses:
            use.node.replace_input_with(use.idx, picked)
        return picked.name or ""

    def _control(self, switch: Switch) -> ir.Value:
        name = self._names.make(f"{switch}_switch")
        value = ir.Value(name=name, type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
        self._graph.inputs.append(value)
        self._inputs[switch] = name
        return value

    def _where(self, control: ir.Value, on: ir.Value, off: ir.Value | None) -> ir.Value:
        return self._append("Where", [control, on, off])

    def _append(self, op_type: str, inputs: Sequence[ir.Value | None]) -> ir.Value:
        node = ir.Node("", op_type, list(inputs), num_outputs=1, name=self._names.make(op_type))
        node.outputs[0].name = self._names.make(f"{node.name}_out")
        self._graph.append(node)
        return node.outputs[0]

    def _constant(self, array: NDArray[np.generic]) -> ir.Value:
        name = self._names.make("constant")
        tensor = ir.tensor(array, name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
        self._graph.register_initializer(value)
        return value


def switches_of(placement: Placement) -> set[Switch]:
    """Everything that a placement rounds."""
    weights = {unit.layer.node.name or "" for unit in placement.integer if unit.layer is not None}
    return weights | {value.name or "" for value in placement.tensors}
