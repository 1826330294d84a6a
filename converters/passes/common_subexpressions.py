"""Nodes that compute the same from the same inputs become one."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import all_nodes


def _apply(model: ir.Model, context: PassContext) -> int:
    before = len(all_nodes(model))
    common.CommonSubexpressionEliminationPass()(model)
    return before - len(all_nodes(model))


COMMON_SUBEXPRESSIONS = Pass("common-subexpressions", "Equal computations become one", _apply)
