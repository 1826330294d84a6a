"""Constant nodes become initializers, in sub-graphs too; initializers that are also inputs lose their input."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import all_graphs, all_nodes, is_op


def _apply(model: ir.Model, context: PassContext) -> int:
    before = sum(is_op(node, "Constant") for node in all_nodes(model))
    overridable = sum(v.is_graph_input() for graph in all_graphs(model) for v in graph.initializers.values())
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    common.RemoveInitializersFromInputsPass()(model)
    common.LiftSubgraphInitializersToMainGraphPass()(model)
    return before - sum(is_op(node, "Constant") for node in all_nodes(model)) + overridable


LIFT_CONSTANTS = Pass(
    "lift-constants", "Constant nodes to initializers, in If and Loop bodies too", _apply, required=True
)
