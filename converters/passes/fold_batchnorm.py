"""BatchNormalization after Conv, ConvTranspose or Gemm is folded into its weights and bias."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.passes import weighted
from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import all_nodes, attribute, constant_of, live_nodes, producer, used_once


@dataclass(frozen=True)
class Affine:
    """A BatchNormalization at inference: y = x * scale + shift, one float64 a channel (axis 1)."""

    scale: NDArray[np.float64]
    shift: NDArray[np.float64]


def affine_of(node: ir.Node) -> Affine | None:
    """Returns what a BatchNormalization computes; None in training mode or with statistics that are no constants."""
    if attribute(node, "training_mode", 0) or any(v.uses() or v.is_graph_output() for v in node.outputs[1:]):
        return None
    parameters = [constant_of(value) for value in node.inputs[1:5]]
    if len(parameters) != 4 or any(p is None for p in parameters):
        return None
    gamma, beta, mean, variance = (np.asarray(p, np.float64) for p in parameters)
    scale = gamma / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
    return Affine(scale, beta - mean * scale)


def _fold_into(op_type: str) -> Pass:
    def apply(model: ir.Model, context: PassContext) -> int:
        changes = 0
        for node in live_nodes(all_nodes(model), "BatchNormalization"):
            source = producer(node.inputs[0], op_type)
            affine = affine_of(node)
            if source is None or affine is None or not used_once(source.outputs[0]):
                continue
            if weighted.scale_output(model, source, affine.scale, affine.shift):
                changes += weighted.absorb_following(source, node)
        return changes

    name = {"Conv": "conv-bn", "ConvTranspose": "convtranspose-bn", "Gemm": "gemm-bn"}[op_type]
    return Pass(name, f"BatchNormalization after {op_type} folded into its weights", apply)


CONV_BN = _fold_into("Conv")
CONVTRANSPOSE_BN = _fold_into("ConvTranspose")
GEMM_BN = _fold_into("Gemm")
