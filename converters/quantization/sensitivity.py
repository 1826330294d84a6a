"""How much each quantized tensor harms the outputs, measured on a few samples.

The score of a state is the noise of its worst probe, averaged in decibel over the samples, so that one strange sample
doesn't decide. Scores of single tensors add up well enough to rank by; whatever is decided is measured again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np
import onnx_ir as ir

from edgekit.converters.contracts import Array, CalibrationSet, Feeds, Progress
from edgekit.converters.quantization.calibration import ModelRunner
from edgekit.converters.quantization.observers import TensorObserver
from edgekit.converters.quantization.placement import place
from edgekit.converters.quantization.prepared import PreparedLayer
from edgekit.converters.quantization.probes import NoiseMeter, probe_tensors
from edgekit.converters.quantization.ranges import AffineQuant
from edgekit.converters.quantization.scale_groups import Choices
from edgekit.converters.quantization.simulation import SwitchedModel

_MAX_SAMPLES = 6
_LEAST_SAMPLES = 2
_VALUES_AT_ONCE = 64_000_000  # of all quantized tensors over the samples; sets their number for large inputs
_MAX_RANKED = 40
_LEAST_NOISE = 1e-12


def choose_samples(calibration: CalibrationSet, observers: Mapping[str, TensorObserver], limit: int) -> list[Feeds]:
    """A few samples, spread evenly; fewer where the tensors are large."""
    values = sum(int(np.prod(observer.shape)) for observer in observers.values())
    count = int(np.clip(_VALUES_AT_ONCE // max(1, values), _LEAST_SAMPLES, _MAX_SAMPLES))
    available = min(len(calibration), limit)
    picked = set(np.linspace(0, available - 1, min(count, available)).astype(int).tolist())
    return [feeds for position, feeds in enumerate(islice(calibration, available)) if position in picked]


class OutputNoise:
    """Measures what rounding does to the outputs.

    Args:
        model: Float model; not changed.
        keep_float: Nodes that stay in float anyway.
        prepared: Node name to its rounded weights.
        samples: A few.
    """

    def __init__(
        self,
        model: ir.Model,
        keep_float: Sequence[str],
        prepared: Mapping[str, PreparedLayer],
        samples: Sequence[Feeds],
    ) -> None:
        self._samples = samples
        self.keep_float = tuple(keep_float)
        self.probes = probe_tensors(model.graph)
        exact = ModelRunner(model, self.probes)
        self._references: list[dict[str, Array]] = [exact.run(feeds) for feeds in samples]
        clone = model.clone()
        self._switched = SwitchedModel(clone, place(clone.graph, keep_float), prepared, self.probes)

    def measure(self, on: Mapping[str, AffineQuant]) -> float:
        """Noise over signal of the worst probe with these tensors rounded, besides the weights."""
        if not self.probes:
            return 0.0
        logs = []
        for feeds, reference in zip(self._samples, self._references, strict=True):
            meter = NoiseMeter()
            meter.add(reference, self._switched.run(feeds, on))
            logs.append(np.log(max(meter.worst(), _LEAST_NOISE)))
        return float(np.exp(np.mean(logs)))


def rank_groups(noise: OutputNoise, choices: Choices, base: float, progress: Progress | None) -> dict[str, float]:
    """Noise that each group of tensors adds by itself.

    Groups whose own rounding error is least are left out when there are very many.

    Args:
        noise: The measurement.
        choices: Scales in question.
        base: Noise with weights alone rounded.
        progress: Called with the stage "rank".

    Returns:
        First tensor of the group to added noise, greatest first.
    """
    groups = sorted(choices.groups, key=lambda members: -choices.by_tensor[members[0]].relative_error)[:_MAX_RANKED]
    added = {}
    for position, members in enumerate(groups):
        quant = choices.by_tensor[members[0]].quant
        added[members[0]] = max(noise.measure(dict.fromkeys(members, quant)) - base, 0.0)
        if progress:
            progress("rank", (position + 1) / len(groups))
    return dict(sorted(added.items(), key=lambda item: -item[1]))
