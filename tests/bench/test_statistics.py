import numpy as np
import pytest

from edgekit.bench.statistics import samples_needed, summarize


@pytest.mark.parametrize(("percentile", "count"), [(50.0, 11), (90.0, 64), (95.0, 130), (99.0, 662), (99.9, 6636)])
def test_sample_counts_are_those_of_early_stopping(percentile, count):
    assert samples_needed(percentile) == count


def test_percentiles_appear_with_enough_samples_and_not_before():
    few = summarize(np.linspace(1, 2, 63))
    assert few.percentiles_ms[50.0] is not None
    assert few.percentiles_ms[90.0] is None
    assert few.text(90.0) == "n < 64"
    assert summarize(np.linspace(1, 2, 64)).percentiles_ms[90.0] is not None


def test_percentiles_are_sample_values_in_order():
    values = np.random.default_rng(1).permutation(np.arange(1.0, 1001.0))
    summary = summarize(values)
    assert summary.percentiles_ms[50.0] == 500.0
    assert summary.percentiles_ms[90.0] == 900.0
    assert summary.percentiles_ms[99.0] == 990.0
    assert summary.max_ms == 1000.0
    assert summary.mad_ms == 250.0


def test_mad_ignores_an_outlier():
    assert summarize([1.0] * 20 + [100.0]).mad_ms == 0.0
