"""The accuracy gate: what a conversion must reach, or nothing is written and the exit code is 3."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgekit.converters.verify.accuracy import PartAccuracy
from edgekit.converters.verify.signal import FLAT
from edgekit.errors import GateError


class Floor(msgspec.Struct, frozen=True):
    """The least that each part of the outputs must reach.

    Attributes:
        sqnr_db: Over all held-out samples.
        cosine: Likewise.
    """

    sqnr_db: float
    cosine: float


FLOORS = {"fp32": Floor(30.0, 0.999), "int8": Floor(8.0, 0.93)}
"""Defaults by precision. In float only the order of sums differs, which a deep net with a saturated output can amplify
to some 40 dB. The INT8 floors let through what still works and stop what is broken: an output that one shared scale has
wiped out has 0 dB."""


def is_flat(part: PartAccuracy) -> bool:
    """Tells that the float model gives nothing to judge a part by; it has to stay within ten times as much."""
    return max(abs(part.reference_min), abs(part.reference_max)) <= FLAT


def check_gate(
    engine: str,
    parts: Sequence[PartAccuracy],
    agreement: float | None,
    precision: str,
    max_drop: float | None,
) -> str | None:
    """Tells whether an engine's outputs are good enough.

    Args:
        engine: Name for the message.
        parts: Its figures.
        agreement: Task agreement with the float model, 0..100.
        precision: fp32 or int8.
        max_drop: Largest loss of agreement in points; None applies the default floors of each part.

    Returns:
        None when it passes, else the reason in one line.
    """
    if max_drop is not None:
        if agreement is None:
            return f"{engine}: --max-drop can't be judged: the float model finds nothing on any held-out sample"
        drop = 100.0 - agreement
        if drop > max_drop:
            found = f"{engine} agrees with the float model in {agreement:.2f} of 100"
            return f"{found}, a drop of {drop:.2f}; allowed {max_drop:g}"
        return None
    floor = FLOORS[precision]
    for part in parts:
        if is_flat(part):
            if part.max_abs > 10 * FLAT:
                return f"{engine}: output {part.name} is off by {part.max_abs:.3g} where the float model gives zeros"
            continue
        if part.sqnr_db < floor.sqnr_db or part.cosine < floor.cosine:
            return (
                f"{engine}: output {part.name} has SQNR {part.sqnr_db:.1f} dB and cosine {part.cosine:.4f} on "
                f"{part.samples} samples; at least {floor.sqnr_db:g} dB and {floor.cosine:g} are asked"
            )
    return None


def refuse(reason: str) -> GateError:
    """Makes the error for a missed gate."""
    return GateError(
        "the conversion misses its accuracy gate; nothing was written",
        got=reason,
        hint="try --precision auto, more calibration samples, --keep-float LAYER, or a larger --max-drop",
    )
