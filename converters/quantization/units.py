"""Cuts the graph into units: groups of nodes that become one integer operation, or stay in float together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import onnx_ir as ir

from edgekit.converters.quantization import op_rules
from edgekit.converters.quantization.curves import CurveRegion, curve_regions
from edgekit.converters.quantization.graph_access import is_float_activation, only_consumer
from edgekit.converters.quantization.layers import WeightedLayer, read_layer


class UnitKind(Enum):
    """How a unit works when it is in integers; see op_rules."""

    WEIGHTED = "weighted"
    PAIRWISE = "pairwise"
    CURVE = "curve"
    INHERIT = "inherit"
    REQUANTIZE = "requantize"
    CONCAT = "concat"
    FLOAT = "float"


@dataclass(eq=False)
class Unit:
    """Nodes that work as one.

    Attributes:
        kind: What it becomes in integers.
        nodes: In order; the last one gives the outputs.
        inputs: Float activations that it reads.
        outputs: Values that leave it.
        layer: Of a weighted unit.
        region: Of a curve unit.
        reason: Why it stays in float; empty when it need not.
    """

    kind: UnitKind
    nodes: tuple[ir.Node, ...]
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    layer: WeightedLayer | None = None
    region: CurveRegion | None = None
    reason: str = ""
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.names = tuple(node.name or "" for node in self.nodes)


def build_units(graph: ir.Graph) -> list[Unit]:
    """Groups all nodes of a graph.

    Args:
        graph: Sorted, values and nodes named; sub-graphs of If and Loop belong to their node.

    Returns:
        Units in the order of their last nodes. Every node is in at least one; nodes inside several functions of one
        value may be in several.
    """
    regions = {region.output: region for region in curve_regions(graph)}
    absorbed: set[ir.Node] = set()
    units = []
    for node in graph:
        if node in absorbed:
            continue
        unit = _weighted(node) or _pairwise(node, regions)
        if unit is not None:
            _absorb_cut_off(unit, regions)
            absorbed.update(unit.nodes)
            units.append(unit)
    claimed = {node for unit in units for node in unit.nodes}
    for region in regions.values():
        if not claimed.intersection(region.nodes):
            units.append(Unit(UnitKind.CURVE, region.nodes, (region.root,), (region.output,), region=region))
    claimed.update(node for unit in units for node in unit.nodes)
    units.extend(_single(node) for node in graph if node not in claimed)
    order = {node: position for position, node in enumerate(graph)}
    return sorted(units, key=lambda unit: order[unit.nodes[-1]])


def _weighted(node: ir.Node) -> Unit | None:
    if node.op_type not in op_rules.WEIGHTED:
        return None
    layer = read_layer(node)
    if isinstance(layer, str):
        return Unit(UnitKind.FLOAT, (node,), _activations(node), tuple(node.outputs), reason=layer)
    nodes = (node,) if layer.bias_node is None else (node, layer.bias_node)
    return Unit(UnitKind.WEIGHTED, nodes, (_present(node.inputs[0]),), (layer.output,), layer=layer)


def _pairwise(node: ir.Node, regions: dict[ir.Value, CurveRegion]) -> Unit | None:
    if node.op_type not in op_rules.PAIRWISE or not op_rules.is_standard(node) or node.outputs[0] in regions:
        return None
    if any(node in region.nodes for region in regions.values()):
        return None
    inputs = _activations(node)
    if len(inputs) != 2 or node.outputs[0].dtype not in (None, ir.DataType.FLOAT):
        return None
    return Unit(UnitKind.PAIRWISE, (node,), inputs, tuple(node.outputs))


def _absorb_cut_off(unit: Unit, regions: dict[ir.Value, CurveRegion]) -> None:
    """Takes a following Relu or Clip in when nothing else reads the value before it."""
    follower = only_consumer(unit.outputs[0])
    if follower is None or not op_rules.is_cut_off(follower) or unit.kind is UnitKind.FLOAT:
        return
    region = regions.get(follower.outputs[0])
    if region is None or region.nodes != (follower,):
        return
    del regions[region.output]
    unit.nodes += (follower,)
    unit.outputs = tuple(follower.outputs)
    unit.names += (follower.name or "",)


def _single(node: ir.Node) -> Unit:
    inputs, outputs = _activations(node), tuple(node.outputs)
    kind, reason = UnitKind.FLOAT, "operator stays in float"
    if op_rules.is_shape_arithmetic(node):
        reason = "no arithmetic on activations"
    elif op_rules.is_lookup_of_constants(node):
        reason = "lookup in a constant table"
    elif inputs and op_rules.is_standard(node):
        if node.op_type == "Concat" and len(inputs) == len(node.inputs):
            kind = UnitKind.CONCAT
        elif op_rules.is_inherit(node) and inputs[0] is node.inputs[0]:
            kind, inputs = UnitKind.INHERIT, inputs[:1]
        elif op_rules.is_requantize(node) and inputs[0] is node.inputs[0]:
            kind, inputs = UnitKind.REQUANTIZE, inputs[:1]
    return Unit(kind, (node,), inputs, outputs, reason=reason if kind is UnitKind.FLOAT else "")


def _activations(node: ir.Node) -> tuple[ir.Value, ...]:
    implicit = _outer_values(node)
    seen = [value for value in (*node.inputs, *implicit) if value is not None and is_float_activation(value)]
    return tuple(seen)


def _outer_values(node: ir.Node) -> Iterable[ir.Value]:
    """Values of the outer graph that sub-graphs of the node read."""
    for attribute in node.attributes.values():
        for graph in _graphs(attribute):
            inner = {value for child in graph.all_nodes() for value in child.outputs}
            inner.update(graph.inputs, graph.initializers.values())
            for child in graph.all_nodes():
                yield from (value for value in child.inputs if value is not None and value not in inner)


def _graphs(attribute: ir.Attr) -> Sequence[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        return (attribute.as_graph(),)
    return tuple(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else ()


def _present(value: ir.Value | None) -> ir.Value:
    assert value is not None
    return value
