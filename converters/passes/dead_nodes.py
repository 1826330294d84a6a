"""Nodes, initializers and functions that no output needs are removed."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from edgekit.converters.passes import edgekit_ops
from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import all_nodes


def _apply(model: ir.Model, context: PassContext) -> int:
    before = len(all_nodes(model)) + len(model.graph.initializers)
    common.RemoveUnusedNodesPass()(model)
    edgekit_ops.undeclare_unused(model)
    return before - len(all_nodes(model)) - len(model.graph.initializers)


DEAD_NODES = Pass("dead-nodes", "Nodes and initializers that no output needs are removed", _apply)
