"""Concat: producers have written most slices already; the rest is copied or requantized into place."""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.ops.elementwise import widest
from edgekit.converters.lowering.registry import lowers
from edgekit.converters.lowering.views import Dims, View, channels_last_order


@lowers("Concat")
def lower_concat(build: PlanBuilder, node: ir.Node) -> None:
    """Along any axis, in the quantization of the result where it has one."""
    values = [graph.required(node, index) for index in range(len(node.inputs))]
    views = [build.either(value) for value in values]
    order: Dims | None = widest(views).order()
    if all(view.quant is not None for view in views) and build.concat_quant(node) is None:
        order = None  # all is dequantized into place: row-major, as readers behind reshapes and outputs have it
    if build.prefers_channels_last(node.outputs[0]):
        order = channels_last_order(views[0].rank)
    whole, slots = build.concat_slots(node, order)
    build.fuse([node])
    for value, view, slot in zip(values, views, slots, strict=True):
        _fill_slot(build, value, view, slot)
    quantizer = graph.sole_consumer(node.outputs[0])
    if whole.quant is not None and quantizer is not None and graph.is_op(quantizer, "QuantizeLinear"):
        build.fuse([node, quantizer])
        build.bind(quantizer.outputs[0], whole)
    build.bind(node.outputs[0], whole)


def _fill_slot(build: PlanBuilder, value: ir.Value, view: View, slot: View) -> None:
    if view.same_place(slot) and view.quant == slot.quant:
        return
    if slot.quant is not None:
        build.requantize(view, slot)
    elif view.quant is not None and not build.has_raw(value):
        build.emit("convert", [view], [slot])
    else:
        raw = build.raw(value)
        if not raw.same_place(slot):
            build.emit("copy", [raw], [slot])
