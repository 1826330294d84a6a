"""A BatchNormalization that nothing could absorb becomes a 1x1 depthwise Conv (images) or Mul and Add (the rest)."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.fold_batchnorm import Affine, affine_of
from edgekit.converters.passes.graph_edit import add_constant, all_nodes, live_nodes, rank_of, replace_node


def _apply(model: ir.Model, context: PassContext) -> int:
    changes = 0
    for node in live_nodes(all_nodes(model), "BatchNormalization"):
        affine, rank = affine_of(node), rank_of(node.inputs[0])
        if affine is None or rank is None or rank < 2:
            continue
        node.resize_outputs(1)
        if rank == 4:
            _to_depthwise(model, node, affine)
        else:
            _to_mul_add(model, node, affine, rank)
        changes += 1
    return changes


def _to_depthwise(model: ir.Model, node: ir.Node, affine: Affine) -> None:
    channels = affine.scale.size
    stem = node.outputs[0].name
    weight = add_constant(model, f"{stem}_scale", affine.scale.astype(np.float32).reshape(channels, 1, 1, 1))
    bias = add_constant(model, f"{stem}_shift", affine.shift.astype(np.float32))
    attributes: dict[str, int | list[int]] = {
        "group": channels,
        "kernel_shape": [1, 1],
        "pads": [0, 0, 0, 0],
        "strides": [1, 1],
        "dilations": [1, 1],
    }
    replace_node(node, ir.node("Conv", [node.inputs[0], weight, bias], attributes, name=node.name))


def _to_mul_add(model: ir.Model, node: ir.Node, affine: Affine, rank: int) -> None:
    shape = (1, affine.scale.size, *[1] * (rank - 2))
    stem = node.outputs[0].name
    scale = add_constant(model, f"{stem}_scale", affine.scale.astype(np.float32).reshape(shape))
    shift = add_constant(model, f"{stem}_shift", affine.shift.astype(np.float32).reshape(shape))
    product = ir.node("Mul", [node.inputs[0], scale], name=f"{node.name}/scale")
    product.outputs[0].name = f"{stem}_scaled"
    product.outputs[0].type, product.outputs[0].shape = node.outputs[0].type, node.outputs[0].shape
    node.graph.insert_before(node, product)  # type: ignore[union-attr]
    replace_node(node, ir.node("Add", [product.outputs[0], shift], name=node.name))


LEFTOVER_BATCHNORM = Pass("leftover-bn", "BatchNormalization left over to a 1x1 depthwise Conv, or Mul and Add", _apply)
