"""A float model with integer weights in which the rounding of each tensor can be switched on by itself.

One session answers every "what if only this were rounded, and to that grid": scales and switches are inputs, the graph
computes both forms and a Where picks one. Sensitivity ranking and the search ask that hundreds of times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.contracts import Array, Feeds
from edgekit.converters.quantization.calibration import ModelRunner
from edgekit.converters.quantization.graph_access import FreshNames
from edgekit.converters.quantization.layers import WeightedLayer
from edgekit.converters.quantization.placement import Placement
from edgekit.converters.quantization.prepared import PreparedLayer
from edgekit.converters.quantization.ranges import AffineQuant

_OFF = AffineQuant(1.0, 0)


class SwitchedModel:
    """The model with switches.

    Args:
        clone: Float model; changed, and of no use afterwards.
        placement: Of the clone: all that may be in integers.
        prepared: Node name to its rounded weights; these are always on.
        probes: Tensors to give.
    """

    def __init__(
        self,
        clone: ir.Model,
        placement: Placement,
        prepared: Mapping[str, PreparedLayer],
        probes: Sequence[str],
    ) -> None:
        self._graph = clone.graph
        self._names = FreshNames(clone.graph)
        self._inputs: dict[str, tuple[str, str, str]] = {}
        for unit in placement.units:
            if unit in placement.integer and unit.layer is not None:
                self._round_weights(unit.layer, prepared[unit.layer.node.name or ""])
        final = {name: name for name in probes}
        for value in placement.tensors:
            switched = self._switch_tensor(value)
            if value.name in final:
                final[value.name] = switched
        clone.graph.sort()
        self._probes = {final[name]: name for name in probes}
        self._runner = ModelRunner(clone, list(self._probes), simulate=True)

    def run(self, feeds: Feeds, on: Mapping[str, AffineQuant]) -> dict[str, Array]:
        """Runs one sample.

        Args:
            feeds: Inputs of the float model.
            on: Tensors that are rounded, each with its grid.

        Returns:
            Probe name to array.
        """
        controls: dict[str, Array] = {}
        for name, (switch, scale, zero_point) in self._inputs.items():
            quant = on.get(name, _OFF)
            controls[switch] = np.array(name in on)
            controls[scale] = np.array(quant.scale, np.float32)
            controls[zero_point] = np.array(quant.zero_point, np.int8)
        arrays = self._runner.run({**feeds, **controls})
        return {name: arrays[held] for held, name in self._probes.items()}

    def _round_weights(self, layer: WeightedLayer, prepared: PreparedLayer) -> None:
        layer.node.replace_input_with(1, self._constant(prepared.weight.dequantized()))
        if prepared.bias_shift is None:
            return
        bias = prepared.bias_shift if layer.bias is None else layer.bias + prepared.bias_shift
        if layer.bias_node is not None:
            position = 1 if layer.bias_node.inputs[0] is layer.node.outputs[0] else 0
            layer.bias_node.replace_input_with(position, self._constant(bias))
            return
        if len(layer.node.inputs) < 3:
            layer.node.resize_inputs(3)
        layer.node.replace_input_with(2, self._constant(bias))

    def _switch_tensor(self, value: ir.Value) -> str:
        uses = list(value.uses())
        kinds = (ir.DataType.BOOL, ir.DataType.FLOAT, ir.DataType.INT8)
        switch, scale, zero_point = (self._control(f"{value.name}_{kind.name}", kind) for kind in kinds)
        stored = self._append("QuantizeLinear", [value, scale, zero_point])
        rounded = self._append("DequantizeLinear", [stored, scale, zero_point])
        picked = self._append("Where", [switch, rounded, value])
        for use in uses:
            use.node.replace_input_with(use.idx, picked)
        self._inputs[value.name or ""] = (switch.name or "", scale.name or "", zero_point.name or "")
        return picked.name or ""

    def _control(self, wish: str, kind: ir.DataType) -> ir.Value:
        value = ir.Value(name=self._names.make(wish), type=ir.TensorType(kind), shape=ir.Shape([]))
        self._graph.inputs.append(value)
        return value

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
