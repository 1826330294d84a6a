"""BatchNormalization before a Conv without padding is folded forward into the Conv's weights.

With padding it can't: the padded zeros would have to become the shift. leftover_batchnorm.py takes those.
"""

from __future__ import annotations

import onnx_ir as ir

from edgekit.converters.passes import weighted
from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.fold_batchnorm import affine_of
from edgekit.converters.passes.graph_edit import all_nodes, is_op, live_nodes, only_consumer


def _apply(model: ir.Model, context: PassContext) -> int:
    changes = 0
    for node in live_nodes(all_nodes(model), "BatchNormalization"):
        following, affine, source = only_consumer(node.outputs[0]), affine_of(node), node.inputs[0]
        if following is None or affine is None or source is None or not is_op(following, "Conv"):
            continue
        if following.inputs[0] is not node.outputs[0]:
            continue
        if weighted.scale_input(model, following, affine.scale, affine.shift):
            changes += weighted.absorb_preceding(node, source, following)
    return changes


BN_CONV = Pass("bn-conv", "BatchNormalization before a Conv without padding folded into its weights", _apply)
