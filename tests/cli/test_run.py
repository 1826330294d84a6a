"""`edgekit run`: what it prints and when, what it writes, and that it never harms what it reads or an older output."""

import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from builders.packages import means_package

import edgekit
from edgekit.cli import run as run_module
from edgekit.cli.main import run
from edgekit.vision.sources import open_source

pytest.importorskip("av")
Image = pytest.importorskip("PIL.Image")

ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
COMMAND = (sys.executable, "-m", "edgekit.cli.main")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package; the current folder holds nothing else."""
    monkeypatch.chdir(tmp_path)
    return str(means_package(tmp_path / "means.ekpkg"))


def write_clip(path):
    from edgekit.vision.video_writer import VideoWriter

    with VideoWriter(path) as writer:
        for shade in range(12):
            writer.write(np.full((32, 48, 3), 20 * shade, np.uint8))


def picture(path, size=(20, 30), color=(255, 0, 0)):
    Image.new("RGB", size, color).save(path)


def refused(words, capsys, code=2):
    assert run(words) == code
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("edgekit: ") and said[:-1].isprintable(), said
    return said


@pytest.mark.parametrize("name", ["clip.mp4", "one.png", "pictures/a.png", "in.npz", "means.ekpkg"])
def test_no_source_is_written_over(name, package, tmp_path, capsys):
    (tmp_path / "pictures").mkdir()
    write_clip(tmp_path / "clip.mp4")
    for each in ("one.png", "pictures/a.png", "pictures/b.png"):
        picture(tmp_path / each)
    np.savez(tmp_path / "in.npz", x=np.zeros((1, 3, 16, 16), np.float32))
    before = (tmp_path / name).read_bytes()
    sources = {"pictures/a.png": ["pictures", "pictures/*.png"]}.get(name, [name])
    for source in sources:
        if name == "means.ekpkg":
            os.link(name, "link.png")
            source, name = "one.png", "link.png"
        assert "over its own source" in refused(["run", package, source, "-o", name], capsys)
        assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize("words", [["--frames", "0"], ["--frames", "-3"], ["-o", "x.npz"], ["-o", "missing/x.mp4"]])
def test_options_are_checked_before_anything_runs(words, package, capsys, tmp_path):
    refused(["run", package, "test:16x16#5", *words], capsys, 4 if "missing" in words[1] else 2)
    assert [path.name for path in tmp_path.iterdir()] == ["means.ekpkg"]


@pytest.mark.parametrize("words", [["--frames", "1"], ["--live"], ["-o", "x.mp4"]])
def test_options_of_frames_do_not_fit_tensors(words, package, capsys, tmp_path):
    np.savez("in.npz", x=np.zeros((1, 3, 16, 16), np.float32))
    refused(["run", package, "in.npz", *words], capsys)
    assert not (tmp_path / "x.mp4").exists()


def test_an_empty_source_is_not_the_current_folder(package, capsys):
    picture("a.png")
    assert run(["run", package, ""]) == 2
    assert "name is empty" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["out.mp4", "out.png"])
def test_a_run_that_fails_keeps_the_older_output(name, package, tmp_path, capsys):
    folder = tmp_path / "pictures"
    folder.mkdir()
    picture(folder / "a.png", (32, 32))
    picture(folder / "b.png", (48, 32))
    (folder / "c.png").write_bytes(b"no picture")
    output = tmp_path / name
    assert run(["run", package, str(folder), "-o", str(output)]) == 2
    assert not output.exists()
    output.write_bytes(b"older")
    assert run(["run", package, str(folder), "-o", str(output)]) == 2
    assert output.read_bytes() == b"older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["means.ekpkg", name, "pictures"]


def test_the_last_frame_is_the_picture(package, tmp_path):
    (tmp_path / "pictures").mkdir()
    picture(tmp_path / "pictures" / "a.png", (100, 60))
    picture(tmp_path / "pictures" / "b.png", (40, 50))
    assert run(["run", package, "pictures", "-o", "out.png"]) == 0
    assert Image.open("out.png").size == (40, 50)


@pytest.mark.parametrize("rate", ["", "@1000", "@0"])
def test_a_test_pattern_is_run_in_full_like_a_file(rate, package, capsys):
    assert run(["run", package, f"test:320x240{rate}#30", "-o", "x.mp4", "--json"]) == 0
    printed = capsys.readouterr()
    rows = [json.loads(line) for line in printed.out.splitlines()]
    assert [(each["frame_id"], each["dropped"], each["skipped"]) for each in rows] == [(n, 0, 0) for n in range(30)]
    assert "30 frames, 0 dropped;" in printed.err
    with open_source("x.mp4") as frames:
        assert len(list(frames)) == 30


@pytest.mark.parametrize("slow", ["engine", "reader"])
def test_frames_and_dropped_ones_of_a_live_source_add_up(slow, package, capsys, monkeypatch):
    """Frames are lost before inference when the engine is slow, and results after it when whoever reads them is."""
    printed = run_module._print_result

    def print_slowly(*words):
        printed(*words)
        time.sleep(0.03)

    if slow == "reader":
        monkeypatch.setattr(run_module, "_print_result", print_slowly)
    load = edgekit.load
    settings = {"latency_ms": 20 if slow == "engine" else 0}
    monkeypatch.setattr(edgekit, "load", lambda *words, **named: load(*words, **named, settings=settings))
    assert run(["run", package, "test:16x16@200#60", "--live", "--engine", "simulated"]) == 0
    said = capsys.readouterr()
    count, lost = map(int, re.search(r"(\d+) frames, (\d+) dropped;", said.err).groups())
    assert count == len(said.out.splitlines())
    assert count + lost == 60 and lost > 0


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi"])
def test_a_full_disk_stops_the_video_at_the_first_write(suffix, package, tmp_path):
    """A real limit: the kernel refuses to write more to a file than that. The source never ends."""
    done = subprocess.run(
        [*COMMAND, "run", package, "test:320x240@0", "-o", f"v{suffix}"],
        capture_output=True,
        env=ENVIRONMENT,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20 << 10, 20 << 10)),
    )
    said = done.stderr.splitlines()
    assert done.returncode == 4, done.stderr
    assert said[-1].startswith(f"edgekit: v{suffix}: the disk is full or a size limit is reached")
    assert len(said) == 2 and "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["means.ekpkg"]


@pytest.mark.parametrize("name", ["v.mp4", "v.png"])
def test_a_disk_that_is_full_already_is_told_before_anything_runs(name, package, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(edgekit, "load", lambda *_, **__: pytest.fail("loaded"))

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert "the disk is full" in refused(["run", package, "test:16x16#5", "-o", name], capsys, 4)
    assert [path.name for path in tmp_path.iterdir()] == ["means.ekpkg"]


def test_it_says_which_engine_ran(package, capsys):
    picture("a.png")
    assert run(["run", package, "a.png"]) == 0
    printed = capsys.readouterr()
    assert "red 1.00" in printed.out
    assert printed.err.startswith("engine onnxruntime on cpu, ")


def test_tensors_run_and_are_written(package, capsys):
    np.savez("in.npz", x=np.full((1, 3, 16, 16), 0.25, np.float32))
    assert run(["run", package, "in.npz", "-o", "out.npz", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["y"]
    assert np.array_equal(np.load("out.npz")["y"], np.full((1, 3), 0.25, np.float32))


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_each_result_is_there_at_once(words, package):
    """The source never ends: a line that waited in a buffer would never come."""
    words = [*COMMAND, "run", package, "test:16x16@5", "--live", *words]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT, text=True)
    try:
        lines = [process.stdout.readline() for _ in range(2)]
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
    assert all(line.endswith("\n") and "0" in line for line in lines)


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_finishes_the_video(number, code, package, tmp_path):
    words = [*COMMAND, "run", package, "test:64x48@20", "--live", "-o", "v.mp4"]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )
    told = sum(bool(process.stdout.readline()) for _ in range(3))
    process.send_signal(number)
    rest, said = process.communicate()
    told += len(rest.splitlines())
    assert (process.returncode, "Traceback" in said) == (code, False), said
    assert "dropped; median ms a stage: " in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["means.ekpkg", "v.mp4"]
    with open_source(tmp_path / "v.mp4") as frames:
        assert told <= len(list(frames)) <= told + 1  # the signal may come between a frame's file and its line
