"""LSTM with its default activations."""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.views import View, Want
from edgekit.package.program_schema import program_schema

_DEFAULT_ACTIVATIONS = ("Sigmoid", "Tanh", "Tanh")


def _check(node: ir.Node, steps: int) -> None:
    """Raises NotLowerableError for what the kernel doesn't do."""
    for name in ("clip", "activation_alpha", "activation_beta"):
        if graph.attribute(node, name) is not None:
            raise NotLowerableError(f"{name} is set")
    if int(graph.attribute(node, "input_forget", 0)) or int(graph.attribute(node, "layout", 0)):
        raise NotLowerableError("input_forget or a batch-first layout")
    names = tuple(_text(name) for name in graph.attribute(node, "activations", ()))
    if names not in ((), _DEFAULT_ACTIVATIONS, 2 * _DEFAULT_ACTIVATIONS):
        raise NotLowerableError(f"activations {names}")
    if graph.operand(node, 7) is not None:
        raise NotLowerableError("peepholes")
    lengths = graph.operand(node, 4)
    given = graph.constant_ints(lengths)
    if lengths is not None and (given is None or any(length != steps for length in given)):
        raise NotLowerableError("sequences of different lengths")


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


@lowers("LSTM")
def lower_lstm(build: PlanBuilder, node: ir.Node) -> None:
    """Forward, reverse or both, over whole sequences."""
    x = build.raw(graph.required(node, 0))
    _check(node, x.dims[0])
    operands: list[View | None] = [_dense(build, x)]
    for index in (1, 2, 3, 5, 6):
        value = graph.operand(node, index)
        operands.append(None if value is None else _dense(build, build.raw(value)))
    if any(view is not None and view.dtype != "f32" for view in operands):
        raise NotLowerableError("LSTM of another dtype than float32")
    build.fuse([node])
    results: list[View | None] = []
    for output in node.outputs:
        if not output.uses() and not output.is_graph_output():
            results.append(None)
            continue
        view = build.new(output, Want(graph.dims_of(output), "f32", accept=View.is_dense))
        build.bind(output, view)
        results.append(view)
    direction = program_schema().enums["lstm_direction"][graph.attribute(node, "direction", "forward")]
    hidden = int(graph.attribute(node, "hidden_size"))
    weights = [view for view in operands[1:3] if view is not None]
    macs = x.dims[0] * x.dims[1] * sum(view.elements for view in weights)
    build.emit("lstm", operands, results, {"direction": direction, "hidden": hidden}, macs=macs)


def _dense(build: PlanBuilder, view: View) -> View:
    return view if view.is_dense() else build.copied(view)
