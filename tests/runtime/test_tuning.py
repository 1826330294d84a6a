"""What `edgekit tune` stores: used where it was measured, passed over with one line elsewhere, trusted in nothing."""

import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from builders.pointwise_package import MEMBER, pointwise_package

import edgekit
from edgekit import _native
from edgekit.engines.tuning import LayerChoice
from edgekit.errors import PackageError
from edgekit.package.reader import open_package
from edgekit.runtime import tuning
from edgekit.runtime.tuning import StoredRun, TuningRun, store_run, tuning_file, untuned_note

THREADS = 1


@pytest.fixture
def package(tmp_path):
    return tmp_path / "m.ekpkg"


@pytest.fixture
def case(package):
    return pointwise_package(package)


@pytest.fixture
def ways(case):
    return _native.Program.from_bytes(case.data).kernels(0, THREADS)[0]


def run_of(*choices: LayerChoice) -> TuningRun:
    return TuningRun(2.0, 1.0, choices)


def choice(kernel: str, **changes: object) -> LayerChoice:
    fields = {"part": MEMBER, "bucket": 0, "index": 0, "layer": "conv_q8_0", "kernel": kernel, "tasks": 0}
    return LayerChoice(**(fields | changes))


def store(package, run, threads=THREADS):
    with open_package(package) as opened:
        return store_run(opened, threads, run)


def kernel_of(model, x) -> str:
    (layer,) = model.profile({"x": x})
    return layer.kernel


def notices(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_a_layer_can_run_in_several_ways_with_the_same_results(case):
    program = _native.Program.from_bytes(case.data)
    threads = _native.usable_cpus()
    ways = program.kernels(0, threads)[0]
    assert len(ways) == len(set(ways)) >= 4
    for way in range(len(ways)):
        for tasks in range(threads + 1):
            session = _native.Session(program, threads, [[(way, tasks)]])
            assert session.kernels(0) == [ways[way]]
            np.testing.assert_array_equal(session.run({"x": case.x})["y"], case.expected())


@pytest.mark.parametrize("plans", [[[(99, 0)]], [[(-1, 0)]], [[(0, 2)]], [[(0, -1)]], [[(0, 0)] * 2], [[(0, 0)], []]])
def test_a_session_refuses_what_is_not_of_its_program(case, plans):
    with pytest.raises(edgekit.EdgekitError, match=r"tuning is of|can't run in way"):
        _native.Session(_native.Program.from_bytes(case.data), 1, plans)


def test_a_load_uses_what_was_stored_for_this_device(package, case, ways, caplog):
    store(package, run_of(choice(ways[2])))
    with edgekit.load(package, threads=THREADS) as tuned, edgekit.load(package, threads=THREADS, tuning=False) as plain:
        assert (kernel_of(tuned, case.x), kernel_of(plain, case.x)) == (ways[2], ways[0])
        np.testing.assert_array_equal(tuned.run({"x": case.x})["y"], plain.run({"x": case.x})["y"])
    assert notices(caplog) == []


def test_numbers_of_threads_have_runs_of_their_own(package, case, ways, caplog):
    store(package, run_of(choice(ways[1])), threads=1)
    store(package, run_of(choice(ways[2])), threads=3)
    for threads, expected in ((1, ways[1]), (2, ways[0]), (3, ways[2])):
        with edgekit.load(package, threads=threads) as model:
            assert kernel_of(model, case.x) == expected
    store(package, None, threads=1)
    with edgekit.load(package, threads=1) as model:
        assert kernel_of(model, case.x) == ways[0]
    assert notices(caplog) == []
    assert store(package, None, threads=3).path == ""
    assert not Path(tuning_file(str(package))).exists()
    assert store(package, None, threads=3) == StoredRun("", ())


def test_what_the_file_no_longer_holds_is_told_with_the_reason(package, case, ways):
    path = tuning_file(str(package))
    assert store(package, run_of(choice(ways[1])), threads=1) == StoredRun(path, ())
    assert store(package, run_of(choice(ways[1])), threads=2) == StoredRun(path, ())
    (replaced,) = store(package, run_of(choice(ways[2])), threads=2).notes
    assert replaced.startswith(f"replaced in {path}") and "2 threads" in replaced
    stored = store(package, None, threads=2)
    (removed,) = stored.notes
    assert removed.startswith(f"removed from {path}") and "this run finds none" in removed and stored.path == path
    (deleted,) = store(package, None, threads=1).notes
    assert deleted.startswith(f"removed from {path}") and deleted.endswith("it is deleted")
    store(package, run_of(choice(ways[1])))
    pointwise_package(package, pixels=2048)
    (stale,) = store(package, run_of(choice(ways[1]))).notes
    assert "of a package that this one has replaced" in stale
    pointwise_package(package, pixels=1024)
    (last,) = store(package, None).notes
    assert "of a package" in last and last.endswith("it is deleted") and not Path(path).exists()


def test_tunings_that_end_at_once_are_all_kept(package, case, ways):
    numbers = range(1, 9)
    for _ in range(5):
        with ThreadPoolExecutor(len(numbers)) as workers:
            list(workers.map(lambda threads: store(package, run_of(choice(ways[1])), threads=threads), numbers))
        (device,) = json.loads(Path(tuning_file(str(package))).read_text())["devices"].values()
        assert set(device["threads"]) == {str(threads) for threads in numbers}
        Path(tuning_file(str(package))).unlink()


def test_other_numbers_of_threads_are_told(package, case, ways):
    def note(*threads: int) -> str:
        with open_package(package) as opened:
            return untuned_note(opened, set(threads))

    assert note(1, 2) == ""  # nothing is tuned
    store(package, run_of(choice(ways[1])), threads=2)
    assert note(2) == ""
    for threads in ((1,), (1, 2)):
        assert "used with --threads 2 only; with 1 thread the package" in note(*threads)
        assert note(*threads).endswith(f"edgekit tune {package} --threads 1")
    store(package, run_of(choice(ways[1])), threads=4)
    assert "used with --threads 2 or 4 only; with 3 threads" in note(3)
    Path(tuning_file(str(package))).write_text("?")  # which the load says
    assert note(1) == ""


def test_another_device_is_passed_over_with_one_line(package, case, ways, caplog, monkeypatch):
    store(package, run_of(choice(ways[1])))
    here = tuning.this_device
    monkeypatch.setattr(tuning, "this_device", lambda p: edgekit.records.replace(here(p), cpu="8x Another"))
    with edgekit.load(package, threads=THREADS) as model:
        assert kernel_of(model, case.x) == ways[0]
    (said,) = notices(caplog)
    assert "of another device" in said and "\n" not in said
    # Both devices keep what is theirs.
    store(package, run_of(choice(ways[2])))
    with edgekit.load(package, threads=THREADS) as model:
        assert kernel_of(model, case.x) == ways[2]
    monkeypatch.setattr(tuning, "this_device", here)
    with edgekit.load(package, threads=THREADS) as model:
        assert kernel_of(model, case.x) == ways[1]


def test_a_package_that_was_converted_anew_is_not_tuned(package, ways, caplog):
    store(package, run_of(choice(ways[1])))
    case = pointwise_package(package, pixels=2048)
    with edgekit.load(package, threads=THREADS) as model:
        assert kernel_of(model, case.x) == ways[0]
    assert "of another device, edgekit or package" in notices(caplog)[0]
    store(package, run_of(choice(ways[1])))
    assert len(json.loads((package.parent / "m.ekpkg.tune.json").read_text())["devices"]) == 1


STALE = {
    "unknown kernel": {"kernel": "gemm_u8s8_9x9_avx9"},
    "another layer": {"layer": "conv_q8_1"},
    "beyond the last layer": {"index": 1},
    "before the first": {"index": -1},
    "unknown bucket": {"bucket": 7},
    "too many tasks": {"tasks": 2},
    "negative tasks": {"tasks": -1},
    "huge": {"index": 1 << 80, "tasks": 1 << 80},
    "control characters": {"layer": "a\x1b[31m\nb"},
}


@pytest.mark.parametrize("changes", STALE.values(), ids=STALE)
def test_what_does_not_fit_the_program_is_passed_over(package, case, ways, caplog, changes):
    store(package, run_of(choice(ways[1]), choice(**({"kernel": ways[1]} | changes))))
    with edgekit.load(package, threads=THREADS) as model:
        assert kernel_of(model, case.x) == ways[0]
    (said,) = notices(caplog)
    assert said.isprintable() and "run: edgekit tune" in said


HOSTILE = {
    "empty": b"",
    "not JSON": b"\x00\xff" * 100,
    "nested": b"[" * 100_000,
    "a list": b"[]",
    "another format": b'{"format": 2, "devices": {}}',
    "no format": b'{"devices": {}}',
    "twice": b'{"format": 1, "format": 1, "devices": {}}',
    "unknown field": b'{"format": 1, "devices": {}, "more": 1}',
    "wrong types": b'{"format": 1, "devices": {"a": 7}}',
    "not finite": b'{"format": 1, "devices": NaN}',
    "too large": b" " * (5 << 20),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_one_line_and_is_not_replaced(package, case, ways, caplog, data):
    path = package.parent / "m.ekpkg.tune.json"
    path.write_bytes(data)
    with edgekit.load(package, threads=THREADS) as model:
        np.testing.assert_array_equal(model.run({"x": case.x})["y"], case.expected())
    (said,) = notices(caplog)
    assert said.isprintable() and "m.ekpkg.tune.json" in said
    assert said.count("(") == said.count(")") and "move or delete it" in said
    for run in (run_of(choice(ways[1])), None):
        with pytest.raises(PackageError, match="move or delete it"):
            store(package, run)
    assert path.read_bytes() == data


@pytest.mark.parametrize("kind", ["folder", "fifo", "loop"])
def test_what_is_no_file_is_one_line(package, case, caplog, kind):
    path = package.parent / "m.ekpkg.tune.json"
    {"folder": path.mkdir, "fifo": lambda: os.mkfifo(path), "loop": lambda: path.symlink_to(path)}[kind]()
    with edgekit.load(package, threads=THREADS) as model:
        np.testing.assert_array_equal(model.run({"x": case.x})["y"], case.expected())
    (said,) = notices(caplog)
    assert f"{path}: " in said and "Errno" not in said
    with pytest.raises(PackageError, match="move or delete it"):
        store(package, None)
    assert os.path.lexists(path)


def test_the_notice_is_one_line_on_standard_error(package, case, capfd):
    """What an application sees that has not set up logging."""
    (package.parent / "m.ekpkg.tune.json").write_text("?")
    root, own = logging.getLogger(), logging.getLogger("edgekit")
    handlers, root.handlers, propagates, own.propagate = root.handlers, [], own.propagate, False
    try:
        edgekit.load(package, threads=THREADS).close()
    finally:
        root.handlers, own.propagate = handlers, propagates
    said = capfd.readouterr().err
    assert said.startswith("edgekit: tuning is not used: ") and said.count("\n") == 1
