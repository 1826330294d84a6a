"""x * clip(x/6 + 1/2, 0, 1) becomes HardSwish, a clip to 0..1 (after an affine step) becomes HardSigmoid.

Spellings met: x * relu6(x + 3) / 6, x * (relu6(x + 3) / 6), x * hard_sigmoid(x), clip(0.2 x + 0.5, 0, 1) and
relu6(x + 3) * (1/6), with Clip, Relu6 as Min(Relu), or Max and Min.
"""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import (
    all_nodes,
    close_to,
    fused_name,
    is_op,
    live_nodes,
    only_consumer,
    replace_node,
    used_once,
)
from edgekit.converters.passes.scalar_chain import (
    ScalarAffine,
    affine_above,
    affine_step,
    clip_bounds,
    hard_gate_above,
    product_operands,
)


def _hard_swish(model: ir.Model, context: PassContext) -> int:
    return sum(_to_hard_swish(node) for node in live_nodes(all_nodes(model), "Mul"))


def _to_hard_swish(node: ir.Node) -> bool:
    operands = product_operands(node)
    if operands is None:
        return False
    for x, gate in (operands, operands[::-1]):
        if not used_once(gate):
            continue
        found = hard_gate_above(gate)
        if found is not None and found[0].source is x and _is_hard_swish(found[0]):
            replace_node(node, ir.node("HardSwish", [x], name=fused_name(*reversed(found[1]), node)))
            return True
        undivided = _relu6_gate(gate, x)
        if undivided is not None and _divide_after(node, x, undivided):
            return True
    return False


def _is_hard_swish(inner: ScalarAffine) -> bool:
    return close_to(inner.scale, 1 / 6) and close_to(inner.shift, 0.5)


def _relu6_gate(gate: ir.Value, x: ir.Value) -> ir.Node | None:
    """Reads gate = clip(x + 3, 0, 6); returns the clip."""
    clip = clip_bounds(gate.producer())
    if clip is None or clip[1] != 0.0 or not close_to(clip[2], 6.0) or not used_once(clip[0]):
        return None
    inner = affine_above(clip[0])
    matches = inner.source is x and close_to(inner.scale, 1.0) and close_to(inner.shift, 3.0)
    return gate.producer() if matches else None


def _divide_after(product: ir.Node, x: ir.Value, clip: ir.Node) -> bool:
    """Matches (x * relu6(x + 3)) / 6, the division last."""
    last = only_consumer(product.outputs[0])
    step = affine_step(last)
    if last is None or step is None or step.shift != 0.0 or not close_to(step.scale, 1 / 6):
        return False
    replace_node(last, ir.node("HardSwish", [x], name=fused_name(clip, product, last)))
    return True


def _hard_sigmoid(model: ir.Model, context: PassContext) -> int:
    return sum(_to_hard_sigmoid(node) for node in live_nodes(all_nodes(model), "Clip", "Mul", "Div", "Min"))


def _to_hard_sigmoid(node: ir.Node) -> bool:
    found = hard_gate_above(node.outputs[0])
    if found is None:
        return False
    inner, nodes = found
    plain_clip = len(nodes) == 1 and inner.scale == 1.0 and inner.shift == 0.0
    if plain_clip or inner.scale <= 0 or is_op(nodes[0], "HardSigmoid"):
        return False
    new = ir.node(
        "HardSigmoid", [inner.source], {"alpha": inner.scale, "beta": inner.shift}, name=fused_name(*reversed(nodes))
    )
    replace_node(node, new)
    return True


HARD_SWISH = Pass("hard-swish", "x * relu6(x + 3) / 6 in its spellings to HardSwish", _hard_swish)
HARD_SIGMOID = Pass("hard-sigmoid", "clip(a x + b, 0, 1) in its spellings to HardSigmoid", _hard_sigmoid)
