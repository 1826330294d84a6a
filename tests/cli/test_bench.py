"""`edgekit bench`: --json is a flag as elsewhere, -o names a file, and neither touches the package."""

import json
from pathlib import Path

import pytest
from builders.packages import small_package

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
