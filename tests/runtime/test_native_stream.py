"""model.stream() of the native engine, whose inference runs on a thread of the core."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from engine_native.programs import PlanBuilder, assemble

import edgekit
from edgekit.errors import EngineError, FatalEngineError
from edgekit.package.manifest import Manifest, Part, Variant
from edgekit.package.program import ConstantPool
from edgekit.package.specs import PreprocessSpec, TensorSpec
from edgekit.package.writer import write_package
from edgekit.vision.frame import Frame

MEMBER = "variants/native/program.ekn"
TABLE = 200  # brightness from which the program fails
MEAN = 0  # enums.reduce_kind


def brightness(*sizes: int) -> bytes:
    """y = table[int(mean of each channel)], one plan a size; an index out of range is an error of the run."""
    pool = ConstantPool()
    plans = []
    for size in sizes:
        builder = PlanBuilder(pool)
        x = builder.bound("input", "x", "f32", (1, 3, size, size))
        means = builder.temporary("means", "f32", (1, 3, 1, 1))
        indices = builder.temporary("indices", "i32", (1, 3, 1, 1))
        table = builder.constant("table", "f32", np.arange(TABLE, dtype=np.float32))
        y = builder.bound("output", "y", "f32", (1, 3, 1, 1))
        builder.op("reduce", (x,), (means,), kind=MEAN, axes_mask=0b1100, ratio=1.0)
        builder.op("convert", (means,), (indices,))
        builder.op("gather", (table, indices), (y,), axis=0)
        plans.append(builder)
    return assemble(plans, pool)


def package(path: Path, *sizes: int) -> Path:
    dim = sizes[0] if len(sizes) == 1 else "side"
    manifest = Manifest(
        1, 0, "test", "0" * 64, "m.onnx", "p", "0" * 64,
        inputs=(TensorSpec("x", "float32", (1, 3, dim, dim), "nchw"),),
        outputs=(TensorSpec("y", "float32", (1, 3, 1, 1)),),
        variants=(Variant("native", "native", "scalar", (MEMBER,), (Part("native", MEMBER, ("x",), ("y",)),)),),
        members={}, preprocess=PreprocessSpec(resize="none" if len(sizes) > 1 else "stretch", scale=1.0),
        buckets=() if len(sizes) == 1 else tuple({"side": size} for size in sizes),
    )  # fmt: skip
    write_package(path, manifest, {MEMBER: brightness(*sizes)})
    return path


@pytest.fixture
def model(tmp_path):
    with edgekit.load(package(tmp_path / "m.ekpkg", 32), threads=1, warm_up=False) as loaded:
        yield loaded


def grey(value, size=32, **rest):
    return Frame.from_array(np.full((size, size, 3), value, np.uint8), **rest)


def numbered(count):
    for number in range(count):
        yield grey(number % TABLE, frame_id=number, timestamp_ns=time.monotonic_ns())


def value(result):
    found = result.outputs["y"]
    assert found.shape == (1, 3, 1, 1) and found.dtype == np.float32
    return int(found[0, 0, 0, 0])


def infer_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("edgekit-")]


def test_every_frame_once_and_in_order(model):
    with model.stream(numbered(500)) as stream:
        kept = list(stream)
        assert stream.dropped == 0 and stream.captured == 500
    assert [result.frame_id for result in kept] == list(range(500))
    # All results are still alive: none of them shares its memory with a later one.
    assert [value(result) for result in kept] == [number % TABLE for number in range(500)]
    assert not infer_threads()


def test_outputs_may_be_written_to_and_outlive_model_and_stream(tmp_path):
    with edgekit.load(package(tmp_path / "m.ekpkg", 32)) as model, model.stream(numbered(3)) as stream:
        results = list(stream)
    results[1].outputs["y"][:] = 7
    assert [value(result) for result in results] == [0, 7, 2]


def test_each_size_runs_in_its_own_bucket(tmp_path):
    sizes = [16, 48, 16, 32, 48, 32] * 10
    with edgekit.load(package(tmp_path / "m.ekpkg", 16, 32, 48)) as model:
        frames = (grey(number, size) for number, size in enumerate(sizes))
        with model.stream(frames) as stream:
            got = [(value(result), result.transform.input_hw) for result in stream]
    assert got == [(number, (size, size)) for number, size in enumerate(sizes)]


def test_times_of_all_stages(model):
    before_ns = time.monotonic_ns()
    with model.stream(numbered(5)) as stream:
        results = list(stream)
    spent_ms = (time.monotonic_ns() - before_ns) / 1e6
    for result in results:
        assert set(result.stage_ms) == {"capture", "preprocess", "queue", "infer", "postprocess"}
        assert all(0 <= ms <= spent_ms for ms in result.stage_ms.values())
        assert 0 < result.stage_ms["infer"] and result.age_ms <= spent_ms


def test_a_live_source_drops_old_frames_and_counts_them(model):
    class Camera:
        live, fps, name = True, 0.0, "camera"

        def __iter__(self):
            yield from numbered(3000)

        def close(self):
            pass

        __enter__, __exit__ = lambda self: self, lambda self, *args: None

    with model.stream(Camera()) as stream:
        got = []
        for result in stream:
            time.sleep(0.002)  # a slow reader
            got.append((result.frame_id, result.dropped, result.skipped))
        ids = [frame_id for frame_id, _, _ in got]
        assert ids == sorted(set(ids)) and ids[-1] == 2999
        assert len(got) + stream.dropped + got[-1][2] >= 3000 - 2
        assert [dropped for _, dropped, _ in got] == sorted(dropped for _, dropped, _ in got)


def test_an_error_in_a_frame_comes_once_after_the_results_before_it(model):
    frames = (grey(250 if number == 11 else number, frame_id=number) for number in range(50))
    got = []
    with model.stream(frames) as stream:
        with pytest.raises(EngineError, match=r"layer 'gather_2'.*"):
            for result in stream:
                got.append(result.frame_id)
        assert got == list(range(11))
        assert next(stream, None) is None
    assert not infer_threads()
    with model.stream(numbered(3)) as stream:  # the session is as good as new
        assert [value(result) for result in stream] == [0, 1, 2]


def test_the_session_is_the_streams_alone_and_comes_back(model):
    with model.stream(numbered(10**6)) as stream:
        next(stream)
        assert float(model.run({"x": np.full((1, 3, 32, 32), 9, np.float32)})["y"].max()) == 9  # another session
    with model.pool.lease() as first:
        assert first.run({"x": np.full((1, 3, 32, 32), 3, np.float32)})["y"].max() == 3


def test_closing_in_any_state(model):
    for after in (0, 1, 5, 40):
        stream = model.stream(numbered(10**6))
        for _ in range(after):
            next(stream)
        stream.close()
        stream.close()
        assert next(stream, None) is None
        assert not infer_threads()


def test_closing_the_model_ends_the_stream_with_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("edgekit.runtime.sessions.DEFAULT_TIMEOUT_S", 0.1)
    model = edgekit.load(package(tmp_path / "m.ekpkg", 32))
    with model.stream(numbered(10**6)) as stream:
        next(stream)
        model.pool.close(0.05)
        model.compiled.close()
        with pytest.raises(FatalEngineError, match="is closed"):
            for _ in range(100):
                next(stream)
    model.close()


def test_many_streams_leave_nothing_behind(model):
    descriptors = Path("/proc/self/fd")

    def once():
        with model.stream(numbered(10)) as stream:
            next(stream)
            if len(numbers) % 2:
                list(stream)

    numbers: list[int] = []
    for _ in range(20):
        once()
    tasks, files = len(list(Path("/proc/self/task").iterdir())), len(list(descriptors.iterdir()))
    for number in range(200):
        numbers.append(number)
        once()
    # A thread that was joined may still be on its way out; 200 streams that leak one each can't hide behind ten.
    assert len(list(Path("/proc/self/task").iterdir())) <= tasks + 10
    assert len(list(descriptors.iterdir())) <= files


def _run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    folders = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
    prelude = f"import os, sys; sys.path[:0] = {folders!r}; import edgekit, test_native_stream as t\n"
    words = [sys.executable, "-W", "ignore", "-c", prelude + code, str(path)]
    return subprocess.run(words, cwd=sys.prefix, capture_output=True, text=True, check=False)


def test_interpreter_exit_with_an_open_stream(tmp_path):
    code = "s = edgekit.load(sys.argv[1]).stream(t.numbered(10**9)); print(t.value(next(s)))"
    done = _run(code, package(tmp_path / "m.ekpkg", 32))
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_gets_a_clear_error(tmp_path):
    code = (
        "s = edgekit.load(sys.argv[1]).stream(t.numbered(10**9)); next(s)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try: next(s)\n"
        "    except t.FatalEngineError: os.write(1, b'refused ')\n"
        "    s.close(); sys.exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "next(s); print('parent works')\n"
    )
    done = _run(code, package(tmp_path / "m.ekpkg", 32))
    assert (done.returncode, done.stdout) == (0, "refused parent works\n"), done.stderr
