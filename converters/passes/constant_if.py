"""An If whose condition is a constant is replaced by the branch that it takes."""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import all_nodes, is_op, remove_unused, scalar_of, take_over


def _apply(model: ir.Model, context: PassContext) -> int:
    changes = 0
    while True:
        found = next((n for n in all_nodes(model) if is_op(n, "If") and scalar_of(n.inputs[0]) is not None), None)
        if found is None or not _fold(found):
            return changes
        changes += 1


def _fold(node: ir.Node) -> bool:
    graph = node.graph
    if not isinstance(graph, ir.Graph):
        return False
    taken = "then_branch" if scalar_of(node.inputs[0]) else "else_branch"
    branch = node.attributes[taken].as_graph()
    results = list(branch.outputs)
    if any(v.producer() is None or v.producer().graph is not branch for v in results):  # type: ignore[union-attr]
        return False
    branch.outputs.clear()
    for initializer in list(branch.initializers.values()):
        branch.initializers.pop(str(initializer.name))
        graph.register_initializer(initializer)
    body = list(branch)
    branch.remove(body)
    graph.insert_before(node, body)
    for old, new in zip(node.outputs, results, strict=True):
        take_over(old, new)
    remove_unused(node)
    return True


CONSTANT_IF = Pass("constant-if", "If with a constant condition to the branch taken", _apply)
