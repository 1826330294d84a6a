"""What a pass is, and how passes are run: logged, checked against the float reference, each can be left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from edgekit.converters.contracts import Array, Progress
from edgekit.converters.float_reference import FloatReference
from edgekit.converters.passes.graph_edit import all_nodes, forget_names
from edgekit.errors import InternalError, UsageError

_ROUNDING_FACTOR = 32.0
_LARGEST_LIMIT = 1e-2
# Outputs below this, such as a sigmoid far from its step, differ by half between two orders of summation.
_LEAST_SCALE = 1e-4


@dataclass
class PassContext:
    """What passes may need besides the model.

    Attributes:
        fold_limit_bytes: Most bytes that folding one node may add.
        notes: Lines for the user; passes append.
    """

    fold_limit_bytes: int = 1 << 20
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Pass:
    """One rewriting of the graph that keeps its meaning.

    Attributes:
        name: Name for --skip-pass and the report.
        what: What it does, in one line.
        apply: Edits the model in place and returns the number of changes.
        requires: Whether it makes sense for a model; it is passed over otherwise.
        tolerance: Most that outputs may move, relative to the output's largest magnitude.
        required: Later stages rest on it, so it can't be skipped.
    """

    name: str
    what: str
    apply: Callable[[ir.Model, PassContext], int]
    requires: Callable[[ir.Model], bool] = lambda model: True
    tolerance: float = 1e-4
    required: bool = False


@dataclass(frozen=True)
class PassRecord:
    """What one pass did.

    Attributes:
        name: Of the pass.
        changes: Number of rewritings.
        nodes_before, nodes_after: Nodes, sub-graphs included.
        max_error: Largest difference from the float reference relative to the output's largest magnitude; None when
            nothing changed or nothing was there to check with.
        seconds: Time, checking included.
        skipped: Left out by the user.
    """

    name: str
    changes: int
    nodes_before: int
    nodes_after: int
    max_error: float | None
    seconds: float
    skipped: bool = False


class NumericGate:
    """Compares a model with the float reference on samples.

    How far rounding alone moves the outputs is measured first: the reference is run again on inputs moved by one unit
    in the last place. Deep or saturated nets (a sigmoid near 0) amplify that, and a pass may move outputs as much.

    Args:
        reference: The model before any pass.
        samples: Feeds, each for one run.
    """

    def __init__(self, reference: FloatReference, samples: Sequence[Mapping[str, Array]]) -> None:
        self._samples = list(samples)
        self._expected = [reference.run(sample) for sample in self._samples]
        moved = [reference.run(_moved_by_one_ulp(sample)) for sample in self._samples]
        self.rounding = max(map(_largest_error, self._expected, moved), default=0.0)

    @property
    def finite(self) -> bool:
        """Whether every value that the reference gave is a finite number."""
        arrays = [array for outputs in self._expected for array in outputs.values()]
        return all(bool(np.isfinite(a).all()) for a in arrays if np.issubdtype(a.dtype, np.floating))

    def limit(self, tolerance: float) -> float:
        """Returns the largest error to accept: the tolerance, or more where rounding alone moves the outputs more."""
        return max(tolerance, min(_ROUNDING_FACTOR * self.rounding, _LARGEST_LIMIT))

    def error_of(self, model: ir.Model) -> float:
        """Returns the largest difference of any output, relative to that output's largest magnitude.

        Whole-number outputs count the share of elements that differ; inf where shapes or NaNs differ.
        """
        candidate = FloatReference(model)
        runs = (candidate.run(sample) for sample in self._samples)
        return max(map(_largest_error, self._expected, runs), default=0.0)


def _moved_by_one_ulp(sample: Mapping[str, Array]) -> dict[str, Array]:
    def moved(array: Array) -> Array:
        if not np.issubdtype(array.dtype, np.floating):
            return array
        up = np.arange(array.size).reshape(array.shape) % 2 == 0
        return np.nextafter(array, np.where(up, np.inf, -np.inf).astype(array.dtype))

    return {name: moved(array) for name, array in sample.items()}


def _largest_error(expected: Mapping[str, Array], got: Mapping[str, Array]) -> float:
    errors = [relative_error(array, got[name]) if name in got else float("inf") for name, array in expected.items()]
    return max(errors, default=0.0)


def relative_error(reference: Array, candidate: Array) -> float:
    """Largest |reference - candidate| over the largest |reference|; for integers the share of unequal elements."""
    if reference.shape != candidate.shape:
        return float("inf")
    if reference.size == 0:
        return 0.0
    if not np.issubdtype(reference.dtype, np.floating):
        return float(np.mean(reference != candidate))
    a, b = reference.astype(np.float64), candidate.astype(np.float64)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    largest = float(np.abs(a[finite]).max())
    return float(np.abs(a[finite] - b[finite]).max()) / max(largest, _LEAST_SCALE)


def run_passes(
    model: ir.Model,
    passes: Sequence[Pass],
    gate: NumericGate | None,
    context: PassContext,
    skip: Collection[str] = (),
    progress: Progress | None = None,
) -> list[PassRecord]:
    """Runs passes in order, in place.

    Args:
        model: The model; edited.
        passes: In the order to run.
        gate: Check after each pass that changed something; None runs unchecked.
        context: Shared by all passes.
        skip: Names of passes to leave out.
        progress: Called after each pass.

    Returns:
        One record a pass.

    Raises:
        UsageError: skip names no pass, or one that can't be skipped.
        InternalError: A pass changed the outputs; the message names it.
    """
    check_skippable(passes, skip)
    records = []
    for index, graph_pass in enumerate(passes):
        records.append(_run_one(model, graph_pass, gate, context, graph_pass.name in skip))
        if progress is not None:
            progress("passes", (index + 1) / len(passes))
    return records


def check_skippable(passes: Sequence[Pass], skip: Collection[str]) -> None:
    """Checks the names given to --skip-pass.

    Raises:
        UsageError: A name is unknown, or the pass can't be skipped.
    """
    known = {p.name: p for p in passes}
    for name in skip:
        if name not in known:
            raise UsageError("unknown pass", where="--skip-pass", got=name, expected=", ".join(known))
        if known[name].required:
            raise UsageError("later stages rest on this pass", where="--skip-pass", got=name)


def _run_one(
    model: ir.Model, graph_pass: Pass, gate: NumericGate | None, context: PassContext, skipped: bool
) -> PassRecord:
    start = time.monotonic()
    before = len(all_nodes(model))
    if skipped or not graph_pass.requires(model):
        return PassRecord(graph_pass.name, 0, before, before, None, 0.0, skipped)
    forget_names(model)
    changes = graph_pass.apply(model, context)
    error = gate.error_of(model) if gate is not None and changes else None
    limit = graph_pass.tolerance if gate is None else gate.limit(graph_pass.tolerance)
    if error is not None and not error <= limit:
        raise InternalError(
            f"pass {graph_pass.name} changed the model's results",
            got=f"relative error {error:.3g}",
            expected=f"at most {limit:.3g}",
            hint=f"convert with --skip-pass {graph_pass.name} and report it",
        )
    return PassRecord(graph_pass.name, changes, before, len(all_nodes(model)), error, time.monotonic() - start)
