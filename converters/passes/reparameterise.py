"""Parallel Conv branches of one input whose outputs are added become one Conv (RepVGG: Ding et al., 2021).

A smaller kernel is set into the middle of the larger one, a depthwise branch into the diagonal, the bare input (when
two or more Convs are there already) becomes a kernel with a one in its middle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import (
    add_constant,
    all_nodes,
    attribute,
    constant_of,
    fused_name,
    input_at,
    is_op,
    live_nodes,
    only_consumer,
    producer,
    replace_node,
    used_once,
)
from edgekit.converters.passes.weighted import weight_of


@dataclass(frozen=True)
class _Branch:
    """A Conv that can be merged.

    Attributes:
        node: The Conv.
        weight: [out, in / group, kh, kw].
        bias: [out].
        group: Groups.
        strides: [sh, sw].
        pads: [top, left, bottom, right].
    """

    node: ir.Node
    weight: NDArray[np.float32]
    bias: NDArray[np.float64]
    group: int
    strides: tuple[int, ...]
    pads: tuple[int, ...]


def _branch(value: ir.Value) -> _Branch | None:
    node = producer(value, "Conv")
    weight = weight_of(node) if node is not None and used_once(value) else None
    if node is None or weight is None or weight.ndim != 4 or attribute(node, "auto_pad", "NOTSET") != "NOTSET":
        return None
    if any(d != 1 for d in attribute(node, "dilations", [1, 1])):
        return None
    bias = constant_of(input_at(node, 2)) if input_at(node, 2) is not None else np.zeros(weight.shape[0])
    if bias is None:
        return None
    return _Branch(
        node,
        weight,
        bias.astype(np.float64),
        attribute(node, "group", 1),
        tuple(attribute(node, "strides", [1, 1])),
        tuple(attribute(node, "pads", [0, 0, 0, 0])),
    )


def _leaves(node: ir.Node) -> tuple[list[ir.Value], list[ir.Node]]:
    """Flattens a tree of Add nodes whose inner values are read once: the summands and the Adds."""
    leaves: list[ir.Value] = []
    adds = [node]
    for value in node.inputs:
        inner = producer(value, "Add")
        if value is not None and inner is not None and used_once(value):
            below, more = _leaves(inner)
            leaves.extend(below)
            adds.extend(more)
        elif value is not None:
            leaves.append(value)
    return leaves, adds


def _apply(model: ir.Model, context: PassContext) -> int:
    changes = 0
    for node in live_nodes(all_nodes(model), "Add"):
        following = only_consumer(node.outputs[0])
        if following is not None and is_op(following, "Add"):
            continue
        leaves, adds = _leaves(node)
        branches = [b for b in map(_branch, leaves) if b is not None]
        if len(branches) >= 2 and len({id(b.node.inputs[0]) for b in branches}) == 1:
            changes += _merge(model, node, adds, leaves, branches)
    return changes


def _merge(
    model: ir.Model, last: ir.Node, adds: list[ir.Node], leaves: list[ir.Value], branches: list[_Branch]
) -> bool:
    x = branches[0].node.inputs[0]
    identities = sum(value is x for value in leaves)
    if x is None or len(branches) + identities != len(leaves):
        return False
    widest = max(branches, key=lambda b: b.weight.shape[2] * b.weight.shape[3])
    group = min(b.group for b in branches)
    kernels = [_embedded(b, widest, group) for b in branches]
    if any(k is None for k in kernels):
        return False
    weight = np.sum([k for k in kernels if k is not None], axis=0)
    if identities:
        middle = _identity(widest, weight.shape, group)
        if middle is None:
            return False
        weight += identities * middle
    stem = last.outputs[0].name
    inputs = [
        x,
        add_constant(model, f"{stem}_weight", weight.astype(np.float32)),
        add_constant(model, f"{stem}_bias", np.sum([b.bias for b in branches], axis=0).astype(np.float32)),
    ]
    attributes: dict[str, int | list[int]] = {
        "group": group,
        "kernel_shape": list(weight.shape[2:]),
        "strides": list(widest.strides),
        "pads": list(widest.pads),
        "dilations": [1, 1],
    }
    name = fused_name(*(b.node for b in branches), *reversed(adds))
    replace_node(last, ir.node("Conv", inputs, attributes, name=name))
    return True


def _embedded(branch: _Branch, widest: _Branch, group: int) -> NDArray[np.float64] | None:
    """Sets a branch's kernel into one of the widest branch's size, with `group` groups; None where it can't be."""
    if branch.strides != widest.strides or branch.weight.shape[0] != widest.weight.shape[0]:
        return None
    offsets = [widest.pads[axis] - branch.pads[axis] for axis in (0, 1)]
    ends = [widest.pads[axis + 2] - branch.pads[axis + 2] for axis in (0, 1)]
    sizes, wide = branch.weight.shape[2:], widest.weight.shape[2:]
    if any(o < 0 or e < 0 or s + o + e != w for o, e, s, w in zip(offsets, ends, sizes, wide, strict=True)):
        return None
    dense = _with_groups(branch, group)
    if dense is None:
        return None
    top, left = offsets
    result = np.zeros((*dense.shape[:2], *wide))
    result[:, :, top : top + sizes[0], left : left + sizes[1]] = dense
    return result


def _with_groups(branch: _Branch, group: int) -> NDArray[np.float64] | None:
    """Spells a kernel of many groups as one of fewer, with zeros between."""
    weight = branch.weight.astype(np.float64)
    if branch.group == group:
        return weight
    if branch.group % group:
        return None
    out, inner = weight.shape[:2]
    merged = branch.group // group
    result = np.zeros((out, inner * merged, *weight.shape[2:]))
    for channel in range(out):
        slot = (channel * branch.group // out) % merged
        result[channel, slot * inner : (slot + 1) * inner] = weight[channel]
    return result


def _identity(widest: _Branch, shape: tuple[int, ...], group: int) -> NDArray[np.float64] | None:
    out, inner, height, width = shape
    if out != inner * group or widest.strides != (1, 1):
        return None
    if widest.pads != ((height - 1) // 2, (width - 1) // 2) * 2 or height % 2 == 0 or width % 2 == 0:
        return None
    result = np.zeros(shape)
    for channel in range(out):
        result[channel, channel % inner, height // 2, width // 2] = 1.0
    return result


REPARAMETERISE = Pass("reparameterise", "Parallel Conv branches that are added become one Conv", _apply)
