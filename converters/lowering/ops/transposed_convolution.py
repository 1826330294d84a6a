"""ConvTranspose as one ordinary convolution for each phase of the stride, written to every stride-th pixel.

Output pixel o = stride * t + phase gets x[i] * w[k] for all i, k with stride * i + dilation * k - pad = o. In a phase,
those k form a progression, and i = t + (phase + pad - dilation * k) / stride: an ordinary convolution in t.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.products import (
    Destination,
    Geometry,
    as_image,
    emit_float,
    emit_quantized,
    float_destination,
    image_product,
    quantized_destination,
    quantized_or_float,
)
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.weights import (
    NotQuantizedError,
    QuantizedWeights,
    float_bias,
    quantized_weights,
    signed_values,
)
from edgekit.converters.lowering.windows import Pair, spatial_pair


@dataclass(frozen=True)
class _Upsampling:
    """Geometry of a ConvTranspose; (height, width) pairs."""

    groups: int
    kernel: Pair
    stride: Pair
    dilation: Pair
    pad: Pair


@dataclass(frozen=True)
class _Taps:
    """Kernel positions of one phase of one axis, by ascending source position.

    Attributes:
        indices: Positions in the kernel.
        dilation: Step between their source positions.
        pad: How far the first lies before the output's own index.
    """

    indices: tuple[int, ...]
    dilation: int
    pad: int


def _upsampling(node: ir.Node) -> _Upsampling:
    x, w, y = (graph.dims_of(value) for value in (graph.required(node, 0), graph.required(node, 1), node.outputs[0]))
    spatial = len(x) - 2
    if spatial not in (1, 2):
        raise NotLowerableError(f"ConvTranspose over {spatial} spatial axes")
    ones = (1,) * spatial
    numbers = {name: graph.attribute(node, name, ones) for name in ("strides", "dilations")}
    stride, dilation, kernel = (
        (1, values[0]) if spatial == 1 else (values[0], values[1])
        for values in (numbers["strides"], numbers["dilations"], w[2:])
    )
    return _Upsampling(
        int(graph.attribute(node, "group", 1)),
        kernel,
        stride,
        dilation,
        _pads(node, (x, y), (kernel, stride, dilation)),
    )


def _pads(node: ir.Node, dims: tuple[tuple[int, ...], tuple[int, ...]], window: tuple[Pair, Pair, Pair]) -> Pair:
    """Pads at the top and left; with output_shape or auto_pad they follow from the sizes, as ONNX says."""
    x, y = spatial_pair(dims[0]), spatial_pair(dims[1])
    spatial = len(dims[0]) - 2
    auto_pad = graph.attribute(node, "auto_pad", "NOTSET")
    if auto_pad == "VALID":
        return 0, 0
    if auto_pad == "NOTSET" and graph.attribute(node, "output_shape") is None:
        pads = graph.attribute(node, "pads", (0,) * (2 * spatial))
        return (0, pads[0]) if spatial == 1 else (pads[0], pads[1])
    extra = graph.attribute(node, "output_padding", (0,) * spatial)
    extras = (0, extra[0]) if spatial == 1 else (extra[0], extra[1])
    begins = []
    for size, out, more, kernel, stride, dilation in zip(x, y, extras, *window, strict=True):
        total = max(stride * (size - 1) + more + (kernel - 1) * dilation + 1 - out, 0)
        begins.append(total // 2 if auto_pad == "SAME_UPPER" else total - total // 2)
    return begins[0], begins[1]


def _phase_taps(up: _Upsampling, axis: int, phase: int) -> _Taps:
    stride, dilation, offset = up.stride[axis], up.dilation[axis], phase + up.pad[axis]
    indices = [k for k in range(up.kernel[axis]) if (offset - dilation * k) % stride == 0][::-1]
    first = (offset - dilation * indices[0]) // stride if indices else 0
    return _Taps(tuple(indices), dilation // gcd(stride, dilation), -first)


def _phases(up: _Upsampling) -> list[tuple[Pair, _Taps, _Taps]]:
    return [
        ((row, col), _phase_taps(up, 0, row), _phase_taps(up, 1, col))
        for row in range(up.stride[0])
        for col in range(up.stride[1])
    ]


def _phase_kernel(weight: NDArray[np.generic], rows: _Taps, cols: _Taps) -> NDArray[np.generic]:
    """[OC, IC / groups, KH, KW] of one phase; a phase without taps gets one of zeros."""
    if not rows.indices or not cols.indices:
        return np.zeros((*weight.shape[:2], 1, 1), weight.dtype)
    return np.ascontiguousarray(weight[:, :, list(rows.indices)][:, :, :, list(cols.indices)])


def _phase_geometry(up: _Upsampling, rows: _Taps, cols: _Taps) -> Geometry:
    if not rows.indices or not cols.indices:
        return Geometry(up.groups)
    kernel = (len(rows.indices), len(cols.indices))
    return Geometry(up.groups, kernel, (1, 1), (rows.dilation, cols.dilation), (rows.pad, cols.pad))


def _as_convolution(weight: NDArray[np.generic], groups: int) -> NDArray[np.generic]:
    """[IC, OC / groups, KH, KW] -> [OC, IC / groups, KH, KW]."""
    four = weight[:, :, None, :] if weight.ndim == 3 else weight
    in_channels, per_group, kernel_h, kernel_w = four.shape
    split = four.reshape(groups, in_channels // groups, per_group, kernel_h, kernel_w)
    return split.transpose(0, 2, 1, 3, 4).reshape(groups * per_group, in_channels // groups, kernel_h, kernel_w)


@lowers("ConvTranspose")
def lower_conv_transpose(build: PlanBuilder, node: ir.Node) -> None:
    """Over one or two spatial axes, with groups, dilation, output padding or a given output shape."""
    up = _upsampling(node)
    quantized_or_float(build, node, lambda: _lower_quantized(build, node, up), lambda: _lower_float(build, node, up))


def _phase_destination(to: Destination, up: _Upsampling, phase: Pair) -> Destination | None:
    return to if up.stride == (1, 1) else to.every(up.stride, phase)


def _lower_quantized(build: PlanBuilder, node: ir.Node, up: _Upsampling) -> None:
    x, constant = build.quantized(node.inputs[0]), graph.quantized_constant(graph.required(node, 1))
    if x is None or x.quant is None:
        raise NotQuantizedError("the input is not quantized")
    if constant is None:
        raise NotQuantizedError("the weights are not quantized")
    if constant.scale.size > 1 and constant.axis != 1:
        raise NotQuantizedError(f"weights are quantized along axis {constant.axis}")
    values = _as_convolution(signed_values(constant), up.groups).astype(np.int8)
    scale = np.tile(constant.scale.reshape(-1), up.groups) if constant.scale.size > 1 else constant.scale
    if scale.size not in (1, len(values)):
        raise NotQuantizedError(f"{constant.scale.size} scales for {len(values)} channels")
    whole = quantized_weights(values, scale, x.quant, graph.operand(node, 2))
    to = quantized_destination(build, image_product(node, x))
    image = as_image(build, x)
    for phase, rows, cols in _phases(up):
        part = _phase_destination(to, up, phase)
        if part is not None:
            kernel = _phase_kernel(whole.values, rows, cols).astype(np.int8)
            weights = QuantizedWeights(kernel, whole.scale, whole.bias)
            emit_quantized(build, image, weights, _phase_geometry(up, rows, cols), part)


def _lower_float(build: PlanBuilder, node: ir.Node, up: _Upsampling) -> None:
    weight, bias_value = graph.constant_of(graph.required(node, 1)), graph.operand(node, 2)
    bias = graph.constant_of(bias_value)
    if weight is None or weight.dtype != np.float32 or (bias_value is not None and bias is None):
        raise NotLowerableError("weights or bias are not constant floats")
    whole = _as_convolution(weight, up.groups)
    x = build.raw(graph.required(node, 0))
    to = float_destination(build, image_product(node, x))
    image = as_image(build, x)
    for phase, rows, cols in _phases(up):
        part = _phase_destination(to, up, phase)
        if part is not None:
            kernel = _phase_kernel(whole, rows, cols).astype(np.float32)
            emit_float(build, image, kernel, float_bias(bias, len(kernel)), _phase_geometry(up, rows, cols), part)
