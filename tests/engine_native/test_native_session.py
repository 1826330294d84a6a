"""Sessions: results, binding, shape buckets, threads, forks, and what an idle session costs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from engine_native.programs import inverted, inverter, pointwise

from edgekit import _native
from edgekit.errors import EngineError, FatalEngineError, PackageError, StorageError, TensorError


def _session(data: bytes, threads: int = 1) -> _native.Session:
    return _native.Session(_native.Program.from_bytes(data), threads)


def _values(width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 18, (2, width)).astype(np.float32)


def test_result_equals_the_reference() -> None:
    x = _values(100)
    np.testing.assert_array_equal(_session(inverter(100)).run({"x": x})["y"], inverted(x))


def test_input_that_is_not_contiguous() -> None:
    x = _values(50)
    session = _session(inverter(50))
    for form in (np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2], x[:, ::-1][:, ::-1]):
        np.testing.assert_array_equal(session.run({"x": form})["y"], inverted(x))


def test_misaligned_input_is_copied() -> None:
    x = _values(8)
    raw = np.zeros(x.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(x.tobytes(), np.uint8)
    shifted = raw[1:].view(np.float32).reshape(x.shape)
    assert not shifted.flags.aligned
    np.testing.assert_array_equal(_session(inverter(8)).run({"x": shifted})["y"], inverted(x))


def test_outputs_are_fresh_and_inputs_untouched() -> None:
    session = _session(inverter(16))
    first_x, second_x = _values(16, 1), _values(16, 2)
    kept = first_x.copy()
    first = session.run({"x": first_x})["y"]
    session.run({"x": second_x})
    np.testing.assert_array_equal(first, inverted(kept))
    np.testing.assert_array_equal(first_x, kept)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "missing"),
        ({"x": np.zeros((2, 4), np.float32)}, r"got float32\[2, 4\], expected float32\[2, 5\]"),
        ({"x": np.zeros((2, 5), np.float64)}, "got float64"),
        ({"x": np.zeros((2, 5), ">f4")}, "wrong dtype"),
        ({"x": [1.0]}, "not a numpy array"),
        ({"x": np.zeros((2, 5), np.float32), "z": np.zeros(1)}, "'z'"),
    ],
)
def test_wrong_feeds_are_refused(feeds: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(TensorError, match=message):
        _session(inverter(5)).run(feeds)


def test_shapes_choose_the_plan() -> None:
    session = _session(inverter(5, 70, 9))
    for width in (9, 5, 70, 9):
        x = _values(width)
        np.testing.assert_array_equal(session.run({"x": x})["y"], inverted(x))
        plan = (5, 70, 9).index(width)
        np.testing.assert_array_equal(session.run({"x": x}, plan)["y"], inverted(x))
    with pytest.raises(TensorError):
        session.run({"x": _values(6)})
    with pytest.raises(TensorError, match="plan 3 does not exist"):
        session.run({"x": _values(5)}, 3)


def test_many_shapes_take_no_more_memory() -> None:
    session = _session(inverter(*range(1, 65)))
    before = session.memory_bytes
    for width in range(1, 65):
        session.run({"x": _values(width)})
    assert session.memory_bytes == before


def test_thread_counts_agree_with_exact_integers() -> None:
    conv = pointwise(pixels=3000, channels=64, filters=64)
    for threads in (1, 2, 0, 64):
        result = _session(conv.data, threads).run({"x": conv.x})["y"]
        np.testing.assert_array_equal(result, conv.expected())


def test_chained_sessions_share_one_pool() -> None:
    conv = pointwise(pixels=3000, channels=64, filters=64)
    program = _native.Program.from_bytes(conv.data)
    sessions = [_native.Session(program, 0) for _ in range(3)]
    expected = conv.x
    for _ in sessions:
        expected = _native.Session(program, 1).run({"x": expected})["y"]
    for _ in range(3):
        x = conv.x
        for session in sessions:
            x = session.run({"x": x})["y"]
        np.testing.assert_array_equal(x, expected)
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    workers = sum(name.startswith("edgekit-") for name in names)
    assert workers <= _native.usable_cpus() - 1


def test_nothing_spins_after_a_run() -> None:
    conv = pointwise(pixels=3000, channels=64, filters=64)
    session = _session(conv.data, 0)
    session.run({"x": conv.x})
    before = time.process_time()
    time.sleep(2)
    assert time.process_time() - before < 0.005


def test_sessions_on_many_threads_are_bit_equal_to_serial() -> None:
    conv = pointwise(pixels=500, channels=64, filters=64)
    program = _native.Program.from_bytes(conv.data)
    rng = np.random.default_rng(5)
    frames = [rng.integers(0, 256, conv.x.shape, dtype=np.uint8) for _ in range(8)]
    serial = [_native.Session(program, 1).run({"x": frame})["y"] for frame in frames]
    results: list[list[np.ndarray]] = [[] for _ in frames]

    def work(index: int) -> None:
        session = _native.Session(program, 2)
        for _ in range(20):
            results[index].append(session.run({"x": frames[index]})["y"])

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(frames))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for expected, got in zip(serial, results, strict=True):
        assert len(got) == 20
        for result in got:
            np.testing.assert_array_equal(result, expected)


def test_second_thread_on_one_session_gets_a_clear_error() -> None:
    conv = pointwise(pixels=20000, channels=128, filters=64)
    session = _session(conv.data, 1)
    expected = session.run({"x": conv.x})["y"]
    refusals: list[str] = []
    wrong: list[bool] = []
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            try:
                wrong.append(not np.array_equal(session.run({"x": conv.x})["y"], expected))
            except EngineError as error:
                refusals.append(str(error))
                stop.set()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refusals
    assert "two threads" in refusals[0]
    assert not any(wrong)


def test_other_python_threads_run_during_inference() -> None:
    conv = pointwise(pixels=60000, channels=256, filters=64)
    session = _session(conv.data, 1)
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.monotonic()
    session.run({"x": conv.x})
    end = time.monotonic()
    stop.set()
    ticker.join()
    inside = [moment for moment in ticks if start < moment < end]
    assert len(inside) > 2  # with the GIL held, the ticker could not tick at all


def _run_in_child(body: object) -> int:
    """Exit code of a forked child that calls body()."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = body()  # type: ignore[operator]
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_child_of_a_fork_gets_a_clear_error_and_may_load_anew() -> None:
    conv = pointwise(pixels=3000, channels=64, filters=64)
    session = _session(conv.data, 0)
    session.run({"x": conv.x})

    def in_child() -> int:
        try:
            session.run({"x": conv.x})
        except FatalEngineError as error:
            fresh = _session(conv.data, 0).run({"x": conv.x})["y"]
            return 0 if "forked" in str(error) and np.array_equal(fresh, conv.expected()) else 2
        return 3

    assert _run_in_child(in_child) == 0
    np.testing.assert_array_equal(session.run({"x": conv.x})["y"], conv.expected())


_EXIT_DURING_RUNS = """
import threading, time
from engine_native.programs import pointwise
from edgekit import _native
conv = pointwise(pixels=3000, channels=64, filters=64)
program = _native.Program.from_bytes(conv.data)
started = threading.Semaphore(0)
def work():
    session = _native.Session(program, 0)
    while True:
        session.run({"x": conv.x})
        started.release()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for _ in range(9):
    started.acquire()
"""


def test_interpreter_exits_while_threads_are_inside() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    for _ in range(3):
        command = [sys.executable, "-c", _EXIT_DURING_RUNS]
        done = subprocess.run(command, cwd=sys.prefix, capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode, done.stderr) == (0, "")


_PINNED = """
import os, sys
cpu = int(sys.argv[1])
os.sched_setaffinity(0, [cpu])
from engine_native.programs import pointwise
from edgekit import _native
conv = pointwise(pixels=3000, channels=64, filters=64)
session = _native.Session(_native.Program.from_bytes(conv.data), 0)
for _ in range(20):
    assert (session.run({"x": conv.x})["y"] == conv.expected()).all()
assert all(os.sched_getaffinity(int(task)) == {cpu} for task in os.listdir("/proc/self/task"))
print(_native.usable_cpus())
"""


def test_two_processes_stay_on_the_cores_they_are_given() -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PINNED, str(cpu)],
            cwd=sys.prefix,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for cpu in cpus
    ]
    assert [process.communicate()[0].strip() for process in processes] == ["1"] * len(cpus)


def test_loading_and_unloading_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.ekn"
    path.write_bytes(pointwise(pixels=1, channels=512, filters=512).data)

    def resident_pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1])

    def maps() -> int:
        return Path("/proc/self/maps").read_text().count("\n")

    x = np.zeros((1, 1, 1, 512), np.uint8)
    seen = []
    for index in range(300):
        _native.Session(_native.Program(str(path)), 1).run({"x": x})
        if index % 100 == 99:
            seen.append((resident_pages(), maps()))
    assert seen[-1][1] == seen[0][1]
    assert (seen[-1][0] - seen[0][0]) * os.sysconf("SC_PAGESIZE") < 2_000_000  # one model is 0.3 MB of weights


def test_range_of_a_file(tmp_path: Path) -> None:
    data = inverter(12)
    x = _values(12)
    path = tmp_path / "holder"
    for offset in (0, 64, 4096, 13, 4097):  # unaligned members, of other zip tools, work too
        path.write_bytes(b"\xee" * offset + data + b"\xee" * 100)
        program = _native.Program(str(path), offset, len(data))
        np.testing.assert_array_equal(_native.Session(program, 1).run({"x": x})["y"], inverted(x))
    with pytest.raises(PackageError, match="not inside"):
        _native.Program(str(path), 0, 2**63)
    with pytest.raises(PackageError, match="beyond"):
        _native.Program(str(path), 2**63, 10)


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="can't be opened"):
        _native.Program(str(tmp_path / "absent.ekn"))
    with pytest.raises(StorageError, match="not a regular file"):
        _native.Program(str(tmp_path))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(StorageError, match="not a regular file"):
        _native.Program(str(fifo))


def test_describes_itself() -> None:
    program = _native.Program.from_bytes(inverter(5, 9))
    assert program.inputs(1) == [("x", np.dtype(np.float32), (2, 9), 0.0, 0)]
    assert program.outputs(0)[0][:3] == ("y", np.dtype(np.uint8), (2, 5))
    assert program.ops(0)[0] == ("convert_0", "convert", "convert_scalar", 7, 2 * 5 * 4 + 2 * 5)
    outputs, times_ns = _native.Session(program, 1).run_timed({"x": _values(9)})
    np.testing.assert_array_equal(outputs["y"], inverted(_values(9)))
    assert len(times_ns) == 2
    assert all(time_ns > 0 for time_ns in times_ns)


def test_negative_thread_count_is_refused() -> None:
    with pytest.raises(TensorError, match="threads"):
        _session(inverter(5), -1)
