"""Runs every variant of a candidate package on this host and compares it with the float model."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekit.converters.calibration_data import CalibrationData
from edgekit.converters.contracts import Array, Progress
from edgekit.converters.verify.accuracy import Part, Run, compare
from edgekit.converters.verify.agreement import Agreement
from edgekit.converters.verify.gate import check_gate
from edgekit.converters.verify.report import EngineReport
from edgekit.engines.registry import get_engine
from edgekit.package.manifest import Variant
from edgekit.package.specs import PostprocessSpec
from edgekit.runtime.load import load


@dataclass(frozen=True)
class Yardstick:
    """What variants are measured with.

    Attributes:
        reference: The float model.
        samples: Held out.
        parts: How outputs are cut.
        postprocess: Task whose agreement is counted.
        precision: fp32 or int8: which floors apply.
        max_drop: See check_gate.
        golden: Place among the samples of the one for the package's self-test.
    """

    reference: Run
    samples: CalibrationData
    parts: Sequence[Part]
    postprocess: PostprocessSpec
    precision: str
    max_drop: float | None
    golden: int = 0


class TimedRun:
    """Keeps the time of each run, in milliseconds."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.times_ms: list[float] = []

    def __call__(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        """Runs and times."""
        start = time.perf_counter()
        outputs = self._run(feeds)
        self.times_ms.append((time.perf_counter() - start) * 1e3)
        return outputs

    def median_ms(self) -> float:
        """Median, the first run (which warms up) left out where there are more."""
        return statistics.median(self.times_ms[1:] or self.times_ms or [0.0])


class RememberedReference:
    """The float model's outputs on the held-out samples, computed once and kept while they are few.

    Args:
        run: The float model.
        samples: The held-out samples.
        limit_bytes: Most bytes of outputs kept; beyond, the model runs again.
    """

    def __init__(self, run: Run, samples: CalibrationData, limit_bytes: int = 256 << 20) -> None:
        self._timed = TimedRun(run)
        self._samples = samples
        self._kept: dict[int, Mapping[str, Array]] = {}
        self._free = limit_bytes
        self._position = 0

    def __call__(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        """Gives the outputs for the next sample; samples must come in order, round after round."""
        position = self._position
        self._position = (position + 1) % len(self._samples)
        if position in self._kept:
            return self._kept[position]
        outputs = self._timed(feeds)
        size = sum(array.nbytes for array in outputs.values())
        if size <= self._free:
            self._free -= size
            self._kept[position] = outputs
        return outputs

    def median_ms(self) -> float:
        """Median time of the float model."""
        return self._timed.median_ms()


def why_not_here(variant: Variant) -> str | None:
    """Tells why a variant can't run on this host; None when it can."""
    engine = get_engine(variant.engine)
    capabilities = engine.capabilities()
    return engine.supports(variant) if capabilities.available else capabilities.reason


@dataclass(frozen=True)
class Measured:
    """A variant's figures, and its outputs on the sample for the package's self-test."""

    report: EngineReport
    golden_outputs: Mapping[str, Array]


def measure_variant(path: Path, variant: Variant, size_bytes: int, yardstick: Yardstick) -> Measured:
    """Runs one variant of a package on the held-out samples.

    Args:
        path: The candidate package.
        variant: One of its variants, which this host can run.
        size_bytes: Of its members.
        yardstick: What to compare with.

    Raises:
        EngineError: The engine failed.
    """
    agreement = Agreement(yardstick.postprocess)
    golden: dict[str, Array] = {}
    position = itertools.count()

    def observe(expected: Mapping[str, Array], got: Mapping[str, Array]) -> None:
        agreement.observe(expected, got)
        if next(position) == yardstick.golden:
            golden.update(got)

    with load(path, variant.engine, variant=variant.name) as model:
        run = TimedRun(model.run)
        names = yardstick.samples.sample_names()
        parts = compare(yardstick.reference, run, yardstick.samples, names, yardstick.parts, observe)
        agreed = agreement.result(parts)
        missed = check_gate(variant.name, parts, agreed, yardstick.precision, yardstick.max_drop)
        report = EngineReport(
            variant=variant.name,
            engine=model.engine_name,
            measured_on=model.isa,
            samples=len(yardstick.samples),
            parts=parts,
            agreement=agreed,
            latency_ms=run.median_ms(),
            threads=model.threads,
            size_bytes=size_bytes,
            memory_bytes=dict(model.memory_bytes()),
            missed=missed or "",
        )
        return Measured(report, golden)


def report_progress(progress: Progress | None, stage: str) -> Callable[[float], None]:
    """Makes a function that reports the share of a stage; does nothing without a listener."""

    def report(share: float) -> None:
        if progress is not None:
            progress(stage, share)

    return report
