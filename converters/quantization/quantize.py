"""The entry: a float model and calibration samples in, a model in QDQ form out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import onnx_ir as ir

from edgekit.converters.contracts import CalibrationSet, Progress, QuantizedModel
from edgekit.converters.quantization.audit import audit
from edgekit.converters.quantization.calibration import observe
from edgekit.converters.quantization.layer_inputs import LayerInputs, can_observe
from edgekit.converters.quantization.observers import TensorObserver
from edgekit.converters.quantization.placement import Placement, layers_in_branches, place
from edgekit.converters.quantization.prepared import PreparedLayer, prepare_layer
from edgekit.converters.quantization.probes import sqnr_db
from edgekit.converters.quantization.qdq import QdqWriter
from edgekit.converters.quantization.ranges import Method
from edgekit.converters.quantization.scale_groups import choose_scales
from edgekit.converters.quantization.search import multiply_accumulates, refine_methods, search_float_layers
from edgekit.converters.quantization.sensitivity import OutputNoise, choose_samples, rank_groups
from edgekit.errors import CalibrationError

_FEW_SAMPLES = 32
_LISTED = 10


@dataclass(frozen=True)
class QuantizeOptions:
    """How to quantize.

    Attributes:
        seed: Of everything that draws numbers.
        precision: int8: everything that the rules allow. auto: sensitive layers stay in float.
        method: How ranges of activations are chosen; auto: by error, tensor by tensor.
        bias_correction: Take the mean error of each channel out of its bias.
        keep_float: Names of nodes that stay in float.
        max_samples: Most calibration samples used.
        target_db: Signal over noise at the outputs from which on nothing further is tried.
        progress: Called with a stage and the share of it that is done.
    """

    seed: int = 0
    precision: Literal["int8", "auto"] = "int8"
    method: Method = "auto"
    bias_correction: bool = True
    keep_float: tuple[str, ...] = ()
    max_samples: int = 300
    target_db: float = 20.0
    progress: Progress | None = None


@dataclass(frozen=True)
class Recipe:
    """Everything that turns the float model into the quantized one; names, so that it applies to any clone.

    Attributes:
        keep_float: Nodes that the user keeps in float.
        observers: Statistics by tensor name.
        method: How ranges are chosen.
        prepared: Node name to its rounded weights.
        float_reasons: Further nodes in float, with the reason.
        methods: Tensor name to another method for its group.
    """

    keep_float: tuple[str, ...]
    observers: Mapping[str, TensorObserver]
    method: Method
    prepared: Mapping[str, PreparedLayer]
    float_reasons: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, Method] = field(default_factory=dict)


def quantize(model: ir.Model, calibration: CalibrationSet, options: QuantizeOptions) -> QuantizedModel:
    """Quantizes a model.

    Args:
        model: After the passes; not changed. Inputs may have symbolic dims.
        calibration: Samples; shapes may differ from one to the next.
        options: How.

    Returns:
        The model with QuantizeLinear and DequantizeLinear, and what was decided for each node.

    Raises:
        CalibrationError: There are no samples, or they don't fit the model.
        UsageError: keep_float names an unknown node.
        InternalError: A layer did not get the precision that was decided.
    """
    if not len(calibration):
        raise CalibrationError("there are no calibration samples", hint="give --calib, or --precision fp32")
    placement = place(model.graph, options.keep_float)
    observers, prepared = _measure(model, placement, calibration, options)
    recipe = Recipe(options.keep_float, observers, options.method, prepared)
    figures = {"calibration_samples": float(min(len(calibration), options.max_samples))}
    notes: list[str] = []
    if options.method == "auto" and placement.integer:
        recipe, found, said = _improve(model, placement, recipe, calibration, options)
        figures |= found
        notes += said
    quantized, final = apply(model, recipe)
    audit(quantized, final.plan())
    macs = multiply_accumulates(placement, observers)
    kept = {unit.names[0] for unit in final.integer}
    figures["int8_mac_share"] = sum(macs[name] for name in macs if name in kept) / max(1, sum(macs.values()))
    if inside := layers_in_branches(model.graph):
        notes.append(f"layers inside branches (If, Loop, Scan) stay in float: {', '.join(inside)}")
    if len(calibration) < _FEW_SAMPLES:
        notes.append(f"ranges rest on {len(calibration)} calibration samples; {_FEW_SAMPLES} or more are advisable")
    return QuantizedModel(quantized, final.plan(), tuple(notes), figures)


def _improve(
    model: ir.Model,
    placement: Placement,
    recipe: Recipe,
    calibration: CalibrationSet,
    options: QuantizeOptions,
) -> tuple[Recipe, dict[str, float], list[str]]:
    """Looks for better ranges, and with precision auto for float layers, when the outputs are noisier than wished.

    Returns:
        The recipe, figures for the report and notes for the user.
    """
    samples = choose_samples(calibration, recipe.observers, options.max_samples)
    noise = OutputNoise(model, recipe.keep_float, recipe.prepared, samples)
    choices = choose_scales(model, placement, recipe.observers, recipe.method)
    target = 10 ** (-options.target_db / 10)
    before = noise.measure(choices.quants())
    figures = {"sqnr_int8_db": sqnr_db(before)}
    if before <= target:
        return recipe, figures, []
    added = rank_groups(noise, choices, noise.measure({}), options.progress)
    methods = refine_methods(noise, model, recipe.observers, choices, added)
    refined = choose_scales(model, placement, recipe.observers, recipe.method, methods)
    after = noise.measure(refined.quants())
    if after < before:
        recipe, choices = replace(recipe, methods=methods), refined
        figures["sqnr_refined_db"] = sqnr_db(after)
    for name, own in list(added.items())[:_LISTED]:
        figures[f"sqnr_alone_db.{name}"] = sqnr_db(own)
    if options.precision != "auto" or min(after, before) <= target:
        return recipe, figures, []
    ranked = dict(sorted(added.items(), key=lambda item: -item[1]))
    reasons = search_float_layers(model, noise, recipe.observers, choices, ranked, target)
    notes = [f"{len(reasons)} sensitive layers stay in float: {', '.join(reasons)}"] if reasons else []
    return replace(recipe, float_reasons=reasons), figures, notes


def _measure(
    model: ir.Model, placement: Placement, calibration: CalibrationSet, options: QuantizeOptions
) -> tuple[dict[str, TensorObserver], dict[str, PreparedLayer]]:
    """Statistics of every quantized tensor, and the rounded weights of every integer layer."""
    layers = {unit.names[0]: unit.layer for unit in placement.units if unit in placement.integer and unit.layer}
    count = min(len(calibration), options.max_samples)
    tensors = {value.name or "": TensorObserver(value.name or "") for value in placement.tensors}
    inputs = {name: LayerInputs(layer, count, options.seed) for name, layer in layers.items() if can_observe(layer)}
    observe(model, [*tensors.values(), *inputs.values()], calibration, options.max_samples, options.progress)
    prepared = {}
    for position, (name, layer) in enumerate(layers.items()):
        prepared[name] = prepare_layer(layer, inputs.pop(name, None), options.bias_correction)
        if options.progress:
            options.progress("round weights", (position + 1) / len(layers))
    return tensors, prepared


def apply(model: ir.Model, recipe: Recipe) -> tuple[ir.Model, Placement]:
    """Quantizes a clone as the recipe says.

    Returns:
        The clone and its placement.
    """
    clone = model.clone()
    placement = place(clone.graph, recipe.keep_float, dict(recipe.float_reasons))
    choices = choose_scales(clone, placement, recipe.observers, recipe.method, recipe.methods)
    QdqWriter(clone.graph, placement, choices.quants(), recipe.prepared).write()
    _drop_unused(clone.graph)
    return clone, placement


def _drop_unused(graph: ir.Graph) -> None:
    for name, value in list(graph.initializers.items()):
        if not value.uses() and not value.is_graph_output():
            del graph.initializers[name]
