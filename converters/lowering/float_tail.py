"""What a float product takes in behind itself: one activation and one residual Add, in either order."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.activations import Activation, activation_of
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.views import Dims, View


@dataclass
class FloatTail:
    """Fused followers of a product.

    Attributes:
        result: The value that the fused operation gives.
        activation: Or the identity.
        residual: Other operand of a fused Add.
        add_before_act: Whether the Add comes first.
        nodes: Everything taken in, without the product itself.
    """

    result: ir.Value
    activation: Activation = field(default_factory=Activation)
    residual: View | None = None
    add_before_act: bool = False
    nodes: list[ir.Node] = field(default_factory=list)

    def attributes(self) -> dict[str, int | float]:
        """The epilogue attributes of conv_f32 and depthwise_f32."""
        return {**self.activation.attributes("act_"), "add_before_act": int(self.add_before_act)}


def match_float_tail(build: PlanBuilder, value: ir.Value, dims: Dims) -> FloatTail:
    """Finds all that the float product giving `value` takes in."""
    tail = FloatTail(value)
    _take_activation(tail)
    _take_residual(build, tail, dims)
    if tail.add_before_act:
        _take_activation(tail)
    return tail


def _take_activation(tail: FloatTail) -> None:
    node = graph.sole_consumer(tail.result)
    activation = None if node is None or node.inputs[0] is not tail.result else activation_of(node)
    if node is not None and activation is not None:
        tail.activation = activation
        tail.nodes.append(node)
        tail.result = node.outputs[0]


def _take_residual(build: PlanBuilder, tail: FloatTail, dims: Dims) -> None:
    add = graph.sole_consumer(tail.result)
    if add is None or not graph.is_op(add, "Add") or graph.dims_of(add.outputs[0]) != dims:
        return
    other = add.inputs[1] if add.inputs[0] is tail.result else add.inputs[0]
    if other is None or not build.is_bound(other) or graph.constant_of(other) is not None:
        return
    if graph.dims_of(other) != dims:
        return
    tail.add_before_act = tail.activation.is_identity
    tail.residual = build.raw(other)
    tail.nodes.append(add)
    tail.result = add.outputs[0]
