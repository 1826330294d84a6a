"""The benchmark of first results: each engine in a process of its own, one line each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import first_result
import onnx
import pytest
from builders.packages import engine_package, small_network


def test_engines_take_turns_and_give_a_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine_package(tmp_path / "small.ekpkg", "native")
    onnx.save(small_network(), tmp_path / "small.onnx")
    files = {"edgekit": tmp_path / "small.ekpkg", "onnxruntime": tmp_path / "small.onnx"}
    words = [f"{engine}={file}" for engine, file in files.items()]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["first_result.py", *words, "--rounds", "2"])
    first_result.main()
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["engine"] for row in rows] == list(files)
    for row in rows:
        assert row["first_result_ms"] >= row["run_ms"] > 0
        assert row["peak_rss_mib"] > 1


def test_an_unknown_engine_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["first_result.py", "edgekit=a", "tensorrt=b"])
    with pytest.raises(SystemExit):
        first_result.main()
    assert "unknown engine 'tensorrt'" in capsys.readouterr().err
