"""Where the damage done by rounding is measured: the outputs, taken apart by role and before squashing functions.

Probabilities hide damage until an answer flips and then show it all at once, and a Concat of boxes in pixels with
scores hides the scores. So a probe stands before a final Softmax or Sigmoid and on each input of a final Concat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from edgekit.converters.contracts import Array
from edgekit.converters.quantization.graph_access import is_float_activation

_SQUASHING = frozenset({"Softmax", "LogSoftmax", "Sigmoid"})
_MOVING = frozenset({"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity"})
_MAX_PROBES = 32


def probe_tensors(graph: ir.Graph) -> list[str]:
    """Names of the tensors to compare, float ones only, in graph order of the outputs."""
    found: dict[str, None] = {}

    def visit(value: ir.Value) -> None:
        node = value.producer()
        if not is_float_activation(value) or node is None:
            return
        if node.op_type == "Concat" and len(node.inputs) + len(found) <= _MAX_PROBES:
            for part in node.inputs:
                if part is not None:
                    visit(part)
        elif node.op_type in (_SQUASHING | _MOVING) and node.inputs[0] is not None:
            visit(node.inputs[0])
        else:
            found[value.name or ""] = None

    for output in graph.outputs:
        visit(output)
    return list(found)


@dataclass
class NoiseMeter:
    """Sums of signal and noise of each probe over samples.

    Attributes:
        signal: Probe to the sum of squares of the reference.
        noise: Probe to the sum of squared differences.
    """

    signal: dict[str, float] = field(default_factory=dict)
    noise: dict[str, float] = field(default_factory=dict)

    def add(self, reference: Mapping[str, Array], got: Mapping[str, Array]) -> None:
        """Takes in one sample."""
        for name, exact in reference.items():
            wide = exact.astype(np.float64)
            difference = got[name].astype(np.float64) - wide
            self.signal[name] = self.signal.get(name, 0.0) + float((wide**2).sum())
            self.noise[name] = self.noise.get(name, 0.0) + float((difference**2).sum())

    def relative(self) -> dict[str, float]:
        """Noise over signal of each probe; probes without signal are left out."""
        return {name: self.noise[name] / power for name, power in self.signal.items() if power > 0}

    def worst(self) -> float:
        """Greatest noise over signal of all probes; 0 when there is none."""
        return max(self.relative().values(), default=0.0)


def sqnr_db(relative_noise: float) -> float:
    """Noise over signal in decibel, at most 120."""
    return float(-10 * np.log10(max(relative_noise, 1e-12)))


def mean_relative(meters: Sequence[NoiseMeter]) -> float:
    """Mean over several meters of their worst noise."""
    return float(np.mean([meter.worst() for meter in meters])) if meters else 0.0
