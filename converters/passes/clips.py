"""Min and Max with scalars and chains of clips become one Clip; a Clip from 0 without upper bound becomes Relu."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import (
    add_constant,
    all_nodes,
    fused_name,
    is_float32,
    live_nodes,
    replace_node,
    used_once,
)
from edgekit.converters.passes.scalar_chain import clip_bounds


def _apply(model: ir.Model, context: PassContext) -> int:
    return sum(_merge(model, node) for node in live_nodes(all_nodes(model), "Clip", "Relu", "Min", "Max"))


def _merge(model: ir.Model, node: ir.Node) -> bool:
    bounds = clip_bounds(node)
    if bounds is None or not is_float32(bounds[0]):
        return False
    value, low, high = bounds
    nodes = [node]
    while (above := value.producer()) is not None and used_once(value):
        inner = clip_bounds(above)
        if inner is None:
            break
        # clip(clip(x, a, b), low, high) with overlapping ranges is clip(x, max(a, low), min(b, high)).
        if max(inner[1], low) > min(inner[2], high):
            break
        value, low, high = inner[0], max(inner[1], low), min(inner[2], high)
        nodes.append(above)
    wanted = "Relu" if low == 0.0 and math.isinf(high) else "Clip"
    if len(nodes) == 1 and node.op_type == wanted:
        return False
    replace_node(node, _clip(model, value, (low, high), fused_name(*reversed(nodes)), str(node.outputs[0].name)))
    return True


def _clip(model: ir.Model, value: ir.Value, bounds: tuple[float, float], name: str, stem: str) -> ir.Node:
    if bounds[0] == 0.0 and math.isinf(bounds[1]):
        return ir.node("Relu", [value], name=name)
    limits = [
        None if math.isinf(number) else add_constant(model, f"{stem}_{side}", np.array(number, np.float32))
        for side, number in zip(("min", "max"), bounds, strict=True)
    ]
    return ir.node("Clip", [value, *limits], name=name)


CLIPS = Pass("clips", "Min, Max and chains of clips to one Clip or Relu", _apply)
