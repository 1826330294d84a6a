"""How far an engine's outputs are from the float model's, on samples that calibration did not see.

SQNR = 10 log10(sum(reference^2) / sum((reference - candidate)^2)) in dB. Outputs that hold values of unlike meaning
(boxes in pixels next to scores) are cut into parts, or the large values would hide the small ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from edgekit.converters.contracts import Array

CAP_DB = 200.0
"""SQNR of equal arrays, and the most that is reported."""

Run = Callable[[Mapping[str, Array]], Mapping[str, Array]]


class Part(msgspec.Struct, frozen=True):
    """A range of one output along one axis that has one meaning.

    Attributes:
        name: For reports: the output's name, or output/meaning.
        output: Output name.
        axis: Axis that is cut; 0 with start 0 and stop None is all of it.
        start, stop: Range along the axis.
    """

    name: str
    output: str
    axis: int = 0
    start: int = 0
    stop: int | None = None

    def of(self, outputs: Mapping[str, Array]) -> Array:
        """Cuts the part out of a run's outputs."""
        array = outputs[self.output]
        if self.stop is None and self.start == 0:
            return array
        index = [slice(None)] * array.ndim
        index[self.axis] = slice(self.start, self.stop)
        return array[tuple(index)]


class PartAccuracy(msgspec.Struct, frozen=True):
    """Figures of one part over all samples.

    Attributes:
        name: Of the part.
        samples: Number of samples that the figures rest on.
        sqnr_db: Over all values of all samples.
        cosine: Cosine between all reference and all candidate values.
        max_abs: Largest absolute difference.
        mean_abs: Mean absolute difference.
        reference_min, reference_max: Range of the float model's values.
        worst_sample: Name of the sample with the lowest SQNR.
        worst_sqnr_db: Its SQNR.
        p99_sqnr_db: SQNR that 99 % of the samples reach (the lower 1 % quantile).
    """

    name: str
    samples: int
    sqnr_db: float
    cosine: float
    max_abs: float
    mean_abs: float
    reference_min: float
    reference_max: float
    worst_sample: str
    worst_sqnr_db: float
    p99_sqnr_db: float


@dataclass
class _Sums:
    """Running sums of one part."""

    signal: float = 0.0
    noise: float = 0.0
    product: float = 0.0
    energy: float = 0.0
    absolute: float = 0.0
    count: int = 0
    largest: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    by_sample: list[tuple[float, str]] = field(default_factory=list)

    def add(self, reference: Array, candidate: Array, sample: str) -> None:
        a, b = reference.astype(np.float64).ravel(), candidate.astype(np.float64).ravel()
        # Infinities and NaN that both give are no error and would hide everything else.
        same = ~np.isfinite(a) & ((a == b) | (np.isnan(a) & np.isnan(b)))
        a, b = a[~same], b[~same]
        difference = a - b
        signal, noise = float(a @ a), float(difference @ difference)
        self.signal += signal
        self.noise += noise if math.isfinite(noise) else math.inf
        self.product += float(a @ b)
        self.energy += float(b @ b)
        self.absolute += float(np.abs(difference).sum())
        self.count += a.size
        self.largest = max(self.largest, float(np.abs(difference).max(initial=0.0)))
        self.low, self.high = (
            min(self.low, float(a.min(initial=self.low))),
            max(self.high, float(a.max(initial=self.high))),
        )
        self.by_sample.append((sqnr_db(signal, noise), sample))

    def result(self, name: str) -> PartAccuracy:
        scale = math.sqrt(self.signal * self.energy)
        worst, sample = min(self.by_sample)
        values = [value for value, _ in self.by_sample]
        return PartAccuracy(
            name=name,
            samples=len(values),
            sqnr_db=sqnr_db(self.signal, self.noise),
            cosine=_finite(self.product / scale if scale > 0 else float(self.noise == 0)),
            max_abs=_finite(self.largest),
            mean_abs=_finite(self.absolute / max(self.count, 1)),
            reference_min=_finite(self.low),
            reference_max=_finite(self.high),
            worst_sample=sample,
            worst_sqnr_db=worst,
            p99_sqnr_db=float(np.quantile(values, 0.01)),
        )


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0 if math.isnan(value) else math.copysign(1e30, value)


def sqnr_db(signal: float, noise: float) -> float:
    """10 log10(signal / noise), within -CAP_DB..CAP_DB; not-a-number noise counts as all noise."""
    if noise == 0:
        return CAP_DB
    if not math.isfinite(noise) or signal == 0:
        return -CAP_DB
    return max(-CAP_DB, min(CAP_DB, 10 * math.log10(signal / noise)))


def sqnr_of(reference: Array, candidate: Array) -> float:
    """SQNR of one array against another, in dB."""
    a, b = reference.astype(np.float64).ravel(), candidate.astype(np.float64).ravel()
    difference = a - b
    return sqnr_db(float(a @ a), float(difference @ difference))


def compare(
    reference: Run,
    candidate: Run,
    samples: Iterable[Mapping[str, Array]],
    names: Sequence[str],
    parts: Sequence[Part],
    observe: Callable[[Mapping[str, Array], Mapping[str, Array]], None] | None = None,
) -> tuple[PartAccuracy, ...]:
    """Runs both on the same samples.

    Args:
        reference: The float model.
        candidate: The engine under test.
        samples: Feeds, one run each.
        names: Name of each sample.
        parts: How outputs are cut.
        observe: Is given the outputs of both after each sample, such as to count how often a task agrees.

    Returns:
        One entry a part.
    """
    sums = {part.name: _Sums() for part in parts}
    for sample, name in zip(samples, names, strict=True):
        expected, got = reference(sample), candidate(sample)
        for part in parts:
            sums[part.name].add(part.of(expected), part.of(got), name)
        if observe is not None:
            observe(expected, got)
    return tuple(sums[part.name].result(part.name) for part in parts)
