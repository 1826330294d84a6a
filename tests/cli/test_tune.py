"""`edgekit tune`: it keeps what gains beside the package, and says in one line what is wrong before it measures."""

import json
import os

import pytest
from builders.packages import small_package
from builders.pointwise_package import MEMBER, pointwise_package

from edgekit.bench import tune
from edgekit.bench.tune import BucketTuning
from edgekit.cli.main import run
from edgekit.engines.tuning import LayerChoice

CHOICE = LayerChoice(MEMBER, 0, 0, "conv_q8_0", "gemm_u8s8_1xn_scalar blocks of 16 KiB", 0)


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
    monkeypatch.setattr(tune, "tune", lambda *_: [BucketTuning(0, (CHOICE,), 2.0, 1.0, 0.1, kept=True)])
    assert run(["tune", str(package), "--threads", "1"]) == 0
    assert "kept in" in capsys.readouterr().out
    words = ["--scenario", "single-stream", "--seconds", "0.01", "--layers", "--json"]
    assert run(["bench", str(package), *words]) == 0
    captured = capsys.readouterr()
    (layer,) = json.loads(captured.out)["context"]["edgekit"]["layers"]["auto"]
    assert layer["kernel"] == CHOICE.kernel
    assert captured.err == ""


def test_a_network_that_does_not_gain_stores_nothing(package, capsys, monkeypatch):
    monkeypatch.setattr(tune, "tune", lambda *_: [BucketTuning(0, (CHOICE,), 2.0, 1.99, 0.1, kept=False)])
    assert run(["tune", str(package)]) == 0
    assert "nothing is kept" in capsys.readouterr().out
    assert list(package.parent.iterdir()) == [package]


def test_no_place_is_told_before_it_measures(package, capsys, monkeypatch):
    monkeypatch.setattr(tune, "tune", lambda *_: pytest.fail("measured"))
    monkeypatch.setattr(os, "access", lambda *_: False)  # tests may run as root, who may write anywhere
    assert run(["tune", str(package)]) == 4
    said = capsys.readouterr().err
    assert "no permission to write" in said and said.count("\n") == 1


def test_a_package_without_a_native_variant_is_refused(tmp_path, capsys):
    small_package(tmp_path / "m.ekpkg")
    assert run(["tune", str(tmp_path / "m.ekpkg")]) == 4
    said = capsys.readouterr().err
    assert "native" in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == [tmp_path / "m.ekpkg"]
