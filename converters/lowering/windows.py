"""Windows that move over an image: kernel, strides, dilations and pads of Conv, ConvTranspose and the pools."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.registry import NotLowerableError
from edgekit.converters.lowering.views import Dims

Pair = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """(height, width) pairs; a 1-D window has height 1. `pads_end` are those at the bottom and right, as declared."""

    kernel: Pair
    stride: Pair
    dilation: Pair
    pads_begin: Pair
    pads_end: Pair


def _pair(numbers: tuple[int, ...], fill: int) -> Pair:
    return (fill, int(numbers[0])) if len(numbers) == 1 else (int(numbers[0]), int(numbers[1]))


def spatial_pair(dims: Dims) -> Pair:
    """Height and width of [N, C, H, W] or [N, C, W]."""
    return _pair(dims[2:], 1)


def window_of(node: ir.Node, kernel: tuple[int, ...], x_dims: Dims, y_dims: Dims) -> Window:
    """Reads a window and resolves auto_pad.

    Args:
        node: Conv or a pool.
        kernel: One or two numbers.
        x_dims: Dims of the input.
        y_dims: Dims of the output.

    Raises:
        NotLowerableError: It has more than two spatial axes.
    """
    spatial = len(x_dims) - 2
    if spatial not in (1, 2):
        raise NotLowerableError(f"{node.op_type} over {spatial} spatial axes")
    ones = (1,) * spatial
    stride = _pair(graph.attribute(node, "strides", ones), 1)
    dilation = _pair(graph.attribute(node, "dilations", ones), 1)
    pads = graph.attribute(node, "pads", (0,) * (2 * spatial))
    begin, end = _pair(pads[:spatial], 0), _pair(pads[spatial:], 0)
    extent = _pair(kernel, 1)
    auto_pad = graph.attribute(node, "auto_pad", "NOTSET")
    if auto_pad == "VALID":
        begin = end = (0, 0)
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        begin, end = _same_pads(spatial_pair(x_dims), spatial_pair(y_dims), (extent, stride, dilation), auto_pad)
    return Window(extent, stride, dilation, begin, end)


def _same_pads(x: Pair, y: Pair, window: tuple[Pair, Pair, Pair], auto_pad: str) -> tuple[Pair, Pair]:
    totals = [
        max((out - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
        for size, out, kernel, stride, dilation in zip(x, y, *window, strict=True)
    ]
    small, large = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
    begin, end = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    return (begin[0], begin[1]), (end[0], end[1])
