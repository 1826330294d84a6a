"""Layers with weights: which input is what, along which axis scales run, and what can't be done in integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.quantization.graph_access import attribute_int, constant, is_float_activation, only_consumer
from edgekit.converters.quantization.op_rules import WEIGHTED

_MAX_WINDOW_RANK = 4  # [N, C, H, W]


@dataclass(frozen=True)
class WeightedLayer:
    """A node with constant weights.

    Attributes:
        node: Conv, ConvTranspose, Gemm or MatMul.
        weight: float32, as stored.
        axis: Axis of weight that scales run along.
        bias: float32, one an output channel; None when there is none.
        bias_node: Add that brings the bias of a MatMul; None: it is the node's own third input.
        groups: Groups of a convolution.
        depth: Products summed into one output value.
    """

    node: ir.Node
    weight: NDArray[np.float32]
    axis: int
    bias: NDArray[np.float32] | None
    bias_node: ir.Node | None
    groups: int
    depth: int

    @property
    def output(self) -> ir.Value:
        """Value after the bias."""
        return (self.bias_node or self.node).outputs[0]

    def per_output(self, per_axis: NDArray[np.float32]) -> NDArray[np.float32]:
        """Spreads values along the weight's axis to output channels: ConvTranspose repeats them for each group."""
        repeats = self.groups if self.node.op_type == "ConvTranspose" else 1
        return np.tile(per_axis, repeats)

    def per_axis(self, per_output: NDArray[np.float32]) -> NDArray[np.float32]:
        """The greatest value of the output channels that share an index of the weight's axis."""
        repeats = self.groups if self.node.op_type == "ConvTranspose" else 1
        return np.asarray(per_output.reshape(repeats, -1).max(axis=0))


def read_layer(node: ir.Node) -> WeightedLayer | str:
    """Reads a weighted node.

    Returns:
        The layer, or the reason why it has to stay in float.
    """
    if node.op_type not in WEIGHTED or node.domain not in ("", "ai.onnx"):
        return "operator has no integer form"
    stored = constant(node.inputs[1])
    if stored is None:
        return "both operands vary"
    if stored.dtype != np.float32:
        return f"weights are {stored.dtype}"
    weight = np.asarray(stored, np.float32)
    if not is_float_activation(node.inputs[0]):
        return "input is not a float activation"
    if node.op_type in ("Conv", "ConvTranspose"):
        return _read_convolution(node, weight)
    return _read_gemm(node, weight) if node.op_type == "Gemm" else _read_matmul(node, weight)


def _read_convolution(node: ir.Node, weight: NDArray[np.float32]) -> WeightedLayer | str:
    if weight.ndim > _MAX_WINDOW_RANK:
        return f"{weight.ndim - 2}-dimensional convolution"
    groups = attribute_int(node, "group", 1)
    transposed = node.op_type == "ConvTranspose"
    axis = 1 if transposed else 0
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    depth = weight.size // weight.shape[axis] // (groups if transposed else 1)
    bias = _bias_vector(node.inputs[2] if len(node.inputs) > 2 else None, channels)
    return bias if isinstance(bias, str) else WeightedLayer(node, weight, axis, bias, None, groups, depth)


def _read_gemm(node: ir.Node, weight: NDArray[np.float32]) -> WeightedLayer | str:
    plain = all(
        name not in node.attributes or node.attributes[name].as_float() == 1.0 for name in ("alpha", "beta")
    ) and not attribute_int(node, "transA", 0)
    if not plain:
        return "Gemm with alpha, beta or transA"
    axis = 0 if attribute_int(node, "transB", 0) else 1
    bias = _bias_vector(node.inputs[2] if len(node.inputs) > 2 else None, weight.shape[axis])
    return bias if isinstance(bias, str) else WeightedLayer(node, weight, axis, bias, None, 1, weight.shape[1 - axis])


def _read_matmul(node: ir.Node, weight: NDArray[np.float32]) -> WeightedLayer | str:
    if weight.ndim < 2:
        return "product with a vector"
    bias, bias_node = None, only_consumer(node.outputs[0])
    if bias_node is None or bias_node.op_type != "Add":
        bias_node = None
    else:
        other = bias_node.inputs[1] if bias_node.inputs[0] is node.outputs[0] else bias_node.inputs[0]
        array = constant(other)
        if array is not None and array.ndim and array.size == array.shape[-1] == weight.shape[-1]:
            bias = array.reshape(-1).astype(np.float32)
        else:
            bias_node = None
    return WeightedLayer(node, weight, weight.ndim - 1, bias, bias_node, 1, weight.shape[-2])


def _bias_vector(value: ir.Value | None, channels: int) -> NDArray[np.float32] | str | None:
    """Bias as one value a channel, whatever shape it is stored in: [N], [1, N], [1] or a scalar."""
    if value is None:
        return None
    array = constant(value)
    if array is None:
        return "bias varies"
    if array.size not in (1, channels):
        return f"bias of shape {list(array.shape)} differs by row"
    return np.broadcast_to(array.reshape(-1).astype(np.float32), (channels,)).copy()
