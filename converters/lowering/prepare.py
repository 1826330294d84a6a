"""Small rewrites that make the graph easier to lower; none changes a value."""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.lowering import graph


def prepared(model: ir.Model) -> ir.Model:
    """A copy with one DequantizeLinear for each quantized value, no dead nodes, and node names that are unique."""
    copy = model.clone()
    _join_dequantizers(copy.graph)
    _remove_dead(copy.graph)
    _name_nodes(copy.graph)
    return copy


def _join_dequantizers(source: ir.Graph) -> None:
    known: dict[tuple[object, ...], ir.Value] = {}
    for node in list(source):
        if not graph.is_op(node, "DequantizeLinear"):
            continue
        key = (*(id(value) for value in node.inputs), graph.attribute(node, "axis", 1))
        output = node.outputs[0]
        first = known.setdefault(key, output)
        if first is not output and not output.is_graph_output():
            output.replace_all_uses_with(first)
            source.remove(node)


def _remove_dead(source: ir.Graph) -> None:
    for node in reversed(list(source)):
        if not any(output.uses() or output.is_graph_output() for output in node.outputs):
            source.remove(node, safe=True)


def _name_nodes(source: ir.Graph) -> None:
    taken: set[str] = set()
    for index, node in enumerate(source):
        name = node.name or f"{node.op_type}_{index}"
        while name in taken:
            name = f"{name}_{index}"
        node.name = name
        taken.add(name)
