"""Softmax and LogSoftmax."""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.views import Want


@lowers("Softmax", "LogSoftmax")
def lower_softmax(build: PlanBuilder, node: ir.Node) -> None:
    """Along one axis, in float."""
    view = build.raw(graph.required(node, 0))
    if view.dtype != "f32":
        raise NotLowerableError(f"{node.op_type} of {view.dtype}")
    axis = graph.normalised_axis(int(graph.attribute(node, "axis", -1)), view.rank)
    build.fuse([node])
    result = build.new(node.outputs[0], Want(view.dims, "f32", view.order()))
    build.bind(node.outputs[0], result)
    build.emit("softmax", [view], [result], {"axis": axis, "log": int(node.op_type == "LogSoftmax")})
