"""Checks that each layer with weights got the precision that was decided for it."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from edgekit.converters.contracts import LayerPlan
from edgekit.converters.quantization.op_rules import WEIGHTED
from edgekit.errors import InternalError


def audit(model: ir.Model, plan: Sequence[LayerPlan]) -> None:
    """Compares the graph with the plan.

    Args:
        model: In QDQ form.
        plan: What was decided, one row a node.

    Raises:
        InternalError: A layer is in another precision than planned.
    """
    nodes = {node.name: node for node in model.graph}
    for row in plan:
        if row.op not in WEIGHTED:
            continue
        actual = "int8" if _in_integers(nodes[row.name]) else "fp32"
        if actual != ("int8" if row.planned == "int8" else "fp32"):
            raise InternalError(
                "a layer has another precision than planned", where=row.name, got=actual, expected=row.planned
            )


def _in_integers(node: ir.Node) -> bool:
    """Whether both operands come from 8 bits and the weights are stored in them."""
    makers = [value.producer() if value is not None else None for value in node.inputs[:2]]
    if any(maker is None or maker.op_type != "DequantizeLinear" for maker in makers):
        return False
    stored = makers[1].inputs[0] if makers[1] is not None else None
    return stored is not None and stored.is_initializer() and stored.dtype == ir.DataType.INT8
