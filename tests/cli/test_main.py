"""What every command owes its caller: standard output full, gone or closed; the help that fits; exit codes."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders.packages import small_package

from edgekit.cli.main import run
from edgekit.package import storage

ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
COMMAND = f"{sys.executable} -m edgekit.cli.main"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return small_package(tmp_path_factory.mktemp("main") / "small.ekpkg")


def shell(line: str) -> tuple[int, str]:
    """Runs a line; gives the exit code of its first command and what was said on standard error."""
    words = ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"]
    done = subprocess.run(words, cwd=sys.prefix, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


COMMANDS = ["devices list", "devices list --json", "--help", "bench --help", "devices", "inspect {package} --layers"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [*COMMANDS, "--version"])
def test_a_full_output_is_one_line_and_exit_code_4(words, package):
    code, said = shell(f"{COMMAND} {words.format(package=package)} > /dev/full")
    assert (code, said) == (4, "edgekit: standard output: No space left on device\n")


@pytest.mark.parametrize("words", COMMANDS)
def test_a_reader_that_goes_is_no_error(words, package):
    # The reader closes at once: even the first write may find it gone.
    assert shell(f"{COMMAND} {words.format(package=package)} | true") == (0, "")
    assert shell(f"{COMMAND} {words.format(package=package)} | head -1 > /dev/null") == (0, "")


@pytest.mark.parametrize("words", COMMANDS)
def test_a_closed_output_is_no_error(words, package):
    assert shell(f"{COMMAND} {words.format(package=package)} >&-") == (0, "")


@pytest.mark.parametrize(
    "words, hint",
    [
        (["run"], "see edgekit run --help"),
        (["devices", "show"], "see edgekit devices show --help"),
        (["convert", "--no-such"], "see edgekit convert --help"),
        (["no-such"], "see edgekit --help"),
    ],
)
def test_errors_of_usage_name_the_help_that_fits(words, hint, capsys):
    assert run(words) == 2
    assert capsys.readouterr().err.rstrip("\n").endswith(hint)


@pytest.mark.parametrize("words", [["run"], ["bench"], ["inspect"], ["convert"]])
def test_a_missing_argument_is_not_called_an_option(words, capsys):
    assert run(words) == 2
    assert "parameter --" not in capsys.readouterr().err


def test_a_damaged_measurement_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "edgekit").mkdir()
    (tmp_path / "edgekit" / "measured.toml").write_text("schema = ")
    assert run(["devices", "detect"]) == 2
    assert "delete the file" in capsys.readouterr().err


def read_only(*_, **__):
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.parametrize("call", ["mkdir", "open"])
def test_a_demo_in_a_read_only_folder_says_what_to_do(call, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path if call == "mkdir" else storage.os, call, read_only)
    assert run(["demo"]) == 4
    monkeypatch.undo()
    said = capsys.readouterr().err
    assert said == "edgekit: edgekit-demo: no permission to write; name another folder with --out\n"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "words",
    [
        ["convert", "missing.onnx", "-o", "/proc/x.ekpkg"],
        ["run", "{package}", "test:#3", "-o", "/proc/x.mp4"],
        ["bench", "{package}", "-o", "/proc/x.json"],
        ["demo", "--out", "/proc/x"],
    ],
)
def test_an_output_folder_that_takes_no_files_is_told_first(words, package, monkeypatch, capsys):
    monkeypatch.setattr("edgekit.load", lambda *_, **__: pytest.fail("loaded"))
    assert run([word.format(package=package) for word in words]) == 4
    said = capsys.readouterr().err
    assert "/proc" in said and "another folder" in said and "no such folder" not in said and said.count("\n") == 1


def test_no_place_for_a_measurement_is_told_before_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("edgekit.target.measure.measure_machine", lambda *_: pytest.fail("measured"))
    assert run(["devices", "measure"]) == 4
    assert "--no-save" in capsys.readouterr().err
