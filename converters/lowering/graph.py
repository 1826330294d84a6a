"""Questions about the source graph: constants, consumers, attributes, quantization parameters, static shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.lowering.registry import NotLowerableError
from edgekit.converters.lowering.views import Dims, Quant

Array = NDArray[Any]

_PROGRAM_DTYPES = {
    ir.DataType.FLOAT: "f32",
    ir.DataType.INT8: "s8",
    ir.DataType.UINT8: "u8",
    ir.DataType.INT32: "i32",
    ir.DataType.INT64: "i64",
    ir.DataType.BOOL: "bool",
}


def program_dtype_of(value: ir.Value) -> str:
    """Program dtype of a value.

    Raises:
        NotLowerableError: Programs have no such dtype, or none was inferred.
    """
    dtype = _PROGRAM_DTYPES.get(value.dtype) if value.dtype is not None else None
    if dtype is None:
        raise NotLowerableError(f"dtype {value.dtype} of {value.name}")
    return dtype


def dims_of(value: ir.Value) -> Dims:
    """Static dims of a value.

    Raises:
        NotLowerableError: The shape is not static, or a dim is 0.
    """
    if value.shape is None or not all(isinstance(dim, int) for dim in value.shape):
        raise NotLowerableError(f"shape of {value.name} is not static")
    dims = tuple(int(dim) for dim in value.shape)  # type: ignore[arg-type]
    if 0 in dims:
        raise NotLowerableError(f"{value.name} is empty")
    return dims


def is_op(node: ir.Node | None, *op_types: str) -> bool:
    """Whether a node is one of the named operators of the default domain (or "edgekit.X" for ours)."""
    if node is None:
        return False
    name = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
    return name in op_types


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """Value of an attribute: int, float, str, or a tuple of those."""
    attr = node.attributes.get(name)
    if attr is None:
        return default
    value = attr.value
    if isinstance(value, bytes):
        return value.decode()
    return tuple(value) if isinstance(value, list | tuple) else value


def operand(node: ir.Node, index: int) -> ir.Value | None:
    """Input by position; None where it is absent."""
    return node.inputs[index] if index < len(node.inputs) else None


def required(node: ir.Node, index: int) -> ir.Value:
    """Input by position.

    Raises:
        NotLowerableError: It is absent.
    """
    value = operand(node, index)
    if value is None:
        raise NotLowerableError(f"input {index} is missing")
    return value


def constant_of(value: ir.Value | None) -> Array | None:
    """Contents of a constant: an initializer, a Constant node, or DequantizeLinear of one; None for anything else."""
    if value is None:
        return None
    if value.const_value is not None and not value.is_graph_input():
        return np.asarray(value.const_value.numpy())
    producer = value.producer()
    if producer is None:
        return None
    if is_op(producer, "Constant"):
        return _constant_node(producer)
    if is_op(producer, "DequantizeLinear") and constant_of(producer.inputs[0]) is not None:
        return dequantized_constant(producer)
    return None


def _constant_node(node: ir.Node) -> Array | None:
    for name, attr in node.attributes.items():
        if name == "value":
            return np.asarray(attr.value.numpy())
        if name in ("value_float", "value_floats"):
            return np.asarray(attr.value, np.float32)
        if name in ("value_int", "value_ints"):
            return np.asarray(attr.value, np.int64)
    return None


def constant_ints(value: ir.Value | None) -> list[int] | None:
    """A constant of integers as a flat list."""
    array = constant_of(value)
    return None if array is None else [int(number) for number in array.reshape(-1)]


def constant_scalar(value: ir.Value | None) -> float | None:
    """A constant of one element as a float."""
    array = constant_of(value)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


@dataclass(frozen=True)
class QuantizedConstant:
    """Integers under a DequantizeLinear, with its parameters.

    Attributes:
        values: int8, uint8 or int32.
        scale: float32, scalar or one a channel.
        zero: Zero points, of scale's shape.
        axis: Axis of the channels.
    """

    values: Array
    scale: NDArray[np.float32]
    zero: Array
    axis: int

    def per_channel(self, array: Array) -> Array:
        """Reshapes scale or zero so that it broadcasts against values."""
        if array.size == 1:
            return array.reshape(())
        shape = [1] * self.values.ndim
        shape[self.axis] = -1
        return array.reshape(shape)

    def dequantized(self) -> NDArray[np.float32]:
        """(values - zero) * scale in float32."""
        centred = (self.values.astype(np.int64) - self.per_channel(self.zero).astype(np.int64)).astype(np.float32)
        return centred * self.per_channel(self.scale).astype(np.float32)


def quantized_constant(value: ir.Value | None) -> QuantizedConstant | None:
    """What is under the DequantizeLinear that gives a constant; None for anything else."""
    producer = None if value is None else value.producer()
    if producer is None or not is_op(producer, "DequantizeLinear"):
        return None
    values, scale = constant_of(producer.inputs[0]), constant_of(operand(producer, 1))
    if values is None or scale is None or int(attribute(producer, "block_size", 0)) != 0:
        return None
    zero = constant_of(operand(producer, 2))
    axis = int(attribute(producer, "axis", 1))
    return QuantizedConstant(
        values,
        scale.astype(np.float32),
        np.zeros(scale.shape, values.dtype) if zero is None else zero,
        axis % values.ndim if values.ndim else 0,
    )


def dequantized_constant(node: ir.Node) -> NDArray[np.float32] | None:
    """Result of a DequantizeLinear of constants."""
    constant = quantized_constant(node.outputs[0])
    return None if constant is None else constant.dequantized()


def quant_parameters(node: ir.Node, storage_dtype: str) -> Quant | None:
    """Per-tensor parameters of a QuantizeLinear or DequantizeLinear of an activation.

    Args:
        node: The Q or DQ node.
        storage_dtype: u8 or s8: how the target stores activations. The zero point is shifted by 128 where the model
            says the other; values are then too, which changes nothing about what they stand for.

    Returns:
        The parameters; None where they aren't constant, aren't per tensor or aren't 8 bits wide.
    """
    scale, zero_value = constant_of(operand(node, 1)), operand(node, 2)
    zero = constant_of(zero_value)
    if scale is None or scale.size != 1 or (zero is None and zero_value is not None):
        return None
    integers = node.outputs[0] if is_op(node, "QuantizeLinear") else required(node, 0)
    dtype = zero.dtype.name if zero is not None else ("int8" if integers.dtype == ir.DataType.INT8 else "uint8")
    if dtype not in ("int8", "uint8"):
        return None
    shift = {("int8", "u8"): 128, ("uint8", "s8"): -128}.get((dtype, storage_dtype), 0)
    return Quant(float(scale.reshape(-1)[0]), (0 if zero is None else int(zero.reshape(-1)[0])) + shift)


def sole_consumer(value: ir.Value) -> ir.Node | None:
    """The one node that reads a value, once; None where there are others or it is an output of the graph."""
    uses = list(value.uses())
    return uses[0].node if len(uses) == 1 and not value.is_graph_output() else None


def consumers(value: ir.Value) -> list[ir.Node]:
    """Nodes that read a value, each once."""
    return list(dict.fromkeys(use.node for use in value.uses()))


def normalised_axis(axis: int, rank: int) -> int:
    """Counts negative axes from the end."""
    return axis + rank if axis < 0 else axis
