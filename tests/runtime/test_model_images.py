"""ek.load(...)(image) and .stream(...): from a package to results, through a real engine and the simulated one."""

import numpy as np
import pytest
from builders.packages import means_package

import edgekit as ek
from edgekit.errors import UsageError
from edgekit.vision.frame import Frame


@pytest.fixture
def package(tmp_path):
    return means_package(tmp_path / "means.ekpkg")


def solid(channel, size=(30, 40)):
    image = np.zeros((*size, 3), np.uint8)
    image[:, :, channel] = 255
    return image


def test_one_image(package):
    with ek.load(package, engine="onnxruntime") as model:
        for channel, name in enumerate(("red", "green", "blue")):
            result = model(solid(channel))
            assert result.labels == [name]
            assert result.confidence[0] == pytest.approx(1.0, abs=1e-6)
            assert not result.simulated
            bgr = Frame.from_array(solid(2 - channel), color="bgr")
            assert model(bgr).labels == [name]


def test_a_stream_of_images(package):
    pictures = [solid(n % 3, (20 + n, 50)) for n in range(30)]
    with ek.load(package, engine="onnxruntime") as model:
        with model.stream(pictures) as stream:
            got = [(r.frame_id, r.labels[0], r.transform.source_hw) for r in stream]
        assert got == [(n, ("red", "green", "blue")[n % 3], (20 + n, 50)) for n in range(30)]
        with model.stream(pictures, slots=3, results=1) as stream:  # the session came back
            assert next(stream).frame_id == 0
        with pytest.raises(UsageError, match="no such stream option"):
            model.stream(pictures, slotz=3)


def test_simulated_results_are_marked(package):
    with ek.load(package, engine="simulated") as model:
        assert model(solid(0)).simulated
        with model.stream([solid(0)]) as stream:
            assert [r.simulated for r in stream] == [True]
