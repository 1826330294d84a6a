"""Finds out on this device in which way each layer of a native package runs fastest.

Candidates are whole sessions, in which every layer runs in its k-th way; they take turns, so that what disturbs the
machine disturbs all of them, and each layer is timed where it stands, between its neighbours. A layer leaves its
default only for a gain beyond the noise, and the choices together only count if the network as a whole gains, measured
anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgekit.engines.base import Array, Session
from edgekit.engines.native import NativeModel
from edgekit.engines.tuning import Alternatives, LayerChoice

Choices = tuple[LayerChoice, ...]
Compile = Callable[[Choices], NativeModel]

LEAST_TURNS, MOST_TURNS = 9, 400
NOISE_ERRORS = 3.0  # standard errors of a median difference that count as noise
LEAST_LAYER_GAIN, LEAST_GAIN = 0.02, 0.005  # shares of the time; less is not worth a file
# The standard error of a median is 1.25 times that of a mean, and 1.48 times the median absolute deviation is sigma.
_MEDIAN_ERROR = 1.2533 * 1.4826


@dataclass(frozen=True)
class BucketTuning:
    """What was found for one shape bucket.

    Attributes:
        bucket: Its index.
        choices: Layers that would run otherwise than by themselves.
        default_ms, tuned_ms: Median latencies, in turns.
        gain_ms: What the choices gain, as compare() tells it; never more than the medians differ.
        noise_ms: What the gain has to exceed.
    """

    bucket: int
    choices: Choices
    default_ms: float
    tuned_ms: float
    gain_ms: float
    noise_ms: float

    @property
    def kept(self) -> bool:
        """Whether the choices are worth keeping."""
        return self.gain_ms > self.noise_ms


def tune(
    compile_with: Compile, feeds: Sequence[Mapping[str, Array]], threads: int, seconds: float
) -> list[BucketTuning]:
    """Measures the ways to run each layer of each shape bucket.

    Args:
        compile_with: Makes a model whose layers run as they are told; models are closed here.
        feeds: Inputs by bucket.
        threads: Threads within an inference.
        seconds: About how long each of the three measurements of a bucket takes.

    Returns:
        One entry a bucket.
    """
    return [_tune_bucket(compile_with, bucket, each, threads, seconds) for bucket, each in enumerate(feeds)]


def _tune_bucket(
    compile_with: Compile, bucket: int, feeds: Mapping[str, Array], threads: int, seconds: float
) -> BucketTuning:
    model = compile_with(())
    try:
        layers = model.alternatives(bucket)
    finally:
        model.close()
    most = max((len(layer.kernels) for layer in layers), default=1)
    ways = [[_in_way(layer, way) for layer in layers] for way in range(most)]
    chosen = _choose(compile_with, ways, feeds, seconds)
    if threads > 1:
        counts = [1 << bit for bit in range(threads.bit_length()) if 1 << bit < threads]
        splits = [[_in_tasks(each, tasks) for each in chosen] for tasks in (0, *counts, threads)]
        chosen = _choose(compile_with, splits, feeds, seconds)
    choices = tuple(each for each, layer in zip(chosen, layers, strict=True) if _differs(each, layer))
    return _check(compile_with, bucket, choices, feeds, seconds)


def _in_way(layer: Alternatives, way: int) -> LayerChoice:
    kernel = layer.kernels[way if way < len(layer.kernels) else 0]
    return LayerChoice(layer.part, layer.bucket, layer.index, layer.layer, kernel, 0)


def _in_tasks(choice: LayerChoice, tasks: int) -> LayerChoice:
    return LayerChoice(choice.part, choice.bucket, choice.index, choice.layer, choice.kernel, tasks)


def _differs(choice: LayerChoice, layer: Alternatives) -> bool:
    return choice.kernel != layer.kernels[0] or choice.tasks != 0


def _choose(
    compile_with: Compile, candidates: Sequence[list[LayerChoice]], feeds: Mapping[str, Array], seconds: float
) -> list[LayerChoice]:
    """Of candidates that say for each layer how it runs, the best for each; the first where none is beyond noise."""
    times = _in_turns(compile_with, [tuple(each) for each in candidates], feeds, seconds, _layer_times)
    chosen = list(candidates[0])
    for layer in range(len(chosen)):
        best_gain = 0.0
        for index, candidate in enumerate(candidates):
            if candidate[layer] == candidates[0][layer]:
                continue
            gain, noise = compare(times[0][:, layer], times[index][:, layer], LEAST_LAYER_GAIN)
            if gain > max(noise, best_gain):
                best_gain, chosen[layer] = gain, candidate[layer]
    return chosen


def _check(
    compile_with: Compile, bucket: int, choices: Choices, feeds: Mapping[str, Array], seconds: float
) -> BucketTuning:
    """Holds the network with the choices against the one without."""
    if not choices:
        (default,) = _in_turns(compile_with, [()], feeds, 0.0, _whole_time)
        return BucketTuning(bucket, (), float(np.median(default)), float(np.median(default)), 0.0, 0.0)
    default, tuned = (each[:, 0] for each in _in_turns(compile_with, [(), choices], feeds, seconds, _whole_time))
    gain, noise = compare(default, tuned, LEAST_GAIN)
    return BucketTuning(bucket, choices, float(np.median(default)), float(np.median(tuned)), gain, noise)


def compare(default: NDArray[np.float64], other: NDArray[np.float64], least_share: float) -> tuple[float, float]:
    """Compares two series of times that were measured in turns.

    Args:
        default: Times, one a turn.
        other: Those of the other way, in the same turns.
        least_share: Share of the default's time that a gain has to reach.

    Returns:
        What `other` gains, and what a gain must exceed to be more than noise. The gain is the median of the differences
        or the difference of the medians, whichever is less: where times leap, either alone may show what is not there.
    """
    differences = default - other
    middle = float(np.median(differences))
    error = _MEDIAN_ERROR * float(np.median(np.abs(differences - middle))) / len(differences) ** 0.5
    gain = min(middle, float(np.median(default) - np.median(other)))
    return gain, max(NOISE_ERRORS * error, least_share * float(np.median(default)))


def _layer_times(session: Session, feeds: Mapping[str, Array]) -> list[float]:
    return [layer.time_us for layer in session.profile(feeds)]


def _whole_time(session: Session, feeds: Mapping[str, Array]) -> list[float]:
    start = time.perf_counter()
    session.run(feeds)
    return [(time.perf_counter() - start) * 1e3]


def _in_turns(
    compile_with: Compile,
    candidates: Sequence[Choices],
    feeds: Mapping[str, Array],
    seconds: float,
    measure: Callable[[Session, Mapping[str, Array]], list[float]],
) -> list[NDArray[np.float64]]:
    """Times of each candidate, [turns, values]; each run follows one of the same session that does not count."""
    models = [compile_with(choices) for choices in candidates]
    times: list[list[list[float]]] = [[] for _ in models]
    try:
        sessions = [model.create_session() for model in models]
        end = time.perf_counter() + seconds
        turn = 0
        while turn < LEAST_TURNS or (turn < MOST_TURNS and time.perf_counter() < end):
            for offset in range(len(sessions)):
                index = (turn + offset) % len(sessions)  # no candidate always follows the same other one
                sessions[index].run(feeds)
                times[index].append(measure(sessions[index], feeds))
            turn += 1
    finally:
        for model in models:
            model.close()
    return [np.asarray(each) for each in times]
