"""x * sigmoid(x) becomes Silu, x * tanh(softplus(x)) Mish, x * (erf(x / sqrt 2) + 1) / 2 and its tanh form Gelu."""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx_ir as ir

from edgekit.converters.passes import edgekit_ops
from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import (
    all_nodes,
    attribute,
    close_to,
    fused_name,
    live_nodes,
    only_consumer,
    producer,
    replace_node,
    scalar_of,
    used_once,
)
from edgekit.converters.passes.scalar_chain import (
    ScalarAffine,
    affine_above,
    affine_step,
    product_operands,
    unique_producer,
)


def _silu(model: ir.Model, context: PassContext) -> int:
    changes = 0
    for node in live_nodes(all_nodes(model), "Mul", "Swish"):
        if node.op_type == "Swish":
            x = node.inputs[0] if close_to(attribute(node, "alpha", 1.0), 1.0) else None
            nodes = [node]
        else:
            x, nodes = _gated(node, "Sigmoid")
        if x is None:
            continue
        edgekit_ops.declare(model)
        replace_node(node, ir.node(edgekit_ops.SILU, [x], domain=edgekit_ops.DOMAIN, name=fused_name(*nodes)))
        changes += 1
    return changes


def _gated(node: ir.Node, gate_op: str) -> tuple[ir.Value | None, list[ir.Node]]:
    """Matches x * gate_op(x): x and the nodes."""
    operands = product_operands(node)
    for x, gate in (operands, operands[::-1]) if operands else ():
        source = unique_producer(gate, gate_op)
        if source is not None and source.inputs[0] is x:
            return x, [source, node]
    return None, []


def _mish(model: ir.Model, context: PassContext) -> int:
    changes = 0
    for node in live_nodes(all_nodes(model), "Mul"):
        operands = product_operands(node)
        for x, gate in (operands, operands[::-1]) if operands else ():
            tanh = unique_producer(gate, "Tanh")
            softplus = unique_producer(tanh.inputs[0], "Softplus") if tanh and tanh.inputs[0] else None
            if tanh is not None and softplus is not None and softplus.inputs[0] is x:
                replace_node(node, ir.node("Mish", [x], name=fused_name(softplus, tanh, node)))
                changes += 1
                break
    return changes


def _gelu(model: ir.Model, context: PassContext) -> int:
    changes = 0
    for gate_op, form in (("Erf", "none"), ("Tanh", "tanh")):
        for gate in live_nodes(all_nodes(model), gate_op):
            x = _erf_argument(gate) if gate_op == "Erf" else _tanh_argument(gate)
            end = _gelu_end(gate, x) if x is not None else None
            if x is None or end is None:
                continue
            replace_node(end, ir.node("Gelu", [x], {"approximate": form}, name=fused_name(gate, end)))
            changes += 1
    return changes


def _erf_argument(gate: ir.Node) -> ir.Value | None:
    value = gate.inputs[0]
    if value is None or not used_once(value):
        return None
    inner = affine_above(value)
    return inner.source if close_to(inner.scale, math.sqrt(0.5)) and inner.shift == 0.0 else None


def _tanh_argument(gate: ir.Node) -> ir.Value | None:
    """Matches tanh(sqrt(2/pi) * (x + 0.044715 x^3))."""
    value = gate.inputs[0]
    if value is None or not used_once(value):
        return None
    inner = affine_above(value)
    total = producer(inner.source, "Add")
    if total is None or not close_to(inner.scale, math.sqrt(2 / math.pi)) or inner.shift != 0.0:
        return None
    for x, cubic in (total.inputs, total.inputs[::-1]):
        if x is not None and cubic is not None and used_once(cubic) and _is_cubic_term(cubic, x):
            return x
    return None


def _is_cubic_term(value: ir.Value, x: ir.Value) -> bool:
    term = affine_above(value)
    if not close_to(term.scale, 0.044715) or term.shift != 0.0:
        return False
    power = producer(term.source, "Pow")
    if power is not None:
        return power.inputs[0] is x and scalar_of(power.inputs[1]) == 3.0
    return sorted(_factors(term.source), key=id) == [x, x, x]


def _factors(value: ir.Value) -> list[ir.Value]:
    operands = product_operands(node) if (node := producer(value, "Mul")) else None
    return [value] if operands is None else [f for operand in operands for f in _factors(operand)]


def _gelu_end(gate: ir.Node, x: ir.Value) -> ir.Node | None:
    """Follows gate + 1, times x, times 1/2, the latter two in any order and nesting; returns the last node."""
    current, pending = _after_scalars(gate, ScalarAffine(x, 1.0, 0.0))
    product = only_consumer(current)
    operands = product_operands(product) if product is not None else None
    if product is None or operands is None:
        return None
    other = operands[0] if operands[1] is current else operands[1]
    scale = pending.scale
    if other is not x:
        factor = affine_above(other)
        if factor.source is not x or factor.shift != 0.0 or not used_once(other):
            return None
        scale *= factor.scale
    if not close_to(pending.shift, pending.scale):
        return None
    if close_to(scale, 0.5):
        return product
    last = only_consumer(product.outputs[0])
    step = affine_step(last)
    return last if step is not None and step.shift == 0.0 and close_to(step.scale * scale, 0.5) else None


def _after_scalars(gate: ir.Node, start: ScalarAffine) -> tuple[ir.Value, ScalarAffine]:
    """Follows scalar steps downwards: the last value, and it as an affine function of the gate."""
    value, total = gate.outputs[0], start
    for node in _single_consumers(value):
        step = affine_step(node)
        if step is None:
            break
        total = ScalarAffine(total.source, total.scale * step.scale, total.shift * step.scale + step.shift)
        value = node.outputs[0]
    return value, total


def _single_consumers(value: ir.Value) -> Iterator[ir.Node]:
    while (node := only_consumer(value)) is not None:
        yield node
        value = node.outputs[0]


SILU = Pass("silu", "x * sigmoid(x) to edgekit's Silu", _silu)
MISH = Pass("mish", "x * tanh(softplus(x)) to Mish", _mish)
GELU = Pass("gelu", "The erf and the tanh form of GELU to Gelu", _gelu)
