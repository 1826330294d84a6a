"""`edgekit bench`: --json is a flag as elsewhere, -o names a file, and neither touches the package."""

import json
from pathlib import Path

import numpy as np
import pytest
from builders.packages import small_package
from builders.pointwise_package import pointwise_package

from edgekit.bench.report import Row
from edgekit.bench.roofline import Peaks, classify
from edgekit.bench.runner import BenchResult
from edgekit.bench.scenarios import Measurement
from edgekit.cli.bench import print_result
from edgekit.cli.main import run
from edgekit.engines.base import LayerTime

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


def row(scenario: str, count: int, latency_ms: float) -> Row:
    measured = Measurement(scenario, np.full(count, latency_ms), count * latency_ms / 1e3, count * 60.0, 1, 15, True)
    memory = {"weights": 123 << 20, "arena": 123 << 20, "peak_rss": 1023 << 20}
    return Row("m", "onnxruntime", "x86_avx512_vnni_and_more", 256, measured, memory_bytes=memory)


@pytest.mark.parametrize("count", [3, 11, 64, 700])
@pytest.mark.parametrize("latency_ms", [0.0101, 12345.678])
def test_the_table_of_scenarios_fits_a_terminal(count, latency_ms, capsys):
    print_result("auto", BenchResult((row("single-stream", count, latency_ms), row("throughput", count, latency_ms))))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len([line for line in lines if line.startswith(("single-stream", "throughput"))]) == 2  # none goes on below
    text = "\n".join(lines)
    assert "onnxruntime" in text and "x86_avx512_vnni_and_more" in text and "peak_rss 1023.0 MiB" in text
    assert ("insufficient samples" in text) == (count < 662)
    assert ("n < 11" in text, "n < 64" in text) == (count < 11, count < 64)


@pytest.mark.parametrize("time_us, explained", [(50.0, True), (200.0, False)])
def test_a_share_above_the_roofline_is_explained(time_us, explained, capsys):
    bound = classify(LayerTime("a", "copy_u8", "copy_scalar", time_us, 0, 1_000_000), Peaks(100.0, 50.0, 10.0))
    assert (bound.roofline_share > 1) == explained
    print_result("native", BenchResult((), layers=(bound,)))
    assert ("above 100% of the roofline: " in capsys.readouterr().out) == explained


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
