"""`edgekit bench`: --json is a flag as elsewhere, -o names a file, and neither touches the package."""

import json
from pathlib import Path

import pytest
from builders.packages import small_package
from builders.pointwise_package import pointwise_package

from edgekit.cli.main import run

WORDS = ["--engine", "onnxruntime", "--scenario", "single-stream", "--seconds", "0.01"]


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return small_package(tmp_path / "small.ekpkg")


def test_json_is_printed_and_written(package, capsys):
    assert run(["bench", str(package), *WORDS, "--json", "-o", "out.json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert json.loads(Path("out.json").read_text()) == printed
    assert printed["benchmarks"]


def test_the_package_is_not_written_over(package, capsys):
    before = package.read_bytes()
    for name in ("small.ekpkg", "./small.ekpkg", str(package)):
        assert run(["bench", str(package), *WORDS, "-o", name]) == 2
        assert "over its own source" in capsys.readouterr().err
    assert package.read_bytes() == before


def test_layers_name_their_kernels(tmp_path, capsys):
    pointwise_package(tmp_path / "m.ekpkg")
    words = ["--engine", "native", "--scenario", "single-stream", "--seconds", "0.01", "--layers"]
    assert run(["bench", str(tmp_path / "m.ekpkg"), *words, "--json"]) == 0
    (layer,) = json.loads(capsys.readouterr().out)["context"]["edgekit"]["layers"]["native"]
    assert (layer["op"], layer["kernel"]) == ("conv_q8", "gemm_u8s8_1xn_scalar")
    assert layer["bytes_moved"] > 0 and layer["time_us"] > 0 and layer["roofline_share"] > 0
    assert layer["bound"] in ("compute", "memory", "overhead")
    assert run(["bench", str(tmp_path / "m.ekpkg"), *words]) == 0
    assert "gemm_u8s8_1xn_scalar" in capsys.readouterr().out
    assert run(["inspect", str(tmp_path / "m.ekpkg"), "--layers"]) == 0
    assert "gemm_u8s8_1xn_scalar" in capsys.readouterr().out
