"""Resize: nearest and linear along height and width, by tables of source positions made here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.products import as_image, has_unit_channels, image_view
from edgekit.converters.lowering.quantized_tail import scale_ratio
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.views import Quant, View, Want, channels_last_order

_Positions = NDArray[np.float32]


@dataclass(frozen=True)
class _Axis:
    """Source position of every output index of one axis, before rounding or clamping."""

    size: int
    positions: _Positions


@lowers("Resize")
def lower_resize(build: PlanBuilder, node: ir.Node) -> None:
    """Images [N, C, H, W] and rows [N, C, W]; other axes must keep their size."""
    source, output = graph.required(node, 0), node.outputs[0]
    x_dims, y_dims = graph.dims_of(source), graph.dims_of(output)
    mode = graph.attribute(node, "mode", "nearest")
    if mode not in ("nearest", "linear") or int(graph.attribute(node, "antialias", 0)):
        raise NotLowerableError(f"mode {mode}" if mode not in ("nearest", "linear") else "antialiasing")
    if x_dims == y_dims and graph.attribute(node, "coordinate_transformation_mode") != "tf_crop_and_resize":
        build.alias(node, build.either(source))
        return
    axes = _spatial_axes(node, x_dims, y_dims)
    if mode == "nearest":
        tables = [_nearest(axis, graph.attribute(node, "nearest_mode", "round_prefer_floor")) for axis in axes]
        _emit(build, node, build.either(source), ("resize_nearest", tables), None)
        return
    tables = [table for axis in axes for table in _linear(axis)]
    view, quantizer = build.quantized(source), graph.sole_consumer(output)
    quant = None
    if view is not None and graph.is_op(quantizer, "QuantizeLinear"):
        quant = graph.quant_parameters(quantizer, build.packing.act)  # type: ignore[arg-type]
    if view is None or quant is None:
        view, quant = build.raw(source), None
        if view.dtype != "f32":
            raise NotLowerableError(f"linear Resize of {view.dtype}")
    _emit(build, node, view, ("resize_linear", tables), quant)


def _emit(
    build: PlanBuilder, node: ir.Node, view: View, what: tuple[str, list[graph.Array]], quant: Quant | None
) -> None:
    opcode, tables = what
    output, nodes, words = node.outputs[0], [node], {}
    if opcode == "resize_linear":
        words = {"x_zero": 0, "y_zero": 0, "ratio": 1.0}
    if quant is not None:
        assert view.quant is not None
        quantizer = graph.consumers(output)[0]
        output, nodes = quantizer.outputs[0], [node, quantizer]
        words = {"x_zero": view.quant.zero, "y_zero": quant.zero, "ratio": scale_ratio(view.quant.scale, quant.scale)}
    dims = graph.dims_of(node.outputs[0])
    build.fuse(nodes)
    want = Want(dims, view.dtype, channels_last_order(len(dims)), quant or view.quant, _accepts)
    result = build.new(output, want)
    build.bind(output, result)
    operands: list[View | None] = [as_image(build, view), *(build.constant(table) for table in tables)]
    build.emit(opcode, operands, [image_view(result)], words)


def _accepts(view: View) -> bool:
    return has_unit_channels(image_view(view))


def _spatial_axes(node: ir.Node, x_dims: tuple[int, ...], y_dims: tuple[int, ...]) -> list[_Axis]:
    """Height and width; a row has height 1."""
    rank = len(x_dims)
    if rank not in (3, 4) or x_dims[:2] != y_dims[:2]:
        raise NotLowerableError(f"Resize of {x_dims} to {y_dims}")
    scales = _scales(node, x_dims, y_dims)
    regions = _regions(node, rank)
    axes = [_Axis(1, np.zeros(1, np.float32))] if rank == 3 else []
    mode = graph.attribute(node, "coordinate_transformation_mode", "half_pixel")
    for axis in range(2, rank):
        positions = _source_positions(mode, (x_dims[axis], y_dims[axis]), scales[axis], regions[axis])
        if mode == "tf_crop_and_resize" and (positions.min() < 0 or positions.max() > x_dims[axis] - 1):
            raise NotLowerableError("it extrapolates")
        axes.append(_Axis(x_dims[axis], positions))
    return axes


def _scales(node: ir.Node, x_dims: tuple[int, ...], y_dims: tuple[int, ...]) -> list[float]:
    """Scale of every axis, as given or from the sizes."""
    rank = len(x_dims)
    given = graph.constant_of(graph.operand(node, 2))
    axes = [graph.normalised_axis(a, rank) for a in graph.attribute(node, "axes", tuple(range(rank)))]
    scales = [y / x for x, y in zip(x_dims, y_dims, strict=True)]
    if given is not None and given.size:
        for axis, scale in zip(axes, given.reshape(-1), strict=True):
            scales[axis] = float(scale)
        return scales
    sizes = graph.constant_ints(graph.operand(node, 3))
    policy = graph.attribute(node, "keep_aspect_ratio_policy", "stretch")
    if policy != "stretch" and sizes is not None:
        pick = min if policy == "not_larger" else max
        common = pick(size / x_dims[axis] for axis, size in zip(axes, sizes, strict=True))
        scales = [common if axis in axes else scale for axis, scale in enumerate(scales)]
    return scales


def _regions(node: ir.Node, rank: int) -> list[tuple[float, float]]:
    """Start and end of the region of interest of every axis, as shares."""
    roi = graph.constant_of(graph.operand(node, 1))
    regions = [(0.0, 1.0)] * rank
    if roi is None or not roi.size:
        return regions
    axes = [graph.normalised_axis(a, rank) for a in graph.attribute(node, "axes", tuple(range(rank)))]
    flat = roi.reshape(-1)
    for position, axis in enumerate(axes):
        regions[axis] = float(flat[position]), float(flat[position + len(axes)])
    return regions


def _source_positions(mode: str, sizes: tuple[int, int], scale: float, region: tuple[float, float]) -> _Positions:
    """Where each output index lies in the source, by ONNX's coordinate_transformation_mode.

    In float32, as runtimes compute it: with a scale such as 0.7 it decides on which side of a tie a position falls.
    """
    size, out = sizes
    index = np.arange(out, dtype=np.float32)
    half, factor = np.float32(0.5), np.float32(scale)
    if mode == "asymmetric":
        return index / factor
    if mode == "align_corners":
        return index * np.float32(size - 1) / np.float32(out - 1) if out > 1 else np.zeros(out, np.float32)
    if mode == "pytorch_half_pixel":
        return (index + half) / factor - half if out > 1 else np.zeros(out, np.float32)
    if mode == "half_pixel_symmetric":
        adjustment = np.float32(out) / (factor * np.float32(size))
        centre = np.float32(size) / np.float32(2)
        return centre * (np.float32(1) - adjustment) + (index + half) / factor - half
    if mode == "tf_crop_and_resize":
        start, end = region
        if out > 1:
            step = np.float32((end - start) * (size - 1) / (out - 1))
            return np.float32(start * (size - 1)) + index * step
        return np.full(out, 0.5 * (start + end) * (size - 1), np.float32)
    if mode != "half_pixel":
        raise NotLowerableError(f"coordinate mode {mode}")
    return (index + half) / factor - half


def _nearest(axis: _Axis, mode: str) -> graph.Array:
    p = axis.positions
    rounded = {
        "round_prefer_floor": np.ceil(p - 0.5),
        "round_prefer_ceil": np.floor(p + 0.5),
        "floor": np.floor(p),
        "ceil": np.ceil(p),
    }[mode]
    return np.asarray(np.clip(rounded, 0, axis.size - 1), np.int32)


def _linear(axis: _Axis) -> tuple[graph.Array, graph.Array, graph.Array]:
    """Left neighbour, right neighbour, weight of the right one."""
    positions = np.clip(axis.positions, 0, axis.size - 1)
    left = np.floor(positions)
    right = np.minimum(left + 1, axis.size - 1)
    return left.astype(np.int32), right.astype(np.int32), (positions - left).astype(np.float32)
