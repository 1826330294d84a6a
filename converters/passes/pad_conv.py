"""A Pad of zeros before a Conv becomes the Conv's own padding."""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.passes import weighted
from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import (
    all_nodes,
    attribute,
    constant_of,
    input_at,
    is_op,
    live_nodes,
    only_consumer,
    rank_of,
    scalar_of,
)


def _spatial_pads(node: ir.Node) -> list[int] | None:
    """Begins then ends of the spatial axes; None unless the Pad is of constant zeros on spatial axes only."""
    rank = rank_of(node.inputs[0])
    pads = constant_of(input_at(node, 1))
    value = input_at(node, 2)
    if attribute(node, "mode", "constant") != "constant" or pads is None or rank is None or rank < 3:
        return None
    if value is not None and scalar_of(value) != 0.0:
        return None
    axes_value = input_at(node, 3)
    axes = constant_of(axes_value)
    if axes_value is not None and axes is None:
        return None
    listed = list(range(rank)) if axes is None else [int(a) % rank for a in axes]
    begins, ends = [0] * rank, [0] * rank
    for position, axis in enumerate(listed):
        begins[axis], ends[axis] = int(pads[position]), int(pads[position + len(listed)])
    if any(begins[:2]) or any(ends[:2]) or min(begins + ends) < 0:
        return None
    return begins[2:] + ends[2:]


def _apply(model: ir.Model, context: PassContext) -> int:
    changes = 0
    for node in live_nodes(all_nodes(model), "Pad"):
        following, pads, source = only_consumer(node.outputs[0]), _spatial_pads(node), node.inputs[0]
        if following is None or pads is None or source is None or not is_op(following, "Conv"):
            continue
        if following.inputs[0] is not node.outputs[0] or attribute(following, "auto_pad", "NOTSET") not in (
            "NOTSET",
            "VALID",
        ):
            continue
        own = attribute(following, "pads", None) or [0] * len(pads)
        following.attributes["pads"] = ir.AttrInt64s("pads", [a + b for a, b in zip(own, pads, strict=True)])
        following.attributes.pop("auto_pad", None)
        changes += weighted.absorb_preceding(node, source, following)
    return changes


PAD_CONV = Pass("pad-conv", "Zero padding before a Conv becomes the Conv's own", _apply)
