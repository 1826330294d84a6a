"""Pad: constant borders are filled and the inside copied; reflected, repeated and wrapped ones are gathered."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.tables import quantize
from edgekit.converters.lowering.views import View, Want


def _pads(node: ir.Node, rank: int) -> list[tuple[int, int]]:
    """(before, after) of every axis; negative ones crop."""
    numbers, axes = graph.constant_ints(graph.operand(node, 1)), graph.constant_ints(graph.operand(node, 3))
    if numbers is None or (axes is None and graph.operand(node, 3) is not None):
        raise NotLowerableError("its pads are not constant")
    chosen = [graph.normalised_axis(a, rank) for a in axes] if axes is not None else list(range(rank))
    pads = [(0, 0)] * rank
    for position, axis in enumerate(chosen):
        pads[axis] = numbers[position], numbers[position + len(chosen)]
    return pads


@lowers("Pad")
def lower_pad(build: PlanBuilder, node: ir.Node) -> None:
    """All four modes, negative pads included."""
    source = graph.required(node, 0)
    view = build.either(source)
    pads = _pads(node, view.rank)
    mode = graph.attribute(node, "mode", "constant")
    if mode == "constant":
        _pad_constant(build, node, pads)
        return
    if mode not in ("reflect", "edge", "wrap"):
        raise NotLowerableError(f"mode {mode}")
    build.fuse([node])
    for axis, (before, after) in enumerate(pads):
        if before or after:
            positions = np.arange(view.dims[axis])[max(-before, 0) : view.dims[axis] - max(-after, 0)]
            view = _gathered(build, view, axis, _extended(positions, (max(before, 0), max(after, 0)), mode))
    build.bind(node.outputs[0], view)


def _extended(positions: graph.Array, pads: tuple[int, int], mode: str) -> graph.Array:
    """Source positions along one axis, borders included, as int32."""
    if mode == "reflect":
        return np.pad(positions, pads, mode="reflect").astype(np.int32)
    return np.pad(positions, pads, mode="edge" if mode == "edge" else "wrap").astype(np.int32)


def _gathered(build: PlanBuilder, view: View, axis: int, positions: graph.Array) -> View:
    dims = (*view.dims[:axis], len(positions), *view.dims[axis + 1 :])
    result = build.temporary(Want(dims, view.dtype, view.order(), view.quant))
    build.emit("gather", [view, build.constant(positions)], [result], {"axis": axis})
    return result


def _pad_constant(build: PlanBuilder, node: ir.Node, pads: list[tuple[int, int]]) -> None:
    source, output = graph.required(node, 0), node.outputs[0]
    value = graph.operand(node, 2)
    fill = np.zeros(1) if value is None else graph.constant_of(value)
    if fill is None:
        raise NotLowerableError("its value is not constant")
    number = fill.reshape(-1)[0]
    view = build.quantized(source)
    stored = None if view is None else _exactly_quantized(view, number)
    if view is None or stored is None:
        view = build.raw(source)
        stored = np.asarray(number).astype(build.numpy_dtype(view))
    build.fuse([node])
    dims = graph.dims_of(output)
    result = build.new(output, Want(dims, view.dtype, view.order(), view.quant))
    inner_source, inner, borders = view, result, []
    for axis, (before, after) in enumerate(pads):
        inner_source = inner_source.sliced(
            axis, max(-before, 0), inner_source.dims[axis] + min(before, 0) + min(after, 0)
        )
        borders += [(axis, 0, max(before, 0)), (axis, dims[axis] - max(after, 0), max(after, 0))]
    bits = _bits(stored)
    for axis, start, count in borders:
        if count:
            offset = start if start == 0 else inner.dims[axis] - count
            build.emit("fill", [], [inner.sliced(axis, offset, count)], {"bits_low": bits})
        rest = inner.dims[axis] - count
        inner = inner.sliced(axis, count if start == 0 else 0, rest)
    build.emit("copy", [inner_source], [inner])
    build.bind(output, result)


def _exactly_quantized(view: View, number: float) -> graph.Array | None:
    """The stored value that stands for exactly this number; None where there is none."""
    assert view.quant is not None
    stored = quantize(np.asarray([number], np.float32), view.quant, view.dtype)[0]
    value = np.float32(int(stored) - view.quant.zero) * np.float32(view.quant.scale)
    return np.asarray(stored) if value == np.float32(number) else None


def _bits(number: graph.Array) -> int:
    """The 32-bit pattern that `fill` takes."""
    if number.dtype == np.float32:
        return int(number.reshape(1).view(np.int32)[0])
    if not -(2**31) <= int(number) < 2**31:
        raise NotLowerableError(f"pads with {int(number)}")
    return int(number)
