"""Decides which units work in integers and which tensors are quantized.

Weighted layers do, unless a rule keeps them in float. What lies between them does when it has an integer form, takes
at least one tensor from an integer unit and gives at least one to an integer unit. So the float tail of a detector
(box arithmetic, distribution expectation, scores), a residual stream that only LayerNorm reads, and the attention
products stay in float by themselves, and outputs of different roles never share a scale.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from edgekit.converters.contracts import LayerPlan
from edgekit.converters.quantization.graph_access import is_float_activation
from edgekit.converters.quantization.op_rules import WEIGHTED, is_shape_arithmetic
from edgekit.converters.quantization.units import Unit, UnitKind, build_units
from edgekit.errors import UsageError

_KEPT = "kept in float as asked"
_BETWEEN = "no integer layer on both sides"
_EXPECTATION = "expectation of a distribution"
_FREE_MOVERS = (UnitKind.INHERIT, UnitKind.CONCAT)  # may also carry a quantized graph input


@dataclass(frozen=True)
class Placement:
    """Which parts of a graph are in integers.

    Attributes:
        units: All units of the graph.
        integer: Those in integers.
        tensors: Quantized tensors, in graph order.
        reasons: Unit to the reason why it stays in float.
    """

    units: tuple[Unit, ...]
    integer: frozenset[Unit]
    tensors: tuple[ir.Value, ...]
    reasons: dict[Unit, str]

    def plan(self) -> tuple[LayerPlan, ...]:
        """One row a node, in graph order."""
        rows: dict[str, LayerPlan] = {}
        for unit in self.units:
            for node in unit.nodes:
                rows.setdefault(node.name or "", self._row(unit, node))
        return tuple(rows.values())

    def _row(self, unit: Unit, node: ir.Node) -> LayerPlan:
        name = node.name or ""
        if unit in self.integer:
            return LayerPlan(name, node.op_type, "int8")
        if is_shape_arithmetic(node) or not any(is_float_activation(value) for value in node.inputs):
            return LayerPlan(name, node.op_type, "int", self.reasons[unit])
        return LayerPlan(name, node.op_type, "fp32", self.reasons[unit])


def place(graph: ir.Graph, keep_float: Collection[str] = (), float_reasons: dict[str, str] | None = None) -> Placement:
    """Decides for every unit.

    Args:
        graph: Float graph after the passes.
        keep_float: Names of nodes that the user wants in float.
        float_reasons: Further nodes that stay in float, each with the reason.

    Returns:
        The placement.

    Raises:
        UsageError: keep_float names a node that isn't there.
    """
    units = build_units(graph)
    known = {name for unit in units for name in unit.names}
    for name in keep_float:
        if name not in known:
            raise UsageError("no such layer to keep in float", where=name)
    wishes = {**(float_reasons or {}), **dict.fromkeys(keep_float, _KEPT)}
    reasons = {unit: reason for unit in units if (reason := _reason_for_float(unit, wishes))}
    integer = _settle(units, reasons)
    for unit in units:
        if unit not in integer:
            reasons.setdefault(unit, _BETWEEN)
    return Placement(tuple(units), frozenset(integer), _quantized(units, integer), reasons)


def layers_in_branches(graph: ir.Graph) -> list[str]:
    """Names of layers with weights inside branches of If, Loop or Scan, which no unit covers: they stay in float."""
    everywhere = ir.traversal.RecursiveGraphIterator(graph)
    inside = (node for node in everywhere if node.graph is not graph and node.op_type in WEIGHTED)
    return list(dict.fromkeys(node.name or "" for node in inside))


def _reason_for_float(unit: Unit, wishes: dict[str, str]) -> str:
    if unit.kind is UnitKind.FLOAT:
        return unit.reason
    for name in unit.names:
        if name in wishes:
            return wishes[name]
    if unit.kind is UnitKind.WEIGHTED and _is_expectation(unit):
        return _EXPECTATION
    return ""


def _is_expectation(unit: Unit) -> bool:
    """A product of probabilities with 0, 1, 2, ...: its result is a coordinate, too fine for 8 bits."""
    layer = unit.layer
    if layer is None or layer.weight.size != layer.weight.shape[layer.axis] * layer.depth:
        return False
    weights = layer.weight.reshape(-1)
    steps = np.diff(weights)
    evenly = weights.size == layer.depth and weights.size > 1 and np.allclose(steps, steps[0]) and steps[0] != 0
    return bool(evenly) and _comes_from_softmax(unit.inputs[0])


def _comes_from_softmax(value: ir.Value) -> bool:
    node = value.producer()
    while node is not None and node.op_type in ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"):
        source = node.inputs[0]
        node = source.producer() if source is not None else None
    return node is not None and node.op_type == "Softmax"


def _settle(units: Iterable[Unit], reasons: dict[Unit, str]) -> set[Unit]:
    """Takes units out until each one that remains has integer neighbours on both sides."""
    integer = {unit for unit in units if unit not in reasons}
    while True:
        makers = {value for unit in integer for value in unit.outputs}
        readers = {value for unit in integer for value in unit.inputs}
        lonely = {unit for unit in integer if not _has_neighbours(unit, makers, readers)}
        if not lonely:
            return integer
        integer -= lonely


def _has_neighbours(unit: Unit, makers: set[ir.Value], readers: set[ir.Value]) -> bool:
    if unit.kind is UnitKind.WEIGHTED:
        return True
    movers = unit.kind in _FREE_MOVERS
    fed = any(value in makers or (movers and value.is_graph_input()) for value in unit.inputs)
    return fed and any(value in readers for value in unit.outputs)


def _quantized(units: Iterable[Unit], integer: set[Unit]) -> tuple[ir.Value, ...]:
    values: dict[ir.Value, None] = {}
    for unit in units:
        if unit in integer:
            values.update(dict.fromkeys((*unit.inputs, *(v for v in unit.outputs if v.uses() or v.is_graph_output()))))
    return tuple(values)
