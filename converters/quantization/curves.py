"""Functions of one value: which nodes form one, and its values.

A region starts at one tensor and ends at another; every node between is element-wise and reads only values of the
region and scalars. x * sigmoid(x), HardSwish, a * f(x) + b and the like all become one table of 256 entries. A
tensor that anything else reads ends a region, since it has to exist anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
import onnxruntime
from numpy.typing import NDArray

from edgekit.converters.quantization import op_rules
from edgekit.converters.quantization.graph_access import constant, is_float_activation, scalar


@dataclass(frozen=True, eq=False)
class CurveRegion:
    """A function of one value.

    Attributes:
        root: The tensor it starts from.
        output: The tensor it gives.
        nodes: In order, from the root to the output.
    """

    root: ir.Value
    output: ir.Value
    nodes: tuple[ir.Node, ...]


def curve_regions(graph: ir.Graph) -> list[CurveRegion]:
    """Finds the largest regions."""
    ends: set[ir.Value] = set()
    while True:
        roots = _roots(graph, ends)
        broken = {value for value in roots if value not in ends and _is_read_elsewhere(value, roots)}
        if not broken:
            break
        ends |= broken
    regions = []
    for value in roots:
        if value in ends:
            regions.append(CurveRegion(roots[value], value, _nodes_between(roots[value], value, ends)))
    return regions


def _roots(graph: ir.Graph, ends: set[ir.Value]) -> dict[ir.Value, ir.Value]:
    """For each output of a curve node, the tensor that it is a function of."""
    roots: dict[ir.Value, ir.Value] = {}
    for node in graph:
        operands = _operands(node)
        if operands is None:
            continue
        starts = {value if value in ends else roots.get(value, value) for value in operands}
        if len(starts) == 1:
            roots[node.outputs[0]] = starts.pop()
    return roots


def _operands(node: ir.Node) -> list[ir.Value] | None:
    """Activations of a node that may be part of a region; None when it can't be."""
    if not (op_rules.is_unary_curve(node) or op_rules.is_binary_curve(node)):
        return None
    if op_rules.is_unary_curve(node):
        value = node.inputs[0]
        return [value] if value is not None and is_float_activation(value) else None
    operands = []
    for value in node.inputs:
        if value is None:
            return None
        if is_float_activation(value):
            operands.append(value)
        elif scalar(value) is None or not _keeps_rank(node, value):
            return None
    return operands or None


def _keeps_rank(node: ir.Node, value: ir.Value) -> bool:
    array = constant(value)
    if array is None or array.ndim <= 1:
        return True
    shapes = [other.shape for other in node.inputs if other is not None and other is not value]
    return all(shape is not None and len(shape) >= array.ndim for shape in shapes)


def _is_read_elsewhere(value: ir.Value, roots: dict[ir.Value, ir.Value]) -> bool:
    if value.is_graph_output() or not value.uses():
        return True
    return any(len(use.node.outputs) != 1 or roots.get(use.node.outputs[0]) is not roots[value] for use in value.uses())


def _nodes_between(root: ir.Value, output: ir.Value, ends: set[ir.Value]) -> tuple[ir.Node, ...]:
    found: list[ir.Node] = []

    def visit(value: ir.Value) -> None:
        node = value.producer()
        if node is None or node in found:
            return
        for operand in node.inputs:
            if operand is not None and operand is not root and operand not in ends and constant(operand) is None:
                visit(operand)
        found.append(node)

    visit(output)
    return tuple(found)


def evaluate(region: CurveRegion, model: ir.Model, values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Values of the function.

    Args:
        region: The function, in a graph of model.
        model: Gives opsets and the functions of the edgekit domain.
        values: Where to evaluate it, float32 [n].

    Returns:
        float32 [n].
    """
    mapping: dict[ir.Value, ir.Value] = {}
    start = ir.Value(name="x", shape=ir.Shape([values.size]), type=ir.TensorType(ir.DataType.FLOAT))
    mapping[region.root] = start
    initializers: list[ir.Value] = []
    nodes: list[ir.Node] = []
    for node in region.nodes:
        inputs = []
        for value in node.inputs:
            if value is not None and value not in mapping:
                array = constant(value)
                tensor = ir.tensor(np.asarray(array).reshape(()))
                held = ir.Value(name=f"c{len(mapping)}", const_value=tensor)
                held.dtype, held.shape = tensor.dtype, ir.Shape([])
                mapping[value] = held
                initializers.append(held)
            inputs.append(None if value is None else mapping[value])
        copy = ir.Node(node.domain, node.op_type, inputs, list(node.attributes.values()), num_outputs=1)
        copy.outputs[0].name = f"y{len(nodes)}"
        mapping[node.outputs[0]] = copy.outputs[0]
        nodes.append(copy)
    end = mapping[region.output]
    end.dtype, end.shape = ir.DataType.FLOAT, ir.Shape([values.size])
    graph = ir.Graph(
        [start], [end], nodes=nodes, initializers=initializers, opset_imports=dict(model.opset_imports), name="f"
    )
    held_model = ir.Model(graph, ir_version=min(model.ir_version, 10), functions=list(model.functions.values()))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        ir.to_proto(held_model).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, {"x": values.astype(np.float32)})[0]).reshape(-1)
