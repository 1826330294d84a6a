"""model.stream(): order, drops, ages, errors and shutdown, with a session of set latency."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from edgekit.errors import EngineError, ImageError, SourceError, UsageError
from edgekit.package.manifest import Manifest
from edgekit.package.specs import PostprocessSpec, PreprocessSpec, TensorSpec
from edgekit.runtime.mailbox import Closed, Mailbox
from edgekit.runtime.pipeline import Stream, _stream_options
from edgekit.runtime.stream_result import StreamOptions
from edgekit.runtime.tasks import ImageTask
from edgekit.vision.frame import Frame
from edgekit.vision.test_pattern import TestPattern

MANIFEST = Manifest(
    1, 0, "test", "0", "m.onnx", "p", "0",
    inputs=(TensorSpec("x", "float32", (1, 3, 32, 32), "nchw"),), outputs=(TensorSpec("y", "float32", (1, 3)),),
    variants=(), members={}, preprocess=PreprocessSpec(resize="letterbox", scale=1.0),
    postprocess=PostprocessSpec("classify", "probabilities", top_k=3),
)  # fmt: skip


FOLDER = str(Path(__file__).resolve().parent)


class Session:
    """Answers with the mean of each channel after a set time."""

    def __init__(self, latency_s=0.0, fail_at=None):
        self.latency_s, self.fail_at, self.runs, self.open = latency_s, fail_at, 0, 0

    @contextlib.contextmanager
    def lease(self):
        self.open += 1
        try:
            yield self
        finally:
            self.open -= 1

    def run(self, feeds):
        self.runs += 1
        if self.runs == self.fail_at:
            raise EngineError("the engine failed")
        time.sleep(self.latency_s)
        return {"y": feeds["x"].mean(axis=(2, 3))}


class Camera:
    """A live source of numbered frames."""

    live, fps, name = True, 0.0, "camera"

    def __init__(self, frames):
        self.frames, self.closed = frames, False

    def __iter__(self):
        yield from self.frames

    def close(self):
        self.closed = True

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()


def numbered(count, size=(32, 32)):
    for number in range(count):
        picture = np.full((*size, 3), number % 256, np.uint8)
        yield Frame.from_array(picture, frame_id=number, timestamp_ns=time.monotonic_ns())


def stream(source, session=None, **options):
    live = options.pop("live", None)
    session = session or Session()
    return Stream(ImageTask.of(MANIFEST), session.lease, source, live=live, options=StreamOptions(**options))


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("edgekit-")]


def test_three_hundred_frames_in_and_out_in_order():
    sizes = [(32, 32), (480, 640), (33, 77), (720, 1280)]
    frames = (Frame.from_array(np.full((*sizes[n % 4], 3), n % 256, np.uint8), frame_id=n) for n in range(300))
    with stream(frames) as results:
        got = [(r.frame_id, round(float(r.scores[0])), r.transform.source_hw) for r in results]
        assert results.dropped == 0
        assert results.captured == 300
    assert [frame_id for frame_id, _, _ in got] == list(range(300))
    # Letterbox padding is 114, so only square frames have a mean of their own; each came with its own transform.
    assert [mean for frame_id, mean, _ in got if frame_id % 4 == 0] == [n % 256 for n in range(0, 300, 4)]
    assert [size for _, _, size in got] == [sizes[n % 4] for n in range(300)]
    assert not threads()


def test_a_slow_reader_of_a_file_loses_nothing():
    with stream(numbered(30)) as results:
        got = []
        for result in results:
            time.sleep(0.005)
            got.append(result.frame_id)
    assert got == list(range(30))


def test_live_source_faster_than_the_engine():
    """Two and a half times as many frames as the engine takes: bounded age, drops counted, order kept."""
    engine_s, frame_s, count = 0.2, 0.08, 50
    session = Session(engine_s)
    with stream(TestPattern(64, 48, 1 / frame_s, count), session, live=True) as results:
        got = list(results)
        dropped = results.dropped
    ids = [r.frame_id for r in got]
    assert ids == sorted(set(ids))
    assert ids[-1] == count - 1  # the last frame is the newest one and is never dropped
    assert len(got) + dropped == count
    assert dropped > 0.3 * count
    ages_in_engine_times = np.array([r.age_ms / 1e3 / engine_s for r in got])
    assert np.quantile(ages_in_engine_times, 0.99) < 3
    assert got[-1].dropped <= dropped
    assert [r.dropped for r in got] == sorted(r.dropped for r in got)


@pytest.mark.parametrize("slow", ["engine", "reader"])
@pytest.mark.parametrize("fps", [0, 500])
def test_a_test_pattern_loses_nothing_unless_it_is_live(slow, fps):
    session = Session(0.01 if slow == "engine" else 0.0)
    with stream(TestPattern(64, 48, fps, 20), session) as results:
        got = []
        for result in results:
            time.sleep(0.01 if slow == "reader" else 0.0)
            got.append(result)
    assert [r.frame_id for r in got] == list(range(20))
    assert (results.dropped, got[-1].dropped, got[-1].skipped) == (0, 0, 0)


def test_a_slow_reader_does_not_stall_a_live_stream():
    session = Session(0.002)
    with stream(TestPattern(64, 48, 100, 100), session, live=True) as results:
        got = []
        for result in results:
            time.sleep(0.05)
            got.append(result)
        dropped = results.dropped
    assert session.runs + dropped == 100
    assert session.runs > 2 * len(got)  # inference went on while the reader slept
    assert got[-1].skipped == session.runs - len(got)


def test_one_frame_in_flight_and_one_queued():
    """While the engine is busy, exactly `slots` frames have left the ingress."""
    gate, entered = threading.Event(), threading.Event()

    class Gated(Session):
        def run(self, feeds):
            entered.set()
            gate.wait(30)
            return super().run(feeds)

    taken = []

    def frames():
        for frame in numbered(20):
            taken.append(frame.frame_id)
            yield frame

    with stream(frames(), Gated()) as results:
        assert entered.wait(30)
        previous = -1
        while len(taken) != previous:  # until capture is stuck
            previous = len(taken)
            time.sleep(0.2)
        # One in flight, one queued, one in the ingress, one in the hands of the capture thread.
        assert len(taken) == 4
        gate.set()
        assert [r.frame_id for r in results] == list(range(20))


def test_results_carry_times_of_all_stages():
    with stream(numbered(3), Session(0.01)) as results:
        result = next(results)
    assert set(result.stage_ms) == {"capture", "preprocess", "queue", "infer", "postprocess"}
    assert all(ms >= 0 for ms in result.stage_ms.values())
    assert result.stage_ms["infer"] >= 10
    assert result.age_ms >= result.stage_ms["infer"]
    assert result.labels == ["0", "1", "2"]
    with pytest.raises(AttributeError):
        _ = result.no_such_thing


def test_an_error_of_the_engine_comes_once_after_the_results_before_it():
    with stream(numbered(50), Session(fail_at=11)) as results:
        got = []
        with pytest.raises(EngineError, match="the engine failed"):
            for result in results:
                got.append(result.frame_id)
        assert got == list(range(10))
        assert next(results, None) is None
    assert not threads()


def test_an_error_of_the_source_comes_after_all_frames_before_it():
    def frames():
        yield from numbered(7)
        raise SourceError("the camera fell off the wall")

    with stream(frames()) as results:
        got = []
        with pytest.raises(SourceError, match="wall"):
            for result in results:
                got.append(result.frame_id)
    assert got == list(range(7))


def test_an_unreadable_picture_is_an_error_of_the_source(tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"nothing")
    with stream([np.zeros((8, 8, 3), np.uint8), bad]) as results:
        assert next(results).frame_id == 0
        with pytest.raises(ImageError, match=r"bad\.png"):
            next(results)


def test_an_error_of_postprocessing_comes_once():
    class Wrong(Session):
        def run(self, feeds):
            return {"z": feeds["x"]}

    with stream(numbered(5), Wrong()) as results, pytest.raises(Exception, match="missing"):
        list(results)
    assert not threads()


def test_a_camera_that_stops_is_an_error_within_the_deadline():
    unplugged = threading.Event()

    def frames():
        yield from numbered(3)
        unplugged.wait(60)

    with stream(Camera(frames()), deadline_s=0.3, close_timeout_s=0.2) as results:
        with pytest.raises(SourceError, match=r"no frame for 0\.3 s"):
            list(results)
        assert next(results, None) is None
    unplugged.set()


def test_closing_in_any_state_ends_all_threads():
    for after in (0, 1, 5):
        session = Session(0.001)
        results = stream(numbered(10_000), session)
        for _ in range(after):
            next(results)
        results.close()
        results.close()
        assert next(results, None) is None
        assert session.open == 0
        assert not threads()


def test_a_thousand_streams():
    descriptors = Path("/proc/self/fd")
    open_files = len(list(descriptors.iterdir())) if descriptors.exists() else None
    for index in range(1000):
        results = stream(numbered(3))
        if index % 3 == 0:
            next(results)
        if index % 3 == 1:
            assert len(list(results)) == 3
        results.close()
    assert not threads()
    if open_files is not None:
        assert len(list(descriptors.iterdir())) <= open_files + 2


def test_closing_from_another_thread_ends_the_reader():
    results = stream(Camera(numbered(10**9)), Session(0.01))
    got = []
    reader = threading.Thread(target=lambda: got.extend(r.frame_id for r in results))
    reader.start()
    while not got:
        time.sleep(0.01)
    results.close()
    reader.join(30)
    assert not reader.is_alive()


def test_the_stream_closes_what_it_opened_and_nothing_else():
    camera = Camera(numbered(2))
    with stream(camera) as results:
        list(results)
    assert not camera.closed


def test_other_threads_run_while_the_stream_works():
    """The GIL is released: a counting thread keeps its rate to a good part while large frames are prepared."""
    big = Frame.from_array(np.zeros((1080, 1920, 3), np.uint8))

    def rate(stop_when):
        ticks = 0
        start = time.perf_counter()
        while not stop_when():
            ticks += 1
            time.sleep(0)
        return ticks / (time.perf_counter() - start)

    deadline = time.perf_counter() + 0.3
    idle = rate(lambda: time.perf_counter() > deadline)
    with stream((big for _ in range(150)), Session(0.002)) as results:
        reader = threading.Thread(target=lambda: list(results))
        reader.start()
        busy = rate(lambda: not reader.is_alive())
    # Other processes share this machine: a tenth would already mean that the GIL was held throughout.
    assert busy > 0.1 * idle


def test_interpreter_exit_with_an_open_stream():
    code = (
        f"import sys; sys.path.insert(0, {FOLDER!r}); import test_pipeline as t;"
        "s = t.stream(t.Camera(t.numbered(10**9)), t.Session(0.01)); print(next(s).labels)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=sys.prefix, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "['0', '1', '2']\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_gets_a_clear_error():
    code = (
        f"import os, sys; sys.path.insert(0, {FOLDER!r}); import test_pipeline as t\n"
        "from edgekit.errors import FatalEngineError\n"
        "s = t.stream(t.Camera(t.numbered(10**9)), t.Session(0.01)); next(s)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try: next(s)\n"
        "    except FatalEngineError: os.write(1, b'refused ')\n"
        "    s.close(); sys.exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "next(s); print('parent works')\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=sys.prefix,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "refused parent works\n"), done.stderr


@pytest.mark.parametrize("options", [{"slots": 0}, {"results": 5000}, {"deadline_s": 0}, {"no_such": 1}])
def test_options_out_of_range(options):
    with pytest.raises(UsageError):
        _stream_options(options)


def test_a_package_without_pictures():
    from edgekit.records import replace

    with pytest.raises(UsageError, match="no picture"):
        ImageTask.of(replace(MANIFEST, preprocess=None))


def test_mailbox():
    box = Mailbox(2, latest=True)
    for item in range(5):
        box.put(item)
    assert box.replaced == 3
    assert [box.get(), box.get()] == [3, 4]
    with pytest.raises(TimeoutError):
        box.get(0.001)
    box.put(9)
    box.end(ValueError("first"))
    box.end(ValueError("second"))
    with pytest.raises(Closed):
        box.put(1)
    assert box.get() == 9
    with pytest.raises(ValueError, match="first"):
        box.get()
    with pytest.raises(Closed):
        box.get()
