import numpy as np
import pytest

from edgekit.converters.quantization.observers import BINS, TensorObserver
from edgekit.errors import CalibrationError


def test_ragged_samples_are_flattened():
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=length).astype(np.float32) for length in (5, 7, 9)]
    observer = TensorObserver("x")
    for sample in samples:
        observer.update(sample)
    everything = np.concatenate(samples)
    assert observer.minimum == everything.min()
    assert observer.maximum == everything.max()
    assert observer.bins()[1].sum() == everything.size


def test_histogram_grows_without_losing_a_value():
    observer = TensorObserver("x")
    for magnitude in (0.0, 1e-6, 1.0, 3000.0, 0.5):
        observer.update(np.full(10, magnitude, np.float32))
    values, counts = observer.bins()
    assert counts.sum() == 50
    assert observer.histogram.counts.shape == (BINS,)
    assert abs(values[-1] - 3000.0) <= 2 * observer.histogram.limit / BINS
    assert counts[-1] == 10


def test_histogram_agrees_with_numpy_after_doubling():
    rng = np.random.default_rng(1)
    observer = TensorObserver("x")
    samples = [(scale * rng.normal(size=1000)).astype(np.float32) for scale in (0.1, 1.0, 30.0)]
    for sample in samples:
        observer.update(sample)
    limit = observer.histogram.limit
    edges = np.linspace(-limit, limit, BINS + 1)
    expected = np.histogram(np.concatenate(samples).astype(np.float64), edges)[0]
    assert np.abs(expected - observer.histogram.counts).sum() <= 4  # values on an edge, in float32


def test_percentile_of_uniform_values():
    observer = TensorObserver("x")
    observer.update(np.linspace(-1, 1, 100_001, dtype=np.float32))
    low, high = observer.percentile(90.0)
    assert low == pytest.approx(-0.9, abs=1e-3)
    assert high == pytest.approx(0.9, abs=1e-3)


def test_channel_means_over_samples_of_different_width():
    rng = np.random.default_rng(2)
    samples = [rng.normal(size=(1, 3, 4, width)).astype(np.float32) for width in (5, 9)]
    observer = TensorObserver("x", channel_axis=1)
    for sample in samples:
        observer.update(sample)
    expected = np.concatenate(samples, axis=3).mean(axis=(0, 2, 3))
    np.testing.assert_allclose(observer.channel_mean, expected, rtol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_by_name(bad):
    observer = TensorObserver("layer7")
    with pytest.raises(CalibrationError, match="layer7"):
        observer.update(np.array([0.0, bad], np.float32))
