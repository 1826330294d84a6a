"""How a model is measured: cold, single-stream and throughput."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgekit.engines.base import Array, CompiledModel, Session
from edgekit.errors import EngineError

WARM_WINDOW = 5  # inferences a window
WARM_AGREEMENT = 0.05  # three windows whose medians differ by less count as warm
WARM_CAP_S = 3.0
COLD_PROCESSES = 5


@dataclass(frozen=True)
class Measurement:
    """What one scenario measured.

    Attributes:
        scenario: single-stream or throughput.
        latencies_ms: One entry an inference, in order; of all sessions together for throughput.
        wall_s: From the first measured inference to the end of the last.
        cpu_s: CPU seconds of this process meanwhile.
        sessions: Sessions that ran side by side.
        warmup_inferences: Inferences before, not counted; warm: whether three windows agreed before the cap.
        extra: Further numbers by name.
    """

    scenario: str
    latencies_ms: NDArray[np.float64]
    wall_s: float
    cpu_s: float
    sessions: int
    warmup_inferences: int
    warm: bool
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def per_second(self) -> float:
        """Inferences a second."""
        return len(self.latencies_ms) / self.wall_s


def warm_up(session: Session, feeds: Mapping[str, Array]) -> tuple[int, bool]:
    """Runs until three windows in a row have medians within 5 %, or three seconds have passed.

    Args:
        session: Session to warm.
        feeds: Inputs.

    Returns:
        Number of inferences, and whether the windows agreed.
    """
    medians: list[float] = []
    count, end = 0, time.perf_counter() + WARM_CAP_S
    while time.perf_counter() < end or len(medians) < 1:
        medians.append(float(np.median([_timed(session, feeds) for _ in range(WARM_WINDOW)])))
        count += WARM_WINDOW
        last = medians[-3:]
        if len(last) == 3 and max(last) - min(last) <= WARM_AGREEMENT * min(last):
            return count, True
    return count, False


def _timed(session: Session, feeds: Mapping[str, Array]) -> float:
    start = time.perf_counter()
    session.run(feeds)
    return (time.perf_counter() - start) * 1e3


def single_stream(compiled: CompiledModel, feeds: Mapping[str, Array], seconds: float) -> Measurement:
    """One inference after the other on one session.

    Args:
        compiled: The model.
        feeds: Inputs, used again and again.
        seconds: How long to measure, at least 11 inferences.

    Returns:
        The measurement.
    """
    session = compiled.create_session()
    try:
        count, warm = warm_up(session, feeds)
        latencies: list[float] = []
        cpu, start = time.process_time(), time.perf_counter()
        while time.perf_counter() < start + seconds or len(latencies) < 11:
            latencies.append(_timed(session, feeds))
        wall, used = time.perf_counter() - start, time.process_time() - cpu
    finally:
        session.close()
    return Measurement("single-stream", np.asarray(latencies), wall, used, 1, count, warm)


def throughput(compiled: CompiledModel, feeds: Mapping[str, Array], sessions: int, seconds: float) -> Measurement:
    """Several sessions side by side, each in a thread of its own.

    Args:
        compiled: The model, compiled for one thread an inference.
        feeds: Inputs, shared by all.
        sessions: How many.
        seconds: How long to measure.

    Returns:
        The measurement, over all sessions.

    Raises:
        EngineError: A session failed.
    """
    opened = [compiled.create_session() for _ in range(sessions)]
    latencies: list[list[float]] = [[] for _ in opened]
    failures: list[BaseException] = []
    barrier = threading.Barrier(sessions + 1)

    def work(index: int) -> None:
        try:
            barrier.wait()
            # By its own clock: under a real-time policy on a shared core a thread that only waits to be told never
            # lets the one that would tell it run.
            end = time.perf_counter() + seconds
            while time.perf_counter() < end or len(latencies[index]) < 3:
                latencies[index].append(_timed(opened[index], feeds))
        except BaseException as error:
            failures.append(error)

    try:
        count, warm = warm_up(opened[0], feeds)
        workers = [threading.Thread(target=work, args=(index,)) for index in range(sessions)]
        for worker in workers:
            worker.start()
        barrier.wait()
        cpu, start = time.process_time(), time.perf_counter()
        for worker in workers:
            worker.join()
        wall, used = time.perf_counter() - start, time.process_time() - cpu
    finally:
        for session in opened:
            session.close()
    if failures:
        raise EngineError("a session failed while measuring throughput", got=failures[0])
    return Measurement("throughput", np.concatenate(latencies), wall, used, sessions, count, warm)


def cold(path: Path, engine: str, threads: int, inputs: Path) -> dict[str, float]:
    """Import, load and first result in fresh processes.

    Args:
        path: The package.
        engine: Name of the engine.
        threads: Threads within an inference.
        inputs: .npz file with the inputs.

    Returns:
        Medians over five processes of import_ms, load_ms, run_ms (the first inference), first_result_ms (from the start
        of load to the first result) and peak_rss_bytes.

    Raises:
        EngineError: A process failed.
    """
    code = "import time; begin_s = time.perf_counter(); from edgekit.bench.cold import main; main(begin_s)"
    command = [sys.executable, "-c", code, str(path.resolve()), engine, str(threads), str(inputs)]
    runs: list[dict[str, float]] = []
    for _ in range(COLD_PROCESSES):
        # Not in the current folder: a checkout there would shadow the installed package.
        done = subprocess.run(command, cwd=inputs.parent, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise EngineError("the cold start failed", where=path, got=reason)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return {name: float(np.median([run[name] for run in runs])) for name in runs[0]}
