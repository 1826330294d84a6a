"""Do the held-out samples give outputs to judge an engine by? A picture without text has none for a text detector."""

from __future__ import annotations

import numpy as np

from edgekit.converters.calibration_data import CalibrationData
from edgekit.converters.contracts import Array
from edgekit.converters.verify.accuracy import Run
from edgekit.errors import GateError

FLAT = 1e-4
"""What stays within this magnitude, such as a sigmoid far from its step, carries no signal to be judged by."""


def most_telling_sample(reference: Run, samples: CalibrationData) -> tuple[int, bool]:
    """Finds the sample for the package's self-test: the first that moves all outputs, else the one that moves most.

    Args:
        reference: The float model.
        samples: Held out; at least one.

    Returns:
        Its place among the samples, and whether it moves any output.
    """
    best, most = 0, 0
    for position, feeds in enumerate(samples):
        outputs = reference(feeds)
        moved = sum(map(_moves, outputs.values()))
        if moved > most:
            best, most = position, moved
        if most == len(outputs):
            break
    return best, most > 0


def _moves(output: Array) -> bool:
    values = output[np.isfinite(output)]
    if values.size == 0 or float(np.abs(values).max()) <= FLAT:
        return False
    return values.size == 1 or float(values.max()) - float(values.min()) > FLAT


def refuse_flat() -> GateError:
    """Makes the error for samples that prove nothing."""
    return GateError(
        "no held-out sample gives the float model an output to judge by; nothing was written",
        where="--calib",
        got="all outputs constant",
        hint="give more samples, and such that show what the model looks for",
    )
