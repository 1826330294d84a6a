"""Calibration sources: images through the package's own transform, .npz in both forms, functions; bad data refused."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from edgekit.converters.calibration_data import CalibrationInputs, check_sample, open_calibration
from edgekit.errors import CalibrationError, MissingDependencyError
from edgekit.package.presets import PREPROCESS
from edgekit.package.specs import TensorSpec
from edgekit.vision.image_transform import prepare

PICTURE = TensorSpec("x", "float32", (1, 3, 16, 16), "nchw")
VECTOR = TensorSpec("x", "float32", (1, 4))
INPUTS = CalibrationInputs((PICTURE,), (), PREPROCESS["unit"])


def images(folder, good: int, bad: int = 0) -> None:
    rng = np.random.default_rng(0)
    for i in range(good):
        Image.fromarray(rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(folder / f"good{i:02}.png")
    for i in range(bad):
        (folder / f"bad{i:02}.jpg").write_bytes(b"no picture")


def test_images_go_through_the_runtimes_own_transform(tmp_path):
    images(tmp_path, 3)
    data = open_calibration(str(tmp_path), INPUTS, 300, 0)
    assert len(data) == 3
    expected, _ = prepare(tmp_path / "good01.png", PREPROCESS["unit"], PICTURE)
    assert np.array_equal(list(data)[1]["x"], expected)
    assert [np.array_equal(a["x"], b["x"]) for a, b in zip(data, data, strict=True)] == [True] * 3


def test_few_unreadable_images_are_named_and_skipped(tmp_path):
    images(tmp_path, 19, 1)
    data = open_calibration(str(tmp_path), INPUTS, 300, 0)
    assert len(data) == 19
    assert "bad00.jpg" in data.notes[0]
    assert "1 of 20" in data.notes[0]


def test_many_unreadable_images_are_refused(tmp_path):
    images(tmp_path, 10, 4)
    with pytest.raises(CalibrationError, match=r"4 of 14: bad00\.jpg.*at most 10%"):
        open_calibration(str(tmp_path), INPUTS, 300, 0)


def test_more_samples_than_wanted_are_drawn_by_the_seed(tmp_path):
    images(tmp_path, 12)
    first = open_calibration(str(tmp_path), INPUTS, 5, 1)
    assert first.indices == open_calibration(str(tmp_path), INPUTS, 5, 1).indices
    assert len(first) == 5
    assert first.indices != open_calibration(str(tmp_path), INPUTS, 5, 2).indices


def test_split_parts_without_overlap(tmp_path):
    images(tmp_path, 10)
    data = open_calibration(str(tmp_path), INPUTS, 300, 0)
    calibration, held_out = data.split(0.2, 64, 0)
    assert (len(calibration), len(held_out)) == (8, 2)
    assert sorted(calibration.indices + held_out.indices) == list(range(10))


def test_npz_folder_and_npz_with_a_sample_axis(tmp_path):
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    (tmp_path / "folder").mkdir()
    for i, row in enumerate(values):
        np.savez(tmp_path / "folder" / f"{i}.npz", x=row[None])
    np.savez_compressed(tmp_path / "flat.npz", x=values)
    np.savez(tmp_path / "batched.npz", x=values[:, None])
    inputs = CalibrationInputs((VECTOR,))
    for source in ("folder", "flat.npz", "batched.npz"):
        data = open_calibration(str(tmp_path / source), inputs, 300, 0)
        assert np.array_equal(np.concatenate([sample["x"] for sample in data]), values)


def test_function_is_called_once_and_its_samples_kept(tmp_path, monkeypatch):
    (tmp_path / "own_samples.py").write_text(
        "import numpy as np\ncalls = []\ndef make():\n    calls.append(1)\n"
        "    for i in range(1000):\n        yield {'x': np.random.rand(1, 4).astype(np.float32)}\n"
    )
    monkeypatch.chdir(tmp_path)
    data = open_calibration("own_samples:make", CalibrationInputs((VECTOR,)), 7, 0)
    assert len(data) == 7
    assert all(np.array_equal(a["x"], b["x"]) for a, b in zip(data, data, strict=True))
    import own_samples

    assert own_samples.calls == [1]


def test_function_that_fails_or_is_not_there(tmp_path, monkeypatch):
    (tmp_path / "failing_samples.py").write_text("def make():\n    raise RuntimeError('no\\ndisk')\n    yield\n")
    monkeypatch.chdir(tmp_path)
    inputs = CalibrationInputs((VECTOR,))
    with pytest.raises(CalibrationError, match="no disk"):
        open_calibration("failing_samples:make", inputs, 7, 0)
    with pytest.raises(CalibrationError, match="other"):
        open_calibration("failing_samples:other", inputs, 7, 0)
    with pytest.raises(MissingDependencyError, match="no_such_module"):
        open_calibration("no_such_module:make", inputs, 7, 0)


@pytest.mark.parametrize(
    "sample, word",
    [
        ({"y": np.zeros((1, 4), np.float32)}, "wrong inputs"),
        ({"x": np.zeros((1, 5), np.float32)}, "1x5"),
        ({"x": np.zeros((2, 4), np.float32)}, "2x4"),
        ({"x": np.zeros((1, 4), np.uint8)}, "uint8"),
        ({"x": np.full((1, 4), np.nan, np.float32)}, "NaN"),
        (3, "int"),
    ],
)
def test_bad_samples_are_refused(sample, word):
    with pytest.raises(CalibrationError, match=word):
        check_sample(sample, CalibrationInputs((VECTOR,)), "here")


def test_a_sample_must_fit_one_bucket():
    spec = TensorSpec("x", "float32", (1, "width"))
    inputs = CalibrationInputs((spec,), ({"width": 4}, {"width": 8}))
    for width in (4, 8):
        assert check_sample({"x": np.zeros((1, width), np.float32)}, inputs, "here")["x"].shape == (1, width)
    with pytest.raises(CalibrationError, match="1x6"):
        check_sample({"x": np.zeros((1, 6), np.float32)}, inputs, "here")


@pytest.mark.parametrize("name", ["none", "empty", "hostile.npz", "truncated.npz", "object.npz", "text.txt"])
def test_bad_sources_are_refused_in_one_line(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("x")
    (tmp_path / "hostile.npz").write_bytes(b"PK\x03\x04" + b"\xff" * 100)
    np.savez(tmp_path / "object.npz", x=np.array([{"a": 1}], dtype=object))
    np.savez(tmp_path / "whole.npz", x=np.zeros((4, 4), np.float32))
    (tmp_path / "truncated.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:-30])
    with pytest.raises(CalibrationError) as caught:
        open_calibration(str(tmp_path / name), INPUTS, 300, 0)
    assert "\n" not in str(caught.value)


def test_pictures_of_another_colour_name_the_option(tmp_path):
    images(tmp_path, 1)
    gray = CalibrationInputs((TensorSpec("x", "float32", (1, 1, 16, 16)),), (), PREPROCESS["unit"])
    with pytest.raises(CalibrationError, match="--color gray"):
        open_calibration(str(tmp_path), gray, 300, 0)
    two = CalibrationInputs((PICTURE, VECTOR), (), PREPROCESS["unit"])
    with pytest.raises(CalibrationError, match=r"got 2.*npz"):
        open_calibration(str(tmp_path), two, 300, 0)


@pytest.mark.parametrize("inputs", [INPUTS, CalibrationInputs((PICTURE,)), CalibrationInputs((VECTOR, PICTURE))])
@pytest.mark.parametrize("name", [None, "notes.txt", "model.onnx"])
def test_a_folder_without_samples_is_called_that(tmp_path, inputs, name):
    """Whatever else is missing: without samples a preprocessing would not help."""
    if name is not None:
        (tmp_path / name).write_text("x")
    with pytest.raises(CalibrationError, match=r"no calibration data.*\.npz.*\.png") as caught:
        open_calibration(str(tmp_path), inputs, 300, 0)
    assert "--preprocess" not in str(caught.value)


def test_pictures_without_a_preprocessing(tmp_path):
    images(tmp_path, 1)
    with pytest.raises(CalibrationError, match="--preprocess"):
        open_calibration(str(tmp_path), CalibrationInputs((PICTURE,)), 300, 0)
