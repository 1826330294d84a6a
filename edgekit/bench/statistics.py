"""Latency statistics that say when there are too few samples to say anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)
CONFIDENCE = 0.99


@cache
def samples_needed(percentile: float) -> int:
    """Least number of samples for a percentile to be stated.

    The early-stopping rule of MLPerf Inference (LoadGen, "Early Stopping"): with n samples of which one lies above the
    limit, the chance that a system whose true share above it is 1 - percentile looks that good,
    P(X <= 1) for X ~ Binomial(n, 1 - p), must not exceed 1 %.

    Args:
        percentile: 0 < percentile < 100.

    Returns:
        Number of samples; 11 for 50, 64 for 90, 130 for 95, 662 for 99, 6,636 for 99.9.
    """
    below = percentile / 100.0
    count = 2
    while below**count + count * below ** (count - 1) * (1.0 - below) > 1.0 - CONFIDENCE:
        count += 1
    return count


@dataclass(frozen=True)
class LatencySummary:
    """What a series of latencies says.

    Attributes:
        count: Number of samples.
        percentiles_ms: Percentile to milliseconds; None where the samples are too few.
        mean_ms, max_ms: Mean and greatest.
        mad_ms: Median absolute deviation from the median.
    """

    count: int
    percentiles_ms: dict[float, float | None]
    mean_ms: float
    max_ms: float
    mad_ms: float

    def text(self, percentile: float) -> str:
        """A percentile for a table: milliseconds, or "n < 64", the number of samples that it takes."""
        value = self.percentiles_ms[percentile]
        return f"n < {samples_needed(percentile)}" if value is None else f"{value:.3f}"


def summarize(latencies_ms: Sequence[float] | NDArray[np.float64]) -> LatencySummary:
    """Summarises latencies.

    Args:
        latencies_ms: One entry an inference, milliseconds, at least one.

    Returns:
        The summary. Percentiles are sample values (the least one that is not exceeded by the share asked for).
    """
    values = np.sort(np.asarray(latencies_ms, dtype=np.float64))
    percentiles: dict[float, float | None] = {}
    for percentile in PERCENTILES:
        rank = max(math.ceil(percentile / 100.0 * len(values)) - 1, 0)
        percentiles[percentile] = float(values[rank]) if len(values) >= samples_needed(percentile) else None
    median = float(np.median(values))
    return LatencySummary(
        count=len(values),
        percentiles_ms=percentiles,
        mean_ms=float(values.mean()),
        max_ms=float(values[-1]),
        mad_ms=float(np.median(np.abs(values - median))),
    )
