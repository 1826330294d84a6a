"""Reads chains of operations with scalar constants, the raw form of activations in exported models."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from edgekit.converters.passes.graph_edit import attribute, input_at, is_op, producer, scalar_of, used_once


@dataclass(frozen=True)
class ScalarAffine:
    """source * scale + shift."""

    source: ir.Value
    scale: float
    shift: float


def binary_scalar(node: ir.Node | None) -> tuple[ir.Value, float, int] | None:
    """Splits a binary node with one scalar constant: (other operand, number, index of the other operand)."""
    if node is None or len(node.inputs) != 2:
        return None
    for index in (1, 0):
        number, other = scalar_of(node.inputs[index]), node.inputs[1 - index]
        if number is not None and other is not None and scalar_of(other) is None:
            return other, number, 1 - index
    return None


def affine_step(node: ir.Node | None) -> ScalarAffine | None:
    """Reads Add, Sub, Mul, Div by a scalar constant, or Neg, as an affine function of the other operand."""
    if is_op(node, "Neg") and node is not None and node.inputs[0] is not None:
        return ScalarAffine(node.inputs[0], -1.0, 0.0)
    if not is_op(node, "Add", "Sub", "Mul", "Div"):
        return None
    split = binary_scalar(node)
    if split is None or node is None:
        return None
    other, number, index = split
    if node.op_type == "Add":
        return ScalarAffine(other, 1.0, number)
    if node.op_type == "Mul":
        return ScalarAffine(other, number, 0.0)
    if node.op_type == "Sub":
        return ScalarAffine(other, 1.0, -number) if index == 0 else ScalarAffine(other, -1.0, number)
    return ScalarAffine(other, 1.0 / number, 0.0) if index == 0 and number != 0 else None


def affine_above(value: ir.Value) -> ScalarAffine:
    """Follows scalar steps upwards as long as each value is read once, the last one at least by its consumer.

    Args:
        value: Where to start; its own readers are the caller's business.

    Returns:
        value as an affine function of the value above the chain (itself, factor 1, when there is none).
    """
    result = ScalarAffine(value, 1.0, 0.0)
    while True:
        step = affine_step(result.source.producer())
        if step is None:
            return result
        result = ScalarAffine(step.source, step.scale * result.scale, step.shift * result.scale + result.shift)
        if not used_once(step.source):
            return result


def clip_bounds(node: ir.Node | None) -> tuple[ir.Value, float, float] | None:
    """Reads Clip with constant bounds, Relu, or Min and Max with a scalar: (input, low, high), inf where open."""
    if node is None or not node.inputs or node.inputs[0] is None:
        return None
    if is_op(node, "Relu"):
        return node.inputs[0], 0.0, float("inf")
    if is_op(node, "Clip"):
        bounds = [float("-inf"), float("inf")]
        for index in (1, 2):
            given = input_at(node, index)
            number = scalar_of(given)
            if given is not None and number is None:
                return None
            if number is not None:
                bounds[index - 1] = number
        return node.inputs[0], bounds[0], bounds[1]
    split = binary_scalar(node) if is_op(node, "Min", "Max") else None
    if split is None:
        return None
    other, number, _ = split
    return (other, float("-inf"), number) if node.op_type == "Min" else (other, number, float("inf"))


def hard_gate_above(value: ir.Value) -> tuple[ScalarAffine, list[ir.Node]] | None:
    """Reads clip(x * scale + shift, 0, 1) in any of its spellings, HardSigmoid included.

    Args:
        value: The gate, or the gate times a factor that is undone further down (relu6(x + 3), without the / 6).

    Returns:
        The affine function inside the clip, and the nodes that make up the gate; None when value is no such gate.
    """
    node = value.producer()
    if is_op(node, "HardSigmoid") and node is not None and node.inputs[0] is not None:
        inner = ScalarAffine(node.inputs[0], attribute(node, "alpha", 0.2), attribute(node, "beta", 0.5))
        return inner, [node]
    nodes: list[ir.Node] = []
    factor = 1.0
    step = affine_step(node)
    if step is not None and step.shift == 0.0 and step.scale > 0 and node is not None:
        nodes.append(node)
        factor, node = step.scale, step.source.producer()
        if not used_once(step.source):
            return None
    clip = clip_bounds(node)
    if clip is None or node is None:
        return None
    inner_value, low, high = clip
    nodes.append(node)
    if low != 0.0 or abs(high * factor - 1.0) > 1e-4:
        return None
    above = affine_above(inner_value) if used_once(inner_value) else ScalarAffine(inner_value, 1.0, 0.0)
    return ScalarAffine(above.source, above.scale * factor, above.shift * factor), nodes


def product_operands(node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    """Returns the operands of a Mul of two values that are no constants."""
    if not is_op(node, "Mul") or len(node.inputs) != 2:
        return None
    a, b = node.inputs
    if a is None or b is None or a.const_value is not None or b.const_value is not None:
        return None
    return a, b


def unique_producer(value: ir.Value, *op_types: str) -> ir.Node | None:
    """Returns the producer of a value that nothing else reads."""
    return producer(value, *op_types) if used_once(value) else None
