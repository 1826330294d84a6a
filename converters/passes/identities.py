"""Nodes that hand on their input are removed: Identity, Dropout and casts to the same type, Clip without bounds."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import (
    all_nodes,
    attribute,
    constant_of,
    input_at,
    is_op,
    rank_of,
    remove_unused,
    scalar_of,
    static_shape,
    take_over,
)


def _apply(model: ir.Model, context: PassContext) -> int:
    changes = 0
    for node in all_nodes(model):
        source = node.inputs[0] if node.inputs else None
        if source is None or node.graph is None or not _hands_on(node, source):
            continue
        if any(v.uses() or v.is_graph_output() for v in node.outputs[1:]):
            continue
        if source.graph is not node.graph and node.outputs[0].is_graph_output():
            continue
        if take_over(node.outputs[0], source):
            remove_unused(node)
            changes += 1
    return changes


def _hands_on(node: ir.Node, source: ir.Value) -> bool:
    if is_op(node, "Identity"):
        return True
    if is_op(node, "Dropout"):
        training = input_at(node, 2)
        return training is None or scalar_of(training) == 0.0
    if is_op(node, "Cast"):
        return source.dtype is not None and int(source.dtype) == attribute(node, "to", 0)
    if is_op(node, "Clip"):
        return all(v is None for v in node.inputs[1:])
    if is_op(node, "Transpose"):
        permutation = attribute(node, "perm", None)
        return permutation is not None and permutation == list(range(len(permutation)))
    if is_op(node, "Pad"):
        pads = constant_of(input_at(node, 1))
        return pads is not None and not np.any(pads)
    if is_op(node, "Concat", "Sum", "Max", "Min"):
        return len(node.inputs) == 1
    if is_op(node, "Reshape", "Expand", "Flatten", "Squeeze", "Unsqueeze"):
        before, after = static_shape(source), static_shape(node.outputs[0])
        return before is not None and before == after and rank_of(source) is not None
    return False


IDENTITIES = Pass("identities", "Nodes that hand on their input are removed", _apply)
