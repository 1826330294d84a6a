"""From the statistics of a tensor to its scale and zero point.

Activations are s8 with a zero point over a range that always contains 0, so that zero padding and ReLU are exact.
The range is chosen by the error that it causes on the observed values, after the functions through which the tensor's
consumers see it: what lies on the flat side of a SiLU or HardSwish costs nothing when it is clipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgekit.converters.quantization.observers import TensorObserver

Method = Literal["auto", "minmax", "percentile", "mse"]
Curve = Callable[[NDArray[np.float64]], NDArray[np.float64]]

QMIN, QMAX = -128, 127
LEAST_SCALE = 1e-12  # products of two scales stay normal in float32
PERCENT = 99.99
_SHRINK = np.concatenate([np.linspace(1.0, 0.5, 26), np.geomspace(0.48, 0.02, 24)])


@dataclass(frozen=True)
class AffineQuant:
    """real = (q - zero_point) * scale, q in [-128, 127]."""

    scale: float
    zero_point: int

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest real value."""
        return (QMIN - self.zero_point) * self.scale, (QMAX - self.zero_point) * self.scale

    def apply(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rounds values to the grid: quantized and dequantized again."""
        q = np.clip(np.rint(values / self.scale), QMIN - self.zero_point, QMAX - self.zero_point)
        return np.asarray(q * self.scale)


@dataclass(frozen=True)
class RangeChoice:
    """What was chosen for a tensor and why.

    Attributes:
        quant: Scale and zero point.
        method: minmax, percentile, mse or fixed.
        error: Mean squared error on the observed values, after the consumers' functions.
        power: Mean square of the observed values, after the consumers' functions.
        saturated: Share of observed values outside the range.
    """

    quant: AffineQuant
    method: str
    error: float
    power: float
    saturated: float

    @property
    def relative_error(self) -> float:
        """Error over power; 0 for a dead tensor."""
        return self.error / self.power if self.power > 0 else 0.0


def affine_from_range(low: float, high: float) -> AffineQuant:
    """Scale and zero point that cover [low, high] and 0.

    The scale is rounded to float32, in which every engine holds it.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        return AffineQuant(float(np.float32(1.0 / 255.0)), QMIN)
    scale = float(np.float32(max((high - low) / (QMAX - QMIN), LEAST_SCALE)))
    zero_point = int(np.clip(np.rint(QMIN - low / scale), QMIN, QMAX))
    return AffineQuant(scale, zero_point)


class _RangeError:
    """Squared error of quantizing the observed values, seen through each consumer's function."""

    def __init__(self, values: NDArray[np.float64], counts: NDArray[np.float64], curves: Sequence[Curve]) -> None:
        self._values = values
        self._weights = counts / counts.sum()
        self._curves = [(curve, curve(values)) for curve in curves]
        exact = [heights for _, heights in self._curves] or [values]
        self.power = float(sum(self._weights @ one**2 for one in exact))

    def __call__(self, low: float, high: float) -> float:
        rounded = affine_from_range(low, high).apply(self._values)
        if not self._curves:
            return float(self._weights @ (rounded - self._values) ** 2)
        return float(sum(self._weights @ (curve(rounded) - exact) ** 2 for curve, exact in self._curves))


def _least_error_range(error: _RangeError, low: float, high: float) -> tuple[float, float]:
    """Shrinks one end at a time, from the full range, until neither moves."""
    best = (low, high)
    for _ in range(3):
        before = best
        if high > 0:
            best = min(((best[0], high * share) for share in _SHRINK), key=lambda ends: error(*ends))
        if low < 0:
            best = min(((low * share, best[1]) for share in _SHRINK), key=lambda ends: error(*ends))
        if best == before:
            break
    return best


def choose_range(
    observer: TensorObserver,
    method: Method,
    curves: Sequence[Curve] = (),
    fixed: tuple[float, float] | None = None,
) -> RangeChoice:
    """Chooses the range of an activation.

    Args:
        observer: What was observed.
        method: auto takes the candidate with the least error.
        curves: Functions through which consumers see the tensor; empty: as it is.
        fixed: Range that the operator prescribes; wins over everything.

    Returns:
        The choice, with its error on the observed values.
    """
    values, counts = observer.bins()
    error = _RangeError(values, counts, curves)
    full = (min(0.0, float(observer.minimum)), max(0.0, float(observer.maximum))) if observer.samples else (0.0, 0.0)
    if fixed is not None:
        candidates = {"fixed": fixed}
    else:
        makers: dict[str, Callable[[], tuple[float, float]]] = {
            "minmax": lambda: full,
            "percentile": lambda: observer.percentile(PERCENT),
            "mse": lambda: _least_error_range(error, *full),
        }
        names = list(makers) if method == "auto" else [method]
        candidates = {name: makers[name]() for name in names}
    name = min(candidates, key=lambda key: error(*candidates[key]))
    quant = affine_from_range(*candidates[name])
    low, high = quant.range
    outside = (values < low - quant.scale / 2) | (values > high + quant.scale / 2)
    return RangeChoice(quant, name, error(*candidates[name]), error.power, float(counts[outside].sum() / counts.sum()))
