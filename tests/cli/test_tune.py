"""`edgekit tune`: it keeps what gains beside the package, and says in one line what is wrong before it measures."""

import errno
import json
import os

import numpy as np
import pytest
from builders.packages import small_package
from builders.pointwise_package import MEMBER, pointwise_package

from edgekit import _native
from edgekit.bench import tune
from edgekit.bench.tune import BucketTuning
from edgekit.cli.main import run
from edgekit.engines.tuning import LayerChoice
from edgekit.package import storage
from edgekit.runtime.tuning import thread_count

CHOICE = LayerChoice(MEMBER, 0, 0, "conv_q8_0", "gemm_u8s8_1xn_scalar blocks of 16 KiB", 0)


GAIN = BucketTuning(0, (CHOICE,), 2.0, 1.0, 1.0, 0.1)
NO_GAIN = BucketTuning(0, (CHOICE,), 2.0, 1.92, 0.08, 0.1)
NOTHING = BucketTuning(0, (), 2.0, 2.0, 0.0, 0.0)


def finds(monkeypatch, found):
    monkeypatch.setattr(tune, "tune", lambda *_: [found])


def refuse(*_):
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@pytest.fixture
def package(tmp_path):
    pointwise_package(tmp_path / "m.ekpkg")
    return tmp_path / "m.ekpkg"


def test_it_measures_and_prints_json(package, capsys):
    assert run(["tune", str(package), "--threads", "1", "--seconds", "0.01", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (bucket,) = printed["buckets"]
    assert bucket["default_ms"] > 0 and bucket["tuned_ms"] > 0
    assert bucket["kept"] == (printed["file"] is not None) == package.with_name("m.ekpkg.tune.json").exists()


def test_what_gains_is_kept_and_used(package, capsys, monkeypatch):
    finds(monkeypatch, GAIN)
    assert run(["tune", str(package), "--threads", "1"]) == 0
    assert "kept in" in capsys.readouterr().out
    words = ["--threads", "1", "--scenario", "single-stream", "--seconds", "0.01", "--layers", "--json"]
    assert run(["bench", str(package), *words]) == 0
    captured = capsys.readouterr()
    (layer,) = json.loads(captured.out)["context"]["edgekit"]["layers"]["auto"]
    assert layer["kernel"] == CHOICE.kernel
    assert captured.err == ""


def test_a_network_that_does_not_gain_stores_nothing(package, capsys, monkeypatch):
    finds(monkeypatch, NO_GAIN)
    assert run(["tune", str(package)]) == 0
    said = capsys.readouterr().out
    assert "a gain of 0.08 ms (noise 0.1 ms)" in said and "nothing is kept" in said
    assert list(package.parent.iterdir()) == [package]


@pytest.mark.parametrize("later", [GAIN, NO_GAIN, NOTHING])
def test_what_becomes_of_an_earlier_tuning_is_told(package, later, capsys, monkeypatch):
    finds(monkeypatch, GAIN)
    assert run(["tune", str(package), "--threads", "1"]) == 0
    assert "earlier" not in capsys.readouterr().out
    finds(monkeypatch, later)
    assert run(["tune", str(package), "--threads", "1"]) == 0
    (said,) = (line for line in capsys.readouterr().out.splitlines() if "earlier tuning for 1 thread" in line)
    assert said.startswith("replaced" if later is GAIN else "removed")
    assert package.with_name("m.ekpkg.tune.json").exists() == (later is GAIN)


@pytest.mark.parametrize("data", [b"", b"shopping list", b"[]", b'{"format": 99, "devices": {}}'])
def test_a_file_that_is_no_tuning_is_refused_before_it_measures(package, data, capsys, monkeypatch):
    monkeypatch.setattr(tune, "tune", lambda *_: pytest.fail("measured"))
    other = package.with_name("m.ekpkg.tune.json")
    other.write_bytes(data)
    assert run(["tune", str(package)]) == 2
    said = capsys.readouterr().err
    assert str(other) in said and "move or delete it" in said and said.count("\n") == 1
    assert other.read_bytes() == data


def test_a_folder_in_the_files_place_is_refused_by_its_name(package, capsys, monkeypatch):
    monkeypatch.setattr(tune, "tune", lambda *_: pytest.fail("measured"))
    folder = package.with_name("m.ekpkg.tune.json")
    folder.mkdir()
    assert run(["tune", str(package)]) == 2
    said = capsys.readouterr().err
    assert f"{folder}: is not a regular file" in said and "move or delete it" in said and folder.is_dir()


@pytest.mark.parametrize("words", [[], ["--threads", "0"], ["--threads", "1"], ["--threads", "3"]])
def test_it_says_for_how_many_threads(package, words, capsys, monkeypatch):
    finds(monkeypatch, GAIN)
    count = int(words[1]) if words else 0
    threads = thread_count(count or _native.usable_cpus())
    assert run(["tune", str(package), *words]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(f"with {threads}")
    finds(monkeypatch, NOTHING)
    assert run(["tune", str(package), *words]) == 0
    assert f"bucket 0, {threads}: " in capsys.readouterr().out


def test_bench_uses_what_tune_found_when_neither_is_told_a_number_of_threads(package, capsys, monkeypatch):
    finds(monkeypatch, GAIN)
    assert run(["tune", str(package)]) == 0
    capsys.readouterr()
    assert run(["bench", str(package), "--scenario", "single-stream", "--seconds", "0.01", "--layers", "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert [row["threads"] for row in document["benchmarks"]] == [_native.usable_cpus()]
    assert document["context"]["edgekit"]["layers"]["auto"][0]["kernel"] == CHOICE.kernel
    assert captured.err == ""


@pytest.mark.parametrize(
    "words, noted",
    [
        (["bench", "--threads", "2", "--scenario", "single-stream"], False),
        (["bench", "--threads", "1", "--scenario", "single-stream"], True),
        (["bench", "--threads", "2", "--scenario", "throughput", "--scenario", "single-stream"], True),
        (["bench", "--threads", "2", "--scenario", "throughput", "--layers"], True),
        (["run", "--threads", "2", "in.npz"], False),
        (["run", "--threads", "1", "in.npz"], True),
    ],
)
def test_a_tuning_for_other_numbers_of_threads_is_told(package, words, noted, capsys, monkeypatch):
    monkeypatch.chdir(package.parent)
    finds(monkeypatch, GAIN)
    assert run(["tune", str(package), "--threads", "2"]) == 0
    capsys.readouterr()
    np.savez("in.npz", x=pointwise_package(package.with_name("other.ekpkg")).x)
    command, *options = words
    options += ["--seconds", "0.01"] if command == "bench" else []
    assert run([command, str(package), *options]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert len(said) == noted
    assert all("used with --threads 2 only" in line and line.endswith("--threads 1") for line in said)


def test_no_place_is_told_before_it_measures(package, capsys, monkeypatch):
    monkeypatch.setattr(tune, "tune", lambda *_: pytest.fail("measured"))
    monkeypatch.setattr(storage, "_create_temporary", refuse)  # tests may run as root, who may write anywhere
    assert run(["tune", str(package)]) == 4
    said = capsys.readouterr().err
    assert "no permission to write" in said and said.count("\n") == 1


def test_a_package_without_a_native_variant_is_refused(tmp_path, capsys):
    small_package(tmp_path / "m.ekpkg")
    assert run(["tune", str(tmp_path / "m.ekpkg")]) == 4
    said = capsys.readouterr().err
    assert "native" in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == [tmp_path / "m.ekpkg"]
