"""Streaming statistics of a tensor: extremes, a histogram and channel means. No sample is ever kept.

The histogram has a fixed number of bins over [-limit, limit). When a value falls outside, the limit is doubled and
neighbouring bins are merged, which is exact, so one pass over the data is enough and memory stays flat whatever the
number, size or shape of the samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgekit.errors import CalibrationError

BINS = 8192
_MAX_HISTOGRAM_VALUES = 1 << 17  # of one sample; larger ones are strided, extremes are still exact


class Histogram:
    """Counts of values over a symmetric range that doubles when needed.

    Attributes:
        counts: int64 [BINS].
        limit: Values lie in [-limit, limit); 0 until the first non-zero value.
    """

    def __init__(self) -> None:
        self.counts: NDArray[np.int64] = np.zeros(BINS, np.int64)
        self.limit = 0.0
        self._zeros = 0

    def add(self, values: NDArray[np.floating], largest: float) -> None:
        """Counts values.

        Args:
            values: Float, any shape; flattened.
            largest: Greatest absolute value among them or among those they were drawn from.
        """
        if self.limit == 0.0:
            if largest == 0.0:
                self._zeros += values.size
                return
            self.limit = float(np.exp2(np.ceil(np.log2(largest))))
            self.counts[BINS // 2] += self._zeros
        while largest > self.limit:
            self._double()
        index = np.floor(values.ravel() * (BINS / 2 / self.limit)).astype(np.int64) + BINS // 2
        self.counts += np.bincount(np.clip(index, 0, BINS - 1), minlength=BINS)

    def _double(self) -> None:
        merged = self.counts.reshape(-1, 2).sum(axis=1)
        self.counts[:] = 0
        self.counts[BINS // 4 : BINS // 4 + BINS // 2] = merged
        self.limit *= 2

    def centres(self) -> NDArray[np.float64]:
        """Middle of each bin, float64 [BINS]."""
        return np.asarray((np.arange(BINS) + 0.5 - BINS / 2) * (2 * self.limit / BINS), np.float64)


class TensorObserver:
    """Statistics of one tensor over all samples.

    Args:
        name: Of the tensor, for messages.
        channel_axis: Axis whose means are kept; None: none.

    Attributes:
        minimum, maximum: Exact extremes of everything seen.
        samples: Number of arrays seen.
        shape: Of the first array.
    """

    def __init__(self, name: str, channel_axis: int | None = None) -> None:
        self.name = name
        self.minimum = np.inf
        self.maximum = -np.inf
        self.samples = 0
        self.shape: tuple[int, ...] = ()
        self.histogram = Histogram()
        self._channel_axis = channel_axis
        self._channel_sum: NDArray[np.float64] | None = None
        self._channel_count = 0
        self._minimum_sum = 0.0
        self._maximum_sum = 0.0

    def update(self, values: NDArray[np.floating]) -> None:
        """Takes in one sample; samples may differ in shape.

        Args:
            values: Float, any shape; not kept.

        Raises:
            CalibrationError: A value is not finite.
        """
        if values.size == 0:
            return
        low, high = float(values.min()), float(values.max())
        if not (np.isfinite(low) and np.isfinite(high)):
            raise CalibrationError(
                "the float model gives values that are not finite on the calibration data", where=self.name
            )
        if not self.samples:
            self.shape = values.shape
        self.samples += 1
        self.minimum, self.maximum = min(self.minimum, low), max(self.maximum, high)
        self._minimum_sum += low
        self._maximum_sum += high
        self.histogram.add(_thinned(values), max(abs(low), abs(high)))
        if self._channel_axis is not None:
            self._add_channels(values, self._channel_axis)

    def _add_channels(self, values: NDArray[np.floating], axis: int) -> None:
        others = tuple(a for a in range(values.ndim) if a != axis % values.ndim)
        total = values.sum(axis=others, dtype=np.float64)
        self._channel_sum = total if self._channel_sum is None else self._channel_sum + total
        self._channel_count += values.size // total.size

    @property
    def channel_mean(self) -> NDArray[np.float64] | None:
        """Mean of each channel, float64 [C]; None when not asked for or nothing was seen."""
        return None if self._channel_sum is None else self._channel_sum / self._channel_count

    @property
    def mean_extremes(self) -> tuple[float, float]:
        """Averages over the samples of their minimum and of their maximum."""
        return self._minimum_sum / max(1, self.samples), self._maximum_sum / max(1, self.samples)

    def bins(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Values and how often they occur, empty bins left out, values held inside the extremes; float64, ascending."""
        used = np.flatnonzero(self.histogram.counts)
        if not used.size:
            return np.zeros(1), np.ones(1)
        values = np.clip(self.histogram.centres()[used], self.minimum, self.maximum)
        return values, self.histogram.counts[used].astype(np.float64)

    def percentile(self, percent: float) -> tuple[float, float]:
        """Range that leaves (100 - percent) / 2 percent of the values out at each end."""
        values, counts = self.bins()
        below = np.cumsum(counts) / counts.sum()
        tail = (100.0 - percent) / 200.0
        low = values[np.searchsorted(below, tail)]
        high = values[min(int(np.searchsorted(below, 1.0 - tail)), values.size - 1)]
        return float(low), float(high)


def _thinned(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """Every n-th value where there are very many; n is odd so that it doesn't lock onto powers of two."""
    step = max(1, values.size // _MAX_HISTOGRAM_VALUES) | 1
    flat = values.ravel()
    return flat if step == 1 else flat[::step]
