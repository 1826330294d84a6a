"""QuantizeLinear and DequantizeLinear of activations that no fused operation took in."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.views import Quant, View, Want


def _parameters(build: PlanBuilder, node: ir.Node) -> Quant:
    quant = graph.quant_parameters(node, build.packing.act)
    if quant is None:
        raise NotLowerableError("not 8 bits wide with one constant scale and zero point")
    return quant


@lowers("DequantizeLinear")
def lower_dequantize(build: PlanBuilder, node: ir.Node) -> None:
    """Emits nothing: readers take the integers, or ask for the floats."""
    output = node.outputs[0]
    if graph.constant_of(output) is not None:
        return
    quant = _parameters(build, node)
    source = graph.required(node, 0)
    view = build.quantized(source)
    if view is None:
        view = _stored_integers(build, source)
    if view.quant is not None and view.quant != quant:
        raise NotLowerableError("dequantized with other parameters than it was quantized with")
    build.fuse([node])
    build.bind(output, replace(view, quant=quant))


def _stored_integers(build: PlanBuilder, source: ir.Value) -> View:
    """Integers that come from elsewhere than a quantizer, as the target stores them."""
    view = build.raw(source)
    act = build.packing.act
    if view.dtype not in ("u8", "s8"):
        raise NotLowerableError(f"dequantizes {view.dtype}")
    return view if view.dtype == act else build.shifted_bytes(view, act)


@lowers("QuantizeLinear")
def lower_quantize(build: PlanBuilder, node: ir.Node) -> None:
    """A conversion from float, a table from another quantization, or nothing where the quantization stays."""
    quant = _parameters(build, node)
    source, output = graph.required(node, 0), node.outputs[0]
    view = build.quantized(source)
    build.fuse([node])
    if view is not None and view.quant == quant:
        build.bind(output, view)
        return
    if view is None:
        view = build.raw(source)
    result = build.new(output, Want(view.dims, build.packing.act, view.order(), quant))
    build.bind(output, result)
    build.requantize(view, result)
