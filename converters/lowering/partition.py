"""Partition: which nodes run natively and which in ONNX Runtime, in as few steps as a greedy walk finds.

Steps run in order and pass named values. Nodes whose results are constant belong to no step: each step that reads them
holds them itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import onnx_ir as ir

from edgekit.converters.lowering import graph

PartKind = Literal["native", "onnxruntime"]


@dataclass(frozen=True)
class Segment:
    """One step.

    Attributes:
        kind: Who runs it.
        nodes: In topological order.
        inputs: Values it reads that inputs of the graph or earlier steps give.
        outputs: Values it gives to later steps or to the outputs of the graph.
    """

    kind: PartKind
    nodes: tuple[ir.Node, ...]
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]


def partition(source: ir.Graph, foreign: frozenset[str]) -> list[Segment]:
    """Cuts a graph into steps.

    Args:
        source: Prepared, every node named uniquely.
        foreign: Names of the nodes that ONNX Runtime runs.
    """
    waiting = [node for node in source if not _is_constant(node)]
    kind: PartKind = "native"
    groups: list[tuple[PartKind, list[ir.Node]]] = []
    available: set[ir.Value] = set(source.inputs)
    while waiting:
        group, rest = [], []
        for node in waiting:
            mine = (node.name in foreign) == (kind == "onnxruntime")
            if mine and all(value in available for value in _reads(node)):
                group.append(node)
                available.update(node.outputs)
            else:
                rest.append(node)
        if group:
            groups.append((kind, group))
        waiting = rest
        kind = "onnxruntime" if kind == "native" else "native"
    return [_segment(source, index, groups) for index in range(len(groups))]


def _is_constant(node: ir.Node) -> bool:
    return all(graph.constant_of(output) is not None for output in node.outputs)


def _reads(node: ir.Node) -> list[ir.Value]:
    """Values that are not constant, those that bodies of If and Loop capture included."""
    values = [value for value in node.inputs if value is not None]
    for attr in node.attributes.values():
        bodies = attr.as_graphs() if attr.type == ir.AttributeType.GRAPHS else []
        if attr.type == ir.AttributeType.GRAPH:
            bodies = [attr.as_graph()]
        for body in bodies:
            values += [value for inner in body for value in _reads(inner) if _is_outer(value, body)]
    return [value for value in values if graph.constant_of(value) is None]


def _is_outer(value: ir.Value, body: ir.Graph) -> bool:
    producer = value.producer()
    return value.graph is not body and (producer is None or producer.graph is not body)


def _segment(source: ir.Graph, index: int, groups: list[tuple[PartKind, list[ir.Node]]]) -> Segment:
    kind, nodes = groups[index]
    own = {output for node in nodes for output in node.outputs}
    inputs = dict.fromkeys(value for node in nodes for value in _reads(node) if value not in own)
    later = {value for _, group in groups[index + 1 :] for node in group for value in _reads(node)}
    outputs = [value for node in nodes for value in node.outputs if value in later or value.is_graph_output()]
    if index == 0:  # what the graph hands through or holds constant goes out with the first step
        given = {output for _, group in groups for node in group for output in node.outputs}
        outputs += [value for value in source.outputs if value not in given]
        inputs.update(dict.fromkeys(v for v in source.outputs if v not in given and v.is_graph_input()))
    return Segment(kind, tuple(nodes), tuple(inputs), tuple(dict.fromkeys(outputs)))


def extract(model: ir.Model, segment: Segment) -> ir.Model:
    """A model of one step, with the initializers and constant nodes that it reads."""
    part = ir.convenience.extract(model.graph, list(segment.inputs), list(segment.outputs))
    functions = [function.clone() for function in model.functions.values()]
    result = ir.Model(part, ir_version=model.ir_version or 10, functions=functions)
    result.opset_imports.update(model.opset_imports)
    return result
