"""Measures one package on one engine: the scenarios that were asked for, and its layers against the roofline."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgekit.bench.diagnosis import Finding, diagnose
from edgekit.bench.inputs import synthetic_inputs
from edgekit.bench.memory import peak_rss_bytes
from edgekit.bench.report import Row
from edgekit.bench.roofline import LayerBound, Peaks, classify
from edgekit.bench.scenarios import Measurement, cold, single_stream, throughput
from edgekit.engines.base import Array, LayerTime
from edgekit.errors import UsageError
from edgekit.runtime.governor import default_threads

if TYPE_CHECKING:
    from edgekit.runtime.model import Model

SCENARIOS = ("cold", "single-stream", "throughput")
PROFILE_RUNS = 15


@dataclass(frozen=True)
class BenchOptions:
    """What to measure.

    Attributes:
        scenarios: Of SCENARIOS.
        seconds: Length of each measurement.
        repetitions: How often each is repeated.
        sessions: Sessions of the throughput scenario; 0: one a usable CPU.
        bucket: Index of the shape bucket to measure.
        layers: Whether to measure each layer.
    """

    scenarios: tuple[str, ...] = ("single-stream",)
    seconds: float = 3.0
    repetitions: int = 1
    sessions: int = 0
    bucket: int = 0
    layers: bool = False

    def thread_counts(self, threads: int) -> set[int]:
        """Numbers of threads within an inference that the package runs with; throughput has one whatever is given."""
        counts = {1 if scenario == "throughput" else threads for scenario in self.scenarios}
        return counts | {threads} if self.layers else counts


@dataclass(frozen=True)
class BenchResult:
    """What was measured.

    Attributes:
        rows: One a scenario and repetition.
        cold: Numbers of the cold start, milliseconds and bytes; empty when not asked for.
        layers: Layers against the roofline; empty when not asked for or unknown to the engine.
        findings: Why it is not faster.
    """

    rows: tuple[Row, ...]
    cold: dict[str, float] = field(default_factory=dict)
    layers: tuple[LayerBound, ...] = ()
    findings: tuple[Finding, ...] = ()


def bench(
    path: Path,
    open_model: Callable[[int], Model],
    threads: int,
    options: BenchOptions,
    peaks: Callable[[], Peaks] | None = None,
) -> BenchResult:
    """Runs the scenarios.

    Args:
        path: The package.
        open_model: Opens it with a number of threads; called once a scenario, results are closed here.
        threads: Threads within an inference (throughput uses one).
        options: What to measure.
        peaks: Measures the machine's peaks; only called for layers.

    Returns:
        The measurements.

    Raises:
        UsageError: An unknown scenario, or a bucket that does not exist.
    """
    if unknown := set(options.scenarios) - set(SCENARIOS):
        raise UsageError("unknown scenario", got=sorted(unknown)[0], expected=", ".join(SCENARIOS))
    rows: list[Row] = []
    cold_numbers: dict[str, float] = {}
    layers: tuple[LayerBound, ...] = ()
    with open_model(threads) as model:
        feeds = bench_inputs(model, options.bucket)
        if "cold" in options.scenarios:
            cold_numbers = _cold(path, model.engine_name, threads, feeds)
        if "single-stream" in options.scenarios:
            rows += [
                _row(path, model, single_stream(model.compiled, feeds, options.seconds), index)
                for index in range(options.repetitions)
            ]
        if options.layers and peaks is not None:
            layers = measure_layers(model, feeds, peaks())
    if "throughput" in options.scenarios:
        with open_model(1) as model:
            sessions = options.sessions or default_threads()
            rows += [
                _row(path, model, throughput(model.compiled, feeds, sessions, options.seconds), index)
                for index in range(options.repetitions)
            ]
    return BenchResult(tuple(rows), cold_numbers, layers, tuple(diagnose(layers, {})))


def bench_inputs(model: Model, bucket: int) -> dict[str, Array]:
    """Inputs of a bucket.

    Raises:
        UsageError: The package has no such bucket.
    """
    buckets = model.manifest.buckets
    if not 0 <= bucket < max(len(buckets), 1):
        raise UsageError("no such shape bucket", got=bucket, expected=f"0 to {max(len(buckets), 1) - 1}")
    return synthetic_inputs(model.manifest.inputs, buckets[bucket] if buckets else {})


def measure_layers(model: Model, feeds: dict[str, Array], peaks: Peaks) -> tuple[LayerBound, ...]:
    """Median time of each layer over several runs, against the roofline.

    Args:
        model: The model.
        feeds: Inputs.
        peaks: Of the machine.

    Returns:
        Layers in the order they run; empty where the engine can't tell.
    """
    session = model.compiled.create_session()
    try:
        session.run(feeds)
        runs = [session.profile(feeds) for _ in range(PROFILE_RUNS)]
    finally:
        session.close()
    return tuple(classify(_median(column), peaks) for column in zip(*runs, strict=True))


def _median(same: Sequence[LayerTime]) -> LayerTime:
    first = same[0]
    time_us = float(np.median([entry.time_us for entry in same]))
    return LayerTime(first.name, first.op, first.kernel, time_us, first.macs, first.bytes_moved)


def _row(path: Path, model: Model, measurement: Measurement, index: int) -> Row:
    memory = dict(model.compiled.memory_bytes()) | {"peak_rss": peak_rss_bytes()}
    return Row(path.stem, model.engine_name, model.compiled.isa, model.threads, measurement, index, memory_bytes=memory)


def _cold(path: Path, engine: str, threads: int, feeds: dict[str, Array]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="edgekit-bench-") as folder:
        inputs = Path(folder) / "inputs.npz"
        np.savez(inputs, **feeds)  # type: ignore[arg-type]
        return cold(path, engine, threads, inputs)
