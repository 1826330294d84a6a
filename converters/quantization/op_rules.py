"""How each operator takes part in quantization; the table behind the placement rules.

weighted      Conv, ConvTranspose, Gemm, MatMul by a constant: integer products
pairwise      Add, Sub, Mul of two activations: integers in, integers out
curve         functions of one value at a time: one table of 256 entries, whatever their number
inherit       values are only moved or selected: the output has the input's scale
requantize    values are blended: the output has a scale of its own
concat        inputs take the output's scale, or are requantized
Anything else stays in float.
"""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.quantization.graph_access import attribute_int, attribute_text, constant, scalar

WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
PAIRWISE = frozenset({"Add", "Sub", "Mul"})
_UNARY_CURVES = frozenset({
    "Relu", "LeakyRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Silu", "Gelu", "Mish", "Tanh", "Exp", "Log", "Sqrt",
    "Erf", "Abs", "Neg", "Reciprocal", "Floor", "Ceil", "Round", "Sin", "Cos", "Elu", "Selu", "Celu", "Softplus",
    "Softsign", "ThresholdedRelu", "Atan",
})  # fmt: skip
_BINARY_CURVES = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "PRelu"})
_INHERIT = frozenset({
    "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Slice", "Split", "MaxPool", "GlobalMaxPool",
    "Gather", "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "ReduceMax", "ReduceMin",
})  # fmt: skip
_REQUANTIZE = frozenset({"AveragePool", "GlobalAveragePool", "ReduceMean"})
_FIXED_RANGES = {"Sigmoid": (0.0, 255 / 256), "Softmax": (0.0, 255 / 256), "Tanh": (-1.0, 127 / 128)}
CUT_OFF = frozenset({"Relu", "Clip"})  # absorbed by the range of the output that follows


def is_standard(node: ir.Node) -> bool:
    """Whether the node's operator is ONNX's own or edgekit's."""
    return node.domain in ("", "ai.onnx", "edgekit")


def is_cut_off(node: ir.Node) -> bool:
    """Relu, or Clip between constants."""
    if node.op_type == "Relu":
        return True
    return node.op_type == "Clip" and all(v is None or scalar(v) is not None for v in node.inputs[1:])


def is_unary_curve(node: ir.Node) -> bool:
    """A function of its first input alone, value by value."""
    return is_standard(node) and (node.op_type in _UNARY_CURVES or is_cut_off(node))


def is_binary_curve(node: ir.Node) -> bool:
    """A function of one value when its inputs come from the same tensor or are scalars."""
    return is_standard(node) and node.op_type in _BINARY_CURVES


def is_inherit(node: ir.Node) -> bool:
    """Values are only moved or selected."""
    if node.op_type == "MaxPool":
        return len(node.outputs) == 1 or not node.outputs[1].uses()
    if node.op_type == "Resize":
        return attribute_text(node, "mode", "nearest") == "nearest"
    if node.op_type == "Pad":
        return _pads_with_zero(node)
    return node.op_type in _INHERIT


def is_requantize(node: ir.Node) -> bool:
    """Values are blended linearly."""
    if node.op_type == "Resize":
        mode = attribute_text(node, "mode", "nearest")
        return mode == "linear" and not attribute_int(node, "antialias", 0)
    return node.op_type in _REQUANTIZE


def _pads_with_zero(node: ir.Node) -> bool:
    if attribute_text(node, "mode", "constant") != "constant":
        return True
    value = node.inputs[2] if len(node.inputs) > 2 else None
    return value is None or scalar(value) == 0.0


def fixed_range(node: ir.Node | None) -> tuple[float, float] | None:
    """Range that every result of the operator lies in: the whole grid 1/256 (or 1/128 for Tanh) is used for it."""
    return _FIXED_RANGES.get(node.op_type) if node is not None and is_standard(node) else None


def is_shape_arithmetic(node: ir.Node) -> bool:
    """Whether a node works on integers or booleans only."""
    kinds = {value.dtype for value in node.outputs}
    return all(kind is not None and kind not in (ir.DataType.FLOAT, ir.DataType.FLOAT16) for kind in kinds)


def is_lookup_of_constants(node: ir.Node) -> bool:
    """Gather from a constant table, such as an embedding."""
    return node.op_type == "Gather" and constant(node.inputs[0]) is not None
