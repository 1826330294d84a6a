"""What to do about tensors that harm the outputs most: another range, and at last float layers.

Method: greedy on the measured noise of single tensors (sensitivity.py), dearest noise a multiply-accumulate first, and
every state that is accepted was measured as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from edgekit.converters.quantization.observers import TensorObserver
from edgekit.converters.quantization.placement import Placement, place
from edgekit.converters.quantization.probes import sqnr_db
from edgekit.converters.quantization.ranges import Method
from edgekit.converters.quantization.scale_groups import Choices, choose_scales
from edgekit.converters.quantization.sensitivity import OutputNoise
from edgekit.converters.quantization.units import Unit, UnitKind

_REFINED = 16
_WORTH = 0.02  # share of all noise below which a tensor is left as it is
_CANDIDATES = 8
_MOST_STEPS = 24
_MOST_FLOAT_SHARE = 0.25  # of the multiply-accumulates
_STEP_COST = 0.002  # of a layer without multiply-accumulates, as a share of all


def refine_methods(
    noise: OutputNoise,
    model: ir.Model,
    observers: Mapping[str, TensorObserver],
    choices: Choices,
    added: dict[str, float],
) -> dict[str, Method]:
    """Tries other ranges on the tensors that harm most.

    Args:
        noise: The measurement.
        model: Float model.
        observers: Statistics by tensor name.
        choices: Present scales.
        added: Noise that each group adds, by its first tensor; improved values are written back.

    Returns:
        First tensor of a group to the method that measured better than its present range.
    """
    total, base = sum(added.values()), noise.measure({})
    placement = place(model.graph, noise.keep_float)
    methods: tuple[Method, ...] = ("minmax", "percentile", "mse")
    others = {method: choose_scales(model, placement, observers, method) for method in methods}
    members = {group[0]: group for group in choices.groups}
    better: dict[str, Method] = {}
    for name in list(added)[:_REFINED]:
        if added[name] < _WORTH * total:
            break
        tried = {choices.by_tensor[name].quant}
        for method, other in others.items():
            quant = other.by_tensor[name].quant
            if quant in tried:
                continue
            tried.add(quant)
            own = max(noise.measure(dict.fromkeys(members[name], quant)) - base, 0.0)
            if own < added[name]:
                added[name], better[name] = own, method
    return better


@dataclass(frozen=True)
class _Move:
    """Layers that would go to float.

    Attributes:
        names: Their first nodes.
        tensor: The tensor that it is about.
        gain: Noise that is expected to go.
        share: Share of the multiply-accumulates that goes to float, in all.
    """

    names: tuple[str, ...]
    tensor: str
    gain: float
    share: float


def search_float_layers(
    model: ir.Model,
    noise: OutputNoise,
    observers: Mapping[str, TensorObserver],
    choices: Choices,
    added: Mapping[str, float],
    target: float,
) -> dict[str, str]:
    """Chooses layers that stay in float until the noise is as wished.

    Args:
        model: Float model.
        noise: The measurement.
        observers: Statistics by tensor name; their shapes give the multiply-accumulates.
        choices: Scales.
        added: Noise that each group adds by itself, by its first tensor.
        target: Noise over signal that is wished for.

    Returns:
        Node name to the reason; empty when nothing helps or nothing has to be done.
    """
    everything = place(model.graph, noise.keep_float)
    macs = multiply_accumulates(everything, observers)
    quants = choices.quants()
    reasons: dict[str, str] = {}
    best, best_reasons = np.inf, reasons
    for _ in range(_MOST_STEPS):
        placement = place(model.graph, noise.keep_float, reasons)
        present = {value.name or "" for value in placement.tensors}
        measured = noise.measure({name: quants[name] for name in present})
        if measured < best:
            best, best_reasons = measured, dict(reasons)
        if measured <= target:
            return dict(reasons)
        moves = _moves(model, placement, noise.keep_float, reasons, choices, _Costs(added, macs))
        if not moves:
            break
        move = max(moves, key=lambda one: one.gain / (one.share + _STEP_COST))
        why = f"rounding {move.tensor} alone leaves {sqnr_db(added[move.tensor]):.1f} dB at the outputs"
        reasons = {**reasons, **dict.fromkeys(move.names, why)}
    return best_reasons


class _Costs(NamedTuple):
    """Noise that rounding a tensor adds at the outputs, by tensor, and multiply-accumulates, by layer."""

    added: Mapping[str, float]
    macs: Mapping[str, int]


def _moves(
    model: ir.Model,
    placement: Placement,
    keep_float: Sequence[str],
    reasons: dict[str, str],
    choices: Choices,
    costs: _Costs,
) -> list[_Move]:
    added, macs = costs
    present = {value.name or "" for value in placement.tensors}
    total = max(1, sum(macs.values()))
    moves = []
    for tensor in [name for name in added if name in present][:_CANDIDATES]:
        for names in _layers_around(placement, tensor, choices):
            wish = {**reasons, **dict.fromkeys(names, "tried")}
            after = place(model.graph, keep_float, wish)
            left = {value.name or "" for value in after.tensors}
            gain = sum(noise for name, noise in added.items() if name in present and name not in left)
            kept = {unit.names[0] for unit in after.integer}
            share = sum(count for name, count in macs.items() if name not in kept) / total
            if gain > 0 and share <= _MOST_FLOAT_SHARE:
                moves.append(_Move(names, tensor, gain, share))
    return moves


def _layers_around(placement: Placement, tensor: str, choices: Choices) -> list[tuple[str, ...]]:
    """Sets of units that could go to float so that the tensor need not be rounded: its maker, and with its readers."""
    group = next(set(members) for members in choices.groups if tensor in members)
    makers: dict[str, None] = {}
    readers: dict[str, None] = {}
    for unit in placement.units:
        if unit not in placement.integer:
            continue
        if any(value.name == tensor for value in unit.outputs):
            makers[unit.names[0]] = None
        if _reads(unit, group):
            readers[unit.names[0]] = None
    return [names for names in (tuple(makers), tuple({**makers, **readers})) if names]


def _reads(unit: Unit, group: set[str]) -> bool:
    carries = unit.kind in (UnitKind.INHERIT, UnitKind.CONCAT)
    return not carries and any(value.name in group for value in unit.inputs)


def multiply_accumulates(placement: Placement, observers: Mapping[str, TensorObserver]) -> dict[str, int]:
    """Multiply-accumulates of each layer with weights that may be in integers, for the first calibration sample."""
    return {
        unit.names[0]: int(np.prod(observers[unit.outputs[0].name or ""].shape)) * unit.layer.depth
        for unit in placement.units
        if unit in placement.integer and unit.layer is not None and unit.outputs[0].name in observers
    }
