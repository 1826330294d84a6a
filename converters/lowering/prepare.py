"""Small rewrites that make the graph easier to lower; none changes a value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.registry import NotLowerableError
from edgekit.converters.lowering.regrouping import regroup


def prepared(model: ir.Model) -> ir.Model:
    """A copy with one DequantizeLinear for each quantized value, no dead nodes, and node names that are unique."""
    copy = model.clone()
    _join_dequantizers(copy.graph)
    _join_slices(copy.graph)
    _name_nodes(copy.graph)
    regroup(copy.graph)
    _remove_dead(copy.graph)
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


@dataclass(frozen=True)
class _Part:
    """A Slice along one axis, step 1."""

    node: ir.Node
    axis: int
    start: int
    size: int


def _join_slices(source: ir.Graph) -> None:
    """Slices that cut a value into neighbouring parts become a Split: its parts find their places together."""
    values = [value for node in source for value in node.outputs] + list(source.inputs)
    for value in values:
        parts = [part for node in graph.consumers(value) if (part := _part(node, value)) is not None]
        for axis in {part.axis for part in parts}:
            along = sorted((part for part in parts if part.axis == axis), key=lambda part: part.start)
            starts = [part.start for part in along]
            ends = [part.start + part.size for part in along]
            if len(along) > 1 and starts == [0, *ends[:-1]] and ends[-1] == graph.dims_of(value)[axis]:
                _replace_by_split(source, value, along)


def _part(node: ir.Node, value: ir.Value) -> _Part | None:
    """A Slice of a value as a part of one axis; None where it is something else."""
    output = node.outputs[0]
    if not graph.is_op(node, "Slice") or node.inputs[0] is not value or output.is_graph_output():
        return None
    starts, axes, steps = (graph.constant_ints(graph.operand(node, index)) for index in (1, 3, 4))
    try:
        dims, cut = graph.dims_of(value), graph.dims_of(output)
    except NotLowerableError:
        return None
    if starts is None or len(starts) != 1 or axes is None or (steps or [1]) != [1]:
        return None
    axis = graph.normalised_axis(axes[0], len(dims))
    return _Part(node, axis, slice(starts[0], None).indices(dims[axis])[0], cut[axis])


def _replace_by_split(source: ir.Graph, value: ir.Value, parts: list[_Part]) -> None:
    first = next(node for node in source if any(node is part.node for part in parts))
    name = "+".join(part.node.name or part.node.op_type for part in parts)
    sizes = ir.Value(name=f"{name}:sizes", const_value=ir.tensor(np.array([part.size for part in parts], np.int64)))
    source.register_initializer(sizes)
    split = ir.Node(
        "", "Split", [value, sizes], [ir.AttrInt64("axis", parts[0].axis)], num_outputs=len(parts), name=name
    )
    source.insert_before(first, split)
    for part, result in zip(parts, split.outputs, strict=True):
        old = part.node.outputs[0]
        result.name, result.shape, result.type = f"{old.name}:split", old.shape, old.type
        old.replace_all_uses_with(result)
        source.remove(part.node, safe=True)


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
