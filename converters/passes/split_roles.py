"""An initializer that several nodes read in different roles becomes one initializer a role.

Tied weights (an embedding read by Gather and by MatMul, a kernel read by Conv and ConvTranspose) need different axes
and scales when quantized; a bias read by two layers needs the scale of each.
"""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import add_constant, all_nodes, constant_of, is_float32

_WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def _role(node: ir.Node, index: int) -> tuple[str, int, str]:
    bias_of = node.name or "" if node.op_type in _WEIGHTED and index == 2 else ""
    return node.op_type, index, bias_of


def _apply(model: ir.Model, context: PassContext) -> int:
    roles: dict[ir.Value, dict[tuple[str, int, str], list[tuple[ir.Node, int]]]] = {}
    for node in all_nodes(model):
        for index, value in enumerate(node.inputs):
            if value is not None and is_float32(value) and constant_of(value) is not None:
                roles.setdefault(value, {}).setdefault(_role(node, index), []).append((node, index))
    changes = 0
    for value, by_role in roles.items():
        if len(by_role) < 2 or not any(role[0] in _WEIGHTED for role in by_role):
            continue
        array = constant_of(value)
        for uses in list(by_role.values())[1:]:
            copy = add_constant(model, value.name or "constant", array)  # type: ignore[arg-type]
            for node, index in uses:
                node.replace_input_with(index, copy)
            changes += 1
    return changes


SPLIT_ROLES = Pass("split-roles", "Initializers shared in different roles to one each", _apply)
