"""`edgekit tune`: what counts as a gain, which candidate a layer takes, and when the network has the last word."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from edgekit.bench import tune as tuning
from edgekit.engines.base import LayerTime
from edgekit.engines.tuning import Alternatives, LayerChoice

LAYERS = [Alternatives("m", 0, 0, "a", ("k", "k wide")), Alternatives("m", 0, 1, "b", ("k",))]


def test_a_gain_has_to_exceed_the_noise_and_a_share_of_the_time():
    random = np.random.default_rng(1)
    default = 100 + random.normal(0, 1, 50)
    gain, noise = tuning.compare(default, default - 5 + random.normal(0, 1, 50), 0.02)
    assert gain > noise
    gain, noise = tuning.compare(default, default - 0.1 + random.normal(0, 5, 50), 0.0)
    assert gain < noise
    gain, noise = tuning.compare(default, default - 1, 0.02)  # sure, but too little
    assert gain == pytest.approx(1) and noise == pytest.approx(0.02 * np.median(default))


def noisy_series():
    """Pairs of series as busy machines give them: steady, drifting, with outliers, and leaping between two levels."""
    random = np.random.default_rng(3)
    for trial in range(400):
        turns = int(random.integers(tuning.LEAST_TURNS, 60))
        default, other = 50 + random.normal(0, random.choice([0.1, 5.0]), (2, turns))
        if trial % 4 == 1:
            default, other = default + np.linspace(0, 30, turns), other + np.linspace(0, 30, turns)
        elif trial % 4 == 2:
            other[: turns // 3] += 40
        elif trial % 4 == 3:
            levels = random.choice([0.0, 12.0], (2, turns))
            default, other = default + levels[0], other + levels[1]
        yield default, other - random.choice([0.0, 1.0, 10.0])


@pytest.mark.parametrize("least_share", [tuning.LEAST_LAYER_GAIN, tuning.LEAST_GAIN])
def test_what_counts_as_a_gain_shows_in_the_medians_too(least_share):
    counted = 0
    for default, other in noisy_series():
        gain, noise = tuning.compare(default, other, least_share)
        if gain > noise:
            assert np.median(default) - np.median(other) > noise > 0
            assert np.median(default - other) > noise
            counted += 1
    assert counted > 50


def test_times_that_leap_are_no_gain():
    """Differences have a large median here, and the medians hardly differ."""
    default = np.array([40, 40, 40, 40, 49, 60, 60, 60, 60], float)
    other = np.array([32, 32, 32, 48, 48, 52, 52, 52, 52], float)
    assert np.median(default - other) == 8
    gain, _ = tuning.compare(default, other, 0.0)
    assert gain == 1


def test_what_disturbs_both_in_the_same_turn_is_no_noise():
    drift = np.linspace(100, 200, 40)
    gain, noise = tuning.compare(drift, drift - 10, 0.02)
    assert gain == pytest.approx(10) and gain > noise


class FakeModel:
    """Layers that take the times of a table; the network takes their sum and what the table says besides."""

    def __init__(self, choices: Sequence[LayerChoice], times: Mapping[tuple[int, str, int], float], clock: list[float]):
        self.chosen = {choice.index: (choice.kernel, choice.tasks) for choice in choices}
        self.times, self.clock, self.is_open = times, clock, True

    def alternatives(self, bucket: int) -> list[Alternatives]:
        assert bucket == 0
        return LAYERS

    def create_session(self) -> "FakeModel":
        return self

    def profile(self, feeds: object) -> list[LayerTime]:
        ways = [self.chosen.get(index, (layer.kernels[0], 0)) for index, layer in enumerate(LAYERS)]
        return [LayerTime(LAYERS[i].layer, "op", way[0], self.times[i, way[0], way[1]]) for i, way in enumerate(ways)]

    def run(self, feeds: object) -> None:
        extra = self.times.get((-1, "", 0), 0.0) if self.chosen else 0.0
        self.clock[0] += (sum(layer.time_us for layer in self.profile(feeds)) + extra) / 1e6

    def close(self) -> None:
        self.is_open = False


def run_tuner(monkeypatch, times, threads=2):
    clock, models = [0.0], []

    def compile_with(choices):
        models.append(FakeModel(choices, times, clock))
        return models[-1]

    monkeypatch.setattr(tuning.time, "perf_counter", lambda: clock[0])
    (found,) = tuning.tune(compile_with, [{}], threads, 0.0)
    assert not any(model.is_open for model in models)
    return found


TIMES = {
    (0, "k", 0): 100.0, (0, "k wide", 0): 60.0, (1, "k", 0): 50.0,
    (0, "k wide", 1): 80.0, (0, "k wide", 2): 60.0, (1, "k", 1): 20.0, (1, "k", 2): 50.0,
}  # fmt: skip


def test_each_layer_takes_its_fastest_kernel_and_number_of_tasks(monkeypatch):
    found = run_tuner(monkeypatch, TIMES)
    assert found.kept and found.gain_ms > found.noise_ms
    assert [(c.layer, c.kernel, c.tasks) for c in found.choices] == [("a", "k wide", 0), ("b", "k", 1)]
    assert (found.default_ms, found.tuned_ms) == (pytest.approx(0.15), pytest.approx(0.08))


def test_one_thread_leaves_no_number_of_tasks_to_choose(monkeypatch):
    found = run_tuner(monkeypatch, TIMES, threads=1)
    assert [(c.layer, c.kernel, c.tasks) for c in found.choices] == [("a", "k wide", 0)]


def test_a_network_that_does_not_gain_keeps_nothing(monkeypatch):
    found = run_tuner(monkeypatch, TIMES | {(-1, "", 0): 70.0})
    assert found.choices and not found.kept


def test_layers_that_gain_nothing_stay_as_they_are(monkeypatch):
    same = {(index, kernel, tasks): 10.0 for index in (0, 1) for kernel in ("k", "k wide") for tasks in (0, 1, 2)}
    found = run_tuner(monkeypatch, same)
    assert found.choices == () and not found.kept
