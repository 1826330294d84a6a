"""Every node gets a name, and no two nodes share one: layers are known by it in reports and overrides."""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import all_nodes


def _apply(model: ir.Model, context: PassContext) -> int:
    nodes = all_nodes(model)
    taken: set[str] = set()
    changes = 0
    given = {node.name for node in nodes if node.name}
    for node in nodes:
        name = node.name or ""
        if not name or name in taken:
            name = _fresh(name or (node.outputs[0].name if node.outputs else None) or node.op_type, taken | given)
            node.name = name
            changes += 1
        taken.add(name)
    return changes


def _fresh(stem: str, taken: set[str]) -> str:
    name, count = stem, 0
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    return name


UNIQUE_NAMES = Pass("unique-names", "A unique name for every node", _apply, required=True)
