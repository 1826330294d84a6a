"""Every sample runs as its README says, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av")
Image = pytest.importorskip("PIL.Image")

SAMPLES = Path(__file__).parents[2] / "samples"


def run(*words, cwd):
    """Runs a command; returns its standard output."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def edgekit(*words, cwd):
    return run(sys.executable, "-m", "edgekit.cli.main", *words, cwd=cwd)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The folder that `edgekit demo` leaves."""
    folder = tmp_path_factory.mktemp("demo")
    out = edgekit("demo", "--out", folder / "demo", "--frames", 45, cwd=folder)
    return folder / "demo", out


def test_demo_writes_what_it_says_and_compares_the_engines(demo):
    folder, out = demo
    for engine in ("native int8", "onnxruntime int8", "openvino int8", "onnxruntime fp32"):
        assert engine in out
    picture = np.asarray(Image.open(folder / "annotated.png"))
    assert picture.shape == (480, 640, 3)
    assert (folder / "annotated.mp4").stat().st_size > 10_000


def test_detect_video(demo, tmp_path):
    folder, _ = demo
    out = run(
        sys.executable, SAMPLES / "detect_video" / "detect.py", folder / "shapes-int8.ekpkg", folder / "clip.mp4",
        tmp_path / "annotated.mp4", cwd=tmp_path,
    )  # fmt: skip
    assert out.startswith("45 frames, ")
    assert int(out.split(",")[1].split()[0]) > 45


def test_camera_app_on_a_test_pattern(demo, tmp_path):
    folder, _ = demo
    app = SAMPLES / "camera_app" / "app.py"
    run(sys.executable, app, folder / "shapes-int8.ekpkg", "test:640x480@30#20", cwd=tmp_path)
    out = run(sys.executable, app, folder / "shapes-int8.ekpkg", folder / "clip.mp4", cwd=tmp_path)
    assert "appeared" in out
    assert len(app.read_text().splitlines()) <= 45


def test_classify_image(tmp_path):
    pytest.importorskip("sklearn")
    sample = SAMPLES / "classify_image"
    run(sys.executable, sample / "digit_images.py", tmp_path / "pictures", cwd=tmp_path)
    edgekit(
        "convert", SAMPLES / "models" / "digits.onnx", "--device", "this-machine", "--precision", "int8",
        "--calib", tmp_path / "pictures" / "calib", "--preprocess", "unit", "--color", "gray", "--task", "classify",
        "--labels", SAMPLES / "models" / "digits.txt", "-o", tmp_path / "digits.ekpkg", cwd=tmp_path,
    )  # fmt: skip
    pictures = sorted((tmp_path / "pictures" / "test").glob("*.png"))[:50]
    out = run(sys.executable, sample / "classify.py", tmp_path / "digits.ekpkg", *pictures, cwd=tmp_path)
    said = [line.rsplit(": ", 1)[1][0] for line in out.splitlines()]
    true = [path.stem[-1] for path in pictures]
    assert sum(a == b for a, b in zip(said, true, strict=True)) >= 45
