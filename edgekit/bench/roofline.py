"""Where the time of a layer goes: compute, memory bandwidth or overhead, against measured peaks.

The roofline model (Williams, Waterman, Patterson, "Roofline", Communications of the ACM, 2009): a layer
cannot be faster than the greater of macs / peak and bytes / bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from edgekit.engines.base import LayerTime

Bound = Literal["compute", "memory", "overhead", "unknown"]

OVERHEAD_SHARE = 0.10  # below this share of the roofline neither arithmetic nor traffic explains the time


@dataclass(frozen=True)
class Peaks:
    """What the machine can do at best on the threads in use.

    Attributes:
        int8_gmac_s: Multiply-accumulates of 8-bit operands, 10^9 a second.
        fp32_gmac_s: The same for float32.
        read_gb_s: Bytes read from memory, 10^9 a second.
    """

    int8_gmac_s: float
    fp32_gmac_s: float
    read_gb_s: float


@dataclass(frozen=True)
class LayerBound:
    """One layer against the roofline.

    Attributes:
        layer: The measurement.
        compute_us: Least time for its arithmetic.
        memory_us: Least time for its traffic.
        roofline_share: The greater of both over the measured time, 0..1; above 1 for data that came from the caches,
            since bytes are held against memory, and where peaks were measured too low.
        bound: What it waits for.
    """

    layer: LayerTime
    compute_us: float
    memory_us: float
    roofline_share: float
    bound: Bound


def short_name(name: str) -> str:
    """Name of a fused layer for tables: its first part, and how many more it holds."""
    first, *others = name.split("+")
    return f"{first} +{len(others)}" if others else first


def is_float(layer: LayerTime) -> bool:
    """Whether a layer computes in float32, by the name of its operator or kernel."""
    return "f32" in layer.op or "f32" in layer.kernel


def classify(layer: LayerTime, peaks: Peaks) -> LayerBound:
    """Compares a layer with the roofline.

    Args:
        layer: The measurement.
        peaks: Of the machine, on as many threads as the measurement used.

    Returns:
        Its bound; unknown when neither its arithmetic nor its traffic is known.
    """
    peak = peaks.fp32_gmac_s if is_float(layer) else peaks.int8_gmac_s
    compute_us = layer.macs / peak / 1e3 if peak > 0 else 0.0
    memory_us = layer.bytes_moved / peaks.read_gb_s / 1e3 if peaks.read_gb_s > 0 else 0.0
    least_us = max(compute_us, memory_us)
    share = least_us / layer.time_us if layer.time_us > 0 else 0.0
    bound: Bound
    if least_us == 0:
        bound = "unknown"
    elif share < OVERHEAD_SHARE:
        bound = "overhead"
    else:
        bound = "compute" if compute_us >= memory_us else "memory"
    return LayerBound(layer, compute_us, memory_us, share, bound)
