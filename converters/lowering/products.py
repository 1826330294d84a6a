"""Emission of products, INT8 or float: convolutions, and fully connected layers as 1x1 convolutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.float_tail import FloatTail, match_float_tail
from edgekit.converters.lowering.packing import pack_conv_f32, pack_conv_q8, pack_depthwise
from edgekit.converters.lowering.quantized_tail import QuantizedTail, match_quantized_tail
from edgekit.converters.lowering.views import Dims, View, Want, channels_last_order
from edgekit.converters.lowering.weights import NotQuantizedError, QuantizedWeights
from edgekit.converters.lowering.winograd import pack_winograd, winograd_pays

ToImage = Callable[[View], View | None]
NHWC = (0, 2, 3, 1)


@dataclass(frozen=True)
class Geometry:
    """How a kernel moves over an image; (height, width) pairs.

    Pads may be negative; those at the bottom and right follow from the dims of the result.
    """

    groups: int = 1
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    pad: tuple[int, int] = (0, 0)

    def attributes(self) -> dict[str, int | float]:
        """Attribute words of the depthwise ops, and but for `groups` of the dense ones."""
        names = ("kernel", "stride", "dilation")
        words: dict[str, int | float] = {}
        for name in names:
            words[f"{name}_h"], words[f"{name}_w"] = getattr(self, name)
        return {**words, "pad_top": self.pad[0], "pad_left": self.pad[1]}


@dataclass(frozen=True)
class Product:
    """A product to be emitted.

    Attributes:
        node: Source node.
        x: Image [N, H, W, C].
        value: The value it gives.
        dims: Its dims.
        order: Axes of the result from outermost to innermost.
        to_image: Turns a view of the result's dims into [N, H, W, C]; None where its strides don't allow that.
        fused: Further source nodes that it stands for.
    """

    node: ir.Node
    x: View
    value: ir.Value
    dims: Dims
    order: Dims
    to_image: ToImage
    fused: tuple[ir.Node, ...] = ()

    def accepts(self, view: View) -> bool:
        """Whether a kernel can write the result there."""
        image = self.to_image(view)
        return image is not None and has_unit_channels(image)


@dataclass(frozen=True)
class Destination:
    """Where a product goes: images [N, H, W, C], and what is fused.

    Attributes:
        y: Result.
        residual: Other operand of a fused Add.
        tail: Fused followers.
    """

    y: View
    residual: View | None
    tail: QuantizedTail | FloatTail

    def every(self, step: tuple[int, int], first: tuple[int, int]) -> Destination | None:
        """Only rows first, first + step, ... and columns likewise; None where that is nothing."""
        views: list[View | None] = []
        for view in (self.y, self.residual):
            if view is None:
                views.append(None)
                continue
            for axis in (0, 1):
                count = -(-(view.dims[axis + 1] - first[axis]) // step[axis])
                if count <= 0:
                    return None
                view = view.sliced(axis + 1, first[axis], count, step[axis])
            views.append(view)
        y, residual = views
        assert y is not None
        return replace(self, y=y, residual=residual)


def has_unit_channels(image: View) -> bool:
    """Whether channels lie one after the other, as kernels on images need."""
    return image.dims[-1] == 1 or image.strides[-1] == 1


def as_image(build: PlanBuilder, view: View) -> View:
    """[N, C, H, W] or [N, C, W] -> [N, H, W, C] with neighbouring channels, by a copy only if need be."""
    image = (view.with_axis(2) if view.rank == 3 else view).permuted(NHWC)
    return image if has_unit_channels(image) else build.copied(image)


def image_view(view: View) -> View:
    """[N, C, H, W] or [N, C, W] -> [N, H, W, C] without a copy, whatever the strides."""
    return (view.with_axis(2) if view.rank == 3 else view).permuted(NHWC)


def image_product(node: ir.Node, x: View) -> Product:
    """The product that a convolution of any kind is."""
    dims = graph.dims_of(node.outputs[0])
    return Product(node, x, node.outputs[0], dims, channels_last_order(len(dims)), image_view)


def quantized_or_float(
    build: PlanBuilder, node: ir.Node, quantized: Callable[[], None], floating: Callable[[], None]
) -> None:
    """Lowers a product to INT8, or where that can't be to float, and notes why."""
    try:
        quantized()
    except NotQuantizedError as reason:
        build.notes[node] = str(reason)
        floating()


def quantized_destination(build: PlanBuilder, product: Product) -> Destination:
    """Matches the followers of an INT8 product and makes room for its result.

    Raises:
        NotQuantizedError: The result is not quantized.
    """
    tail = match_quantized_tail(build, product.value, product.dims)
    if tail is None:
        raise NotQuantizedError("the result is not quantized")
    build.fuse([product.node, *product.fused, *tail.nodes])
    residual = None if tail.residual is None else _residual_image(build, product, tail.residual.view)
    want = Want(product.dims, build.packing.act, product.order, tail.final_quant, product.accepts)
    return _destination(build, product, tail, want, residual)


def float_destination(build: PlanBuilder, product: Product) -> Destination:
    """Matches the followers of a float product and makes room for its result."""
    tail = match_float_tail(build, product.value, product.dims)
    build.fuse([product.node, *product.fused, *tail.nodes])
    residual = None if tail.residual is None else _residual_image(build, product, tail.residual)
    want = Want(product.dims, "f32", product.order, None, product.accepts)
    return _destination(build, product, tail, want, residual)


def _destination(
    build: PlanBuilder, product: Product, tail: QuantizedTail | FloatTail, want: Want, residual: View | None
) -> Destination:
    view = build.new(tail.result, want)
    build.bind(tail.result, view)
    y = product.to_image(view)
    assert y is not None
    return Destination(y, residual, tail)


def _residual_image(build: PlanBuilder, product: Product, view: View) -> View:
    image = product.to_image(view)
    if image is None or not has_unit_channels(image):
        image = product.to_image(build.copied(view, product.order))
    assert image is not None
    return image


def emit_quantized(build: PlanBuilder, x: View, weights: QuantizedWeights, geometry: Geometry, to: Destination) -> None:
    """Emits conv_q8, conv_q8_winograd or depthwise_q8.

    Args:
        build: Takes the instruction and its constants.
        x: A quantized image, NHWC.
        weights: s8 [OC, IC / groups, KH, KW] with a scale each output channel, and the bias.
        geometry: The window.
        to: y, its requantization and the residual.
    """
    tail = to.tail
    assert isinstance(tail, QuantizedTail)
    assert x.quant is not None
    scale = np.asarray(x.quant.scale * weights.scale / tail.quant.scale, np.float32)
    words: dict[str, int | float] = {**geometry.attributes(), "x_zero": x.quant.zero, **tail.attributes()}
    fused = [None if tail.lut is None else build.constant(tail.lut), to.residual]
    bias, macs = weights.folded_bias(x.quant.zero), _macs(to.y, weights.values)
    operands: list[View | None]
    if _is_depthwise(x, weights.values, geometry):
        packed_taps = pack_depthwise(weights.values)
        operands = [x, build.constant(packed_taps), build.constant(bias), build.constant(scale), *fused]
        build.emit("depthwise_q8", _trimmed(operands), [to.y], words, macs=macs)
        return
    packing = build.packing
    if packing.winograd and _is_winograd(geometry, weights.values, to.y, build.isa):
        w = build.constant(pack_winograd(weights.values))
        operands = [x, w, build.constant(bias), build.constant(scale), *fused]
        padding = {"pad_top": geometry.pad[0], "pad_left": geometry.pad[1]}
        words = {**padding, "x_zero": x.quant.zero, **tail.attributes()}
        build.emit("conv_q8_winograd", _trimmed(operands), [to.y], words, macs=macs)
        return
    words |= {"groups": geometry.groups, "nr": packing.nr_q8, "kg": packing.kg_q8}
    packed = pack_conv_q8(weights.values, geometry.groups, packing)
    if packed.complement is not None:
        bias = (bias - packed.complement).astype(np.int32)  # sums wrap, and so does this
    operands = [x, build.constant(packed.w), build.constant(bias), build.constant(scale), *fused]
    operands += [None if part is None else build.constant(part) for part in packed.row_list()]
    build.emit("conv_q8", _trimmed(operands), [to.y], words, macs=macs)


def emit_float(
    build: PlanBuilder,
    x: View,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    geometry: Geometry,
    to: Destination,
) -> None:
    """Emits conv_f32 or depthwise_f32.

    Args:
        build: Takes the instruction and its constants.
        x: A float image, NHWC.
        weight: [OC, IC / groups, KH, KW].
        bias: [OC].
        geometry: The window.
        to: y, its clamp and the residual.
    """
    tail = to.tail
    assert isinstance(tail, FloatTail)
    depthwise = _is_depthwise(x, weight, geometry)
    words: dict[str, int | float] = {**geometry.attributes(), **tail.attributes()}
    if depthwise:
        packed = pack_depthwise(weight)
    else:
        packed = pack_conv_f32(weight, geometry.groups, build.packing.nr_f32)
        words |= {"groups": geometry.groups, "nr": build.packing.nr_f32}
    operands: list[View | None] = [x, build.constant(packed), build.constant(bias), to.residual]
    build.emit(
        "depthwise_f32" if depthwise else "conv_f32", _trimmed(operands), [to.y], words, macs=_macs(to.y, weight)
    )


def _trimmed(operands: list[View | None]) -> list[View | None]:
    """Drops absent operands at the end."""
    while operands and operands[-1] is None:
        operands = operands[:-1]
    return operands


def _is_depthwise(x: View, weight: NDArray[np.generic], geometry: Geometry) -> bool:
    channels = x.dims[-1]
    return geometry.groups == channels == weight.shape[0] and channels > 1 and weight.shape[1] == 1


def _is_winograd(geometry: Geometry, weight: NDArray[np.int8], y: View, isa: str) -> bool:
    """Whether conv_q8_winograd can do a dense convolution, and faster."""
    images, height, width = y.dims[:3]
    shape = (geometry.kernel, geometry.stride, geometry.dilation, geometry.groups)
    return shape == ((3, 3), (1, 1), (1, 1), 1) and winograd_pays(weight, (images, height, width), isa)


def _macs(y: View, weight: NDArray[np.generic]) -> int:
    return y.elements * int(np.prod(weight.shape[1:]))
