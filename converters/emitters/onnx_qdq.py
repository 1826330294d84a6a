"""Writes the ONNX file that ONNX Runtime runs: QDQ with the activation type of the target, or float.

The canonical graph holds s8 activations with a zero point and s8 weights. x86 kernels of ONNX Runtime want u8
activations; adding 128 to values and zero point is exact. Where they add pairs of products in 16 bits (x86 without
VNNI), weights are halved to 7 bits, so that 2 * 255 * 64 stays below 32,768.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.float_reference import model_bytes
from edgekit.converters.passes import edgekit_ops
from edgekit.converters.passes._pass import PassContext
from edgekit.converters.passes.dead_nodes import DEAD_NODES
from edgekit.converters.passes.graph_edit import add_constant, all_nodes, constant_of, forget_names, input_at, is_op
from edgekit.errors import InternalError

_IR_VERSION = 10
_HALF_LIMIT = 64
_WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass(frozen=True)
class QdqOptions:
    """What the kernels of the target want.

    Attributes:
        activation: Type of quantized activations.
        seven_bit_weights: Halve the weights' range.
    """

    activation: Literal["u8", "s8"] = "s8"
    seven_bit_weights: bool = False


def options_for(architecture: str, features: tuple[str, ...]) -> QdqOptions:
    """Chooses the scheme by CPU (conversion.md, "Scheme per target").

    Args:
        architecture: x86_64 or aarch64.
        features: As in /proc/cpuinfo.
    """
    if architecture != "x86_64":
        return QdqOptions("s8")
    return QdqOptions("u8", seven_bit_weights=not {"avx512_vnni", "avx_vnni"} & set(features))


def emit_onnx(model: ir.Model, options: QdqOptions) -> bytes:
    """Serialises a graph for ONNX Runtime.

    Args:
        model: Float or QDQ graph; not changed.
        options: Only matters for QDQ graphs.

    Returns:
        The ONNX file: standard operators only, weights included.

    Raises:
        ModelError: The weights exceed 2 GiB.
    """
    result = edgekit_ops.expand(model)
    forget_names(result)
    if options.seven_bit_weights:
        _halve_weights(result)
    if options.activation == "u8":
        _shift_activations(result)
    DEAD_NODES.apply(result, PassContext())
    result.ir_version = (
        min(result.ir_version, _IR_VERSION) if result.graph.opset_imports[""] <= 21 else result.ir_version
    )
    return model_bytes(result)


def _shift_activations(model: ir.Model) -> None:
    for node in all_nodes(model):
        if not is_op(node, "QuantizeLinear", "DequantizeLinear"):
            continue
        zero_point = constant_of(input_at(node, 2))
        of_constant = constant_of(node.inputs[0]) is not None
        if zero_point is None or zero_point.dtype != np.int8 or of_constant:
            continue
        shifted = (zero_point.astype(np.int16) + 128).astype(np.uint8)
        stem = str(node.inputs[2].name)  # type: ignore[union-attr]
        node.replace_input_with(2, add_constant(model, f"{stem}_u8", shifted))
        node.attributes.pop("output_dtype", None)
        for value in node.outputs if node.op_type == "QuantizeLinear" else ():
            value.type = ir.TensorType(ir.DataType.UINT8)


def _halve_weights(model: ir.Model) -> None:
    for node in all_nodes(model):
        if not is_op(node, *_WEIGHTED):
            continue
        weight = _dequantized(node, 1)
        if weight is None or weight.dtype != np.int8:
            continue
        _rescale(model, node, 1, np.clip(np.rint(weight / 2.0), -_HALF_LIMIT, _HALF_LIMIT).astype(np.int8))
        bias = _dequantized(node, 2)
        if bias is not None:
            _rescale(model, node, 2, np.rint(bias / 2.0).astype(np.int32))


def _dequantized(node: ir.Node, index: int) -> NDArray[Any] | None:
    """Returns the integers of a constant that reaches an input through DequantizeLinear."""
    value = input_at(node, index)
    source = None if value is None else value.producer()
    return constant_of(source.inputs[0]) if source is not None and is_op(source, "DequantizeLinear") else None


def _rescale(model: ir.Model, node: ir.Node, index: int, integers: NDArray[Any]) -> None:
    """Gives one reader its own DequantizeLinear of new integers at twice the scale."""
    value = node.inputs[index]
    source = None if value is None else value.producer()
    scale = None if source is None else constant_of(source.inputs[1])
    if source is None or scale is None or node.graph is None:
        raise InternalError("quantized weights without a constant scale", where=node.name)
    stem = f"{source.inputs[0].name}_half"  # type: ignore[union-attr]
    inputs = [
        add_constant(model, stem, integers),
        add_constant(model, f"{stem}_scale", (scale * np.float32(2)).astype(scale.dtype)),
        input_at(source, 2),
    ]
    halved = ir.node(
        "DequantizeLinear", inputs, dict(source.attributes) if source.attributes else None, name=f"{stem}_dequantize"
    )
    halved.outputs[0].name = f"{stem}_dequantized"
    node.graph.insert_before(node, halved)
    node.replace_input_with(index, halved.outputs[0])
    if not source.outputs[0].uses() and source.graph is not None:
        source.graph.remove(source, safe=True)
