"""Conv: to conv_q8, depthwise_q8, conv_f32 or depthwise_f32 with all that they take in."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.placement import is_channel_sum
from edgekit.converters.lowering.products import (
    Geometry,
    as_image,
    emit_float,
    emit_quantized,
    float_destination,
    has_unit_channels,
    image_product,
    image_view,
    quantized_destination,
    quantized_or_float,
)
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.views import View, Want
from edgekit.converters.lowering.weights import NotQuantizedError, float_bias, quantized_weights, signed_values
from edgekit.converters.lowering.windows import window_of


def _four_dims(weight: NDArray[np.generic]) -> NDArray[np.generic]:
    return weight[:, :, None, :] if weight.ndim == 3 else weight


def _geometry(node: ir.Node) -> Geometry:
    x, y = graph.dims_of(graph.required(node, 0)), graph.dims_of(node.outputs[0])
    kernel = graph.dims_of(graph.required(node, 1))[2:]
    window = window_of(node, kernel, x, y)
    groups = int(graph.attribute(node, "group", 1))
    return Geometry(groups, window.kernel, window.stride, window.dilation, window.pads_begin)


@lowers("Conv")
def lower_conv(build: PlanBuilder, node: ir.Node) -> None:
    """Conv over one or two spatial axes."""
    geometry = _geometry(node)
    quantized_or_float(
        build, node, lambda: _lower_quantized(build, node, geometry), lambda: _lower_float(build, node, geometry)
    )


def _lower_quantized(build: PlanBuilder, node: ir.Node, geometry: Geometry) -> None:
    x = build.quantized(node.inputs[0])
    constant = graph.quantized_constant(graph.required(node, 1))
    if x is None or x.quant is None:
        raise NotQuantizedError("the input is not quantized")
    if constant is None:
        raise NotQuantizedError("the weights are not quantized")
    if constant.scale.size > 1 and constant.axis != 0:
        raise NotQuantizedError(f"weights are quantized along axis {constant.axis}")
    values = _four_dims(signed_values(constant))
    weights = quantized_weights(values.astype(np.int8), constant.scale, x.quant, graph.operand(node, 2))
    destination = quantized_destination(build, image_product(node, x))
    emit_quantized(build, as_image(build, x), weights, geometry, destination)


def _lower_float(build: PlanBuilder, node: ir.Node, geometry: Geometry) -> None:
    weight = graph.constant_of(graph.required(node, 1))
    bias_value = graph.operand(node, 2)
    bias = graph.constant_of(bias_value)
    if weight is None or (bias_value is not None and bias is None):
        raise NotLowerableError("weights or bias are not constant")
    if weight.dtype != np.float32:
        raise NotLowerableError(f"weights of dtype {weight.dtype}")
    x = build.raw(graph.required(node, 0))
    four = _four_dims(weight).astype(np.float32)
    if is_channel_sum(node) and not has_unit_channels(image_view(x)) and x.strides[-1] == 1:
        _lower_channel_sum(build, node, x, four[:, :, 0, 0])
        return
    destination = float_destination(build, image_product(node, x))
    emit_float(build, as_image(build, x), four, float_bias(bias, len(four)), geometry, destination)


def _lower_channel_sum(build: PlanBuilder, node: ir.Node, x: View, weight: NDArray[np.float32]) -> None:
    """Planes of channels: a product of the weights with a matrix of pixels for each row of the image."""
    output = node.outputs[0]
    build.fuse([node])
    y = build.new(output, Want(graph.dims_of(output), "f32"))
    build.bind(output, y)
    rows = (0, 2, 1, 3) if x.rank == 4 else (0, 1, 2)
    matrices, results = x.permuted(rows), y.permuted(rows)
    weights = build.constant(weight).expanded((*matrices.dims[:-2], *weight.shape))
    build.emit_matmul(weights, matrices, results)
