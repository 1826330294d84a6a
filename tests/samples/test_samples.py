"""Every sample runs as its README says, in a process of its own."""

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av")
Image = pytest.importorskip("PIL.Image")

SAMPLES = Path(__file__).parents[2] / "samples"


def readme_lines(sample):
    """The commands of a sample's README, in order, as words that run from any folder."""
    text = (SAMPLES / sample / "README.md").read_text().replace("\\\n", " ")
    lines = [shlex.split(line, comments=True) for line in text.splitlines() if line.startswith("    ")]
    programs = {"python": [sys.executable], "edgekit": [sys.executable, "-m", "edgekit.cli.main"]}
    return [
        [*programs[first], *(SAMPLES.parent / word if word.startswith("samples/") else word for word in words)]
        for first, *words in lines
        if first in programs
    ]


def run(*words, cwd):
    """Runs a command; returns its standard output."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A folder in which `edgekit demo --out demo` was run, as READMEs say, on a shorter clip; and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    command, *_ = readme_lines("detect_video")
    assert command[3:] == ["demo", "--out", "demo"] and readme_lines("camera_app")[0] == command
    return folder, run(*command, "--frames", 45, cwd=folder)


def test_demo_writes_what_it_says_and_compares_the_engines(demo):
    folder, out = demo
    for engine in ("native int8", "onnxruntime int8", "openvino int8", "onnxruntime fp32"):
        assert engine in out
    picture = np.asarray(Image.open(folder / "demo" / "annotated.png"))
    assert picture.shape == (480, 640, 3)
    assert (folder / "demo" / "annotated.mp4").stat().st_size > 10_000


@pytest.mark.parametrize("program", sorted(SAMPLES.glob("*/*.py")), ids=lambda path: path.stem)
def test_a_program_without_its_arguments_says_how_it_is_called(program, tmp_path):
    if "import torch" in program.read_text():
        pytest.importorskip("torch")
    said = subprocess.run([sys.executable, program, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert "Traceback" not in said.stderr
    assert program.name in said.stdout + said.stderr


def test_detect_video(demo):
    folder, _ = demo
    _, detect, convert = readme_lines("detect_video")
    out = run(*detect, cwd=folder)
    assert out.startswith("45 frames, ")
    assert int(out.split(",")[1].split()[0]) > 45
    assert (folder / "annotated.mp4").stat().st_size > 10_000
    run(*convert, "--engine", "native", cwd=folder)
    assert (folder / "shapes.ekpkg").exists()


def test_camera_app_on_a_test_pattern(demo):
    folder, _ = demo
    *app, camera = readme_lines("camera_app")[1]
    assert camera == "0"  # there is none here
    run(*app, "test:640x480@30#20", cwd=folder)
    assert "appeared" in run(*app, "demo/clip.mp4", cwd=folder)
    assert len((SAMPLES / "camera_app" / "app.py").read_text().splitlines()) <= 45


def test_classify_image(tmp_path):
    pytest.importorskip("sklearn")
    pictures, convert, classify = readme_lines("classify_image")
    run(*pictures, cwd=tmp_path)
    run(*convert, cwd=tmp_path)
    run(*classify, cwd=tmp_path)
    tested = sorted((tmp_path / "pictures" / "test").glob("*.png"))[:50]
    out = run(*classify[:-1], *tested, cwd=tmp_path)
    said = [line.rsplit(": ", 1)[1][0] for line in out.splitlines()]
    true = [path.stem[-1] for path in tested]
    assert sum(a == b for a, b in zip(said, true, strict=True)) >= 45
