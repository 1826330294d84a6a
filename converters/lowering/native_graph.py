"""Lowers one graph of native operators: walks it in topological order and closes the edges."""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.lowering import graph, ops  # noqa: F401  (ops: registers all lowerings)
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.registry import NotLowerableError, find_lowering


def unsupported_nodes(source: ir.Graph, isa: str) -> dict[ir.Node, str]:
    """Nodes that have no native form, with the reason.

    A node whose operands an unsupported one gives is judged on its own: what it would read is taken as given.
    """
    reasons = _edge_faults(source)
    build = PlanBuilder(source, isa, tolerant=bool(reasons))
    for node in list(reasons):
        _invent_outputs(build, node, reasons)
    for node in source:
        if node in build.done:
            continue
        try:
            _lower_node(build, node)
        except NotLowerableError as error:
            reasons[node] = str(error)
            _invent_outputs(build, node, reasons)
    return reasons


def _edge_faults(source: ir.Graph) -> dict[ir.Node, str]:
    """Nodes that read or give an input or output of the graph that no native program can have."""
    reasons: dict[ir.Node, str] = {}
    for value in (*source.inputs, *source.outputs):
        try:
            graph.dims_of(value)
            graph.program_dtype_of(value)
        except NotLowerableError as error:
            producer = value.producer()
            nodes = graph.consumers(value) + ([] if producer is None else [producer])
            reasons.update(dict.fromkeys(nodes, str(error)))
    return reasons


def _invent_outputs(build: PlanBuilder, node: ir.Node, reasons: dict[ir.Node, str]) -> None:
    """Stands in for what ONNX Runtime will give."""
    build.done.add(node)
    for output in node.outputs:
        if output.name and not build.is_bound(output):
            try:  # what has no native form makes its readers foreign too
                build.bind(output, build.stand_in(output))
            except NotLowerableError as error:
                for reader in graph.consumers(output):
                    reasons.setdefault(reader, str(error))
                    build.done.add(reader)
                    _invent_outputs(build, reader, reasons)


def lower_graph(source: ir.Graph, isa: str) -> PlanBuilder:
    """Lowers a graph whose nodes are all native.

    Args:
        source: Static shapes; one DequantizeLinear a quantized value (see prepare.py).
        isa: Name in enums.isa.

    Raises:
        NotLowerableError: A node has no native form after all.
    """
    build = PlanBuilder(source, isa)
    for node in source:
        if node not in build.done:
            _lower_node(build, node)
    for value, view in zip(source.outputs, build.outputs, strict=True):
        result = build.raw_or_converted(value, view)
        if not result.same_place(view):
            producer = value.producer()
            build.emit("copy", [result], [view], nodes=() if producer is None else (producer,))
    return build


def _lower_node(build: PlanBuilder, node: ir.Node) -> None:
    lowering = find_lowering(node)
    if lowering is None:
        raise NotLowerableError(f"no native kernel for {node.op_type}")
    if all(graph.constant_of(output) is not None for output in node.outputs):
        build.fuse([node])
        return
    lowering(build, node)
