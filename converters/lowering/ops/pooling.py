"""Max and average pools, global ones as reductions."""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.ops.reduction import lower_reduction
from edgekit.converters.lowering.products import as_image, has_unit_channels, image_view
from edgekit.converters.lowering.quantized_tail import scale_ratio
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.views import Quant, View, Want, channels_last_order
from edgekit.converters.lowering.windows import window_of
from edgekit.package.program_schema import program_schema


def _accepts(view: View) -> bool:
    return has_unit_channels(image_view(view))


@lowers("MaxPool")
def lower_max_pool(build: PlanBuilder, node: ir.Node) -> None:
    """On floats or integers alike."""
    if len(node.outputs) > 1 and (node.outputs[1].uses() or node.outputs[1].is_graph_output()):
        raise NotLowerableError("its indices are used")
    view = build.either(graph.required(node, 0))
    if view.dtype not in ("f32", build.packing.act) or (view.dtype != "f32" and view.quant is None):
        raise NotLowerableError(f"MaxPool of {view.dtype}")
    _pool(build, node, view, "max", None)


@lowers("AveragePool")
def lower_average_pool(build: PlanBuilder, node: ir.Node) -> None:
    """Quantized where input and result are."""
    source = graph.required(node, 0)
    view, quantizer = build.quantized(source), graph.sole_consumer(node.outputs[0])
    quant = None
    if view is not None and graph.is_op(quantizer, "QuantizeLinear"):
        quant = graph.quant_parameters(quantizer, build.packing.act)  # type: ignore[arg-type]
    if view is None or quant is None:
        _pool(build, node, build.raw(source), "average", None)
    else:
        _pool(build, node, view, "average", quant)


def _pool(build: PlanBuilder, node: ir.Node, view: View, kind: str, quant: Quant | None) -> None:
    """Emits a pool; `quant` is that of a quantized average."""
    x_dims, y_dims = view.dims, graph.dims_of(node.outputs[0])
    window = window_of(node, graph.attribute(node, "kernel_shape"), x_dims, y_dims)
    words: dict[str, int | float] = {"kind": program_schema().enums["pool_kind"][kind]}
    for name in ("kernel", "stride", "dilation"):
        words[f"{name}_h"], words[f"{name}_w"] = getattr(window, name)
    words["pad_top"], words["pad_left"] = window.pads_begin
    words["pad_bottom"], words["pad_right"] = window.pads_end
    words["count_include_pad"] = int(graph.attribute(node, "count_include_pad", 0))
    output, nodes = node.outputs[0], [node]
    if quant is not None:
        assert view.quant is not None
        quantizer = graph.consumers(output)[0]
        output, nodes = quantizer.outputs[0], [node, quantizer]
        words |= {"x_zero": view.quant.zero, "y_zero": quant.zero, "ratio": scale_ratio(view.quant.scale, quant.scale)}
    build.fuse(nodes)
    want = Want(y_dims, view.dtype, channels_last_order(len(y_dims)), quant or view.quant, _accepts)
    result = build.new(output, want)
    build.bind(output, result)
    build.emit("pool", [as_image(build, view)], [image_view(result)], words)


@lowers("GlobalAveragePool", "GlobalMaxPool")
def lower_global_pool(build: PlanBuilder, node: ir.Node) -> None:
    """A reduction over all spatial axes."""
    rank = len(graph.dims_of(graph.required(node, 0)))
    kind = "mean" if node.op_type == "GlobalAveragePool" else "max"
    lower_reduction(build, node, kind, list(range(2, rank)))
