"""Calls of model-local functions are replaced by the functions' bodies."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import common

from edgekit.converters.passes import edgekit_ops
from edgekit.converters.passes._pass import Pass, PassContext


def _apply(model: ir.Model, context: PassContext) -> int:
    calls = sum(n.op_identifier() in model.functions for n in ir.traversal.RecursiveGraphIterator(model.graph))
    common.InlinePass()(model)
    edgekit_ops.remove_unused_functions(model)
    return calls


INLINE_FUNCTIONS = Pass(
    "inline-functions",
    "Model-local functions to their bodies",
    _apply,
    lambda model: bool(model.functions),
    required=True,
)
