"""model.stream(): capture | preprocess | infer | postprocess, overlapped.

Preprocessing runs on a thread of the native core, which also holds the ingress and the slots (native/pipeline), and so
does inference when the engine is the native one: no Python runs between a frame's capture and its outputs. For other
engines a Python thread takes the prepared inputs and calls the engine. Capture and post-processing have a thread each;
all of them are outside the GIL while they wait, decode, infer and decode outputs. The reader's code runs in the
reader's own thread, behind a bounded mailbox.
"""

from __future__ import annotations

import atexit
import dataclasses
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from edgekit import _native
from edgekit.engines.base import Array, Session
from edgekit.engines.native import NativeSession
from edgekit.errors import FatalEngineError, SourceError, UsageError
from edgekit.runtime.mailbox import Closed, Mailbox
from edgekit.runtime.stream_result import StreamOptions, StreamResult
from edgekit.runtime.tasks import ImageTask
from edgekit.vision.frame import Frame
from edgekit.vision.frame_transform import FrameTransform
from edgekit.vision.sources import FrameSource, open_source

if TYPE_CHECKING:
    from edgekit.runtime.model import Model

OpenSession = Callable[[], AbstractContextManager[Session]]

# How often a waiting reader looks whether the source is overdue.
_WATCH_S = 0.1


@dataclasses.dataclass(frozen=True)
class _Prepared:
    """One frame between two stages."""

    frame: Frame
    transform: FrameTransform
    outputs: dict[str, Array]
    stage_ms: dict[str, float]
    dropped: int


class Stream:
    """Results of a source's frames, in order. A context manager and an iterator; one thread may iterate.

    With live sources the newest frame is run and older ones are dropped at the ingress, counted; otherwise every frame
    is run. An error of any stage is raised once, after the results before it; then the iteration is over.

    Args:
        task: How to prepare frames and what to make of outputs.
        open_session: Lends a session to the inference thread for the life of the stream.
        source: Whatever open_source takes. The stream closes what it opened itself.
        live: See Model.stream.
        options: See StreamOptions.

    Raises:
        SourceError: The source can't be opened.
    """

    def __init__(
        self,
        task: ImageTask,
        open_session: OpenSession,
        source: object,
        *,
        live: bool | None = None,
        options: StreamOptions | None = None,
    ) -> None:
        self.options = options or StreamOptions()
        self._task = task
        self._open_session = open_session
        self._owns_source = not isinstance(source, FrameSource)
        self.source = open_source(source, deadline_s=self.options.deadline_s)
        self.live = self.source.live if live is None else live
        self._process = os.getpid()
        self._native = _native.FramePipeline(self.options.slots, self.options.ingress, self.live)
        self._outputs: Mailbox[_Prepared] = Mailbox(1, latest=False)
        self._results: Mailbox[StreamResult] = Mailbox(self.options.results, latest=self.live)
        self._captured = 0
        self._source_error: BaseException | None = None
        self._waiting_since: float | None = None
        self._stopped = threading.Event()
        self._close_lock = threading.Lock()
        stages = (self._capture, self._infer, self._postprocess)
        self._threads = [
            threading.Thread(target=self._guarded, args=(stage,), name=f"edgekit-{stage.__name__[1:]}", daemon=True)
            for stage in stages
        ]
        _open_streams.add(self)
        for thread in self._threads:
            thread.start()

    @property
    def dropped(self) -> int:
        """Frames that the ingress dropped so far."""
        return self._native.dropped

    @property
    def captured(self) -> int:
        """Frames that the source gave so far."""
        return self._captured

    def __iter__(self) -> Iterator[StreamResult]:
        return self

    def __next__(self) -> StreamResult:
        if os.getpid() != self._process:
            raise FatalEngineError("stream belongs to the parent process", hint="open it in the child, after the fork")
        while True:
            try:
                result = self._results.get(_WATCH_S)
            except TimeoutError:
                self._check_source()
                continue
            except Closed:
                self.close()
                raise StopIteration from None
            except BaseException:
                self.close()
                raise
            age_ms = (time.monotonic_ns() - result.timestamp_ns) / 1e6
            return dataclasses.replace(result, age_ms=age_ms, skipped=self._results.replaced)

    def close(self) -> None:
        """Stops all stages; safe to call twice, from any thread and in any state.

        Waits at most options.close_timeout_s for threads inside an engine or device; what hangs longer than that is
        left to end by itself.
        """
        if os.getpid() != self._process:
            return
        self._stopped.set()
        self._results.close()
        self._outputs.close()
        deadline = time.monotonic() + self.options.close_timeout_s
        with self._close_lock:
            self._native.close()
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join(max(0.0, deadline - time.monotonic()))
            _open_streams.discard(self)

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _guarded(self, stage: Callable[[], None]) -> None:
        """Runs a stage; its failure becomes the stream's, unless the stream is being closed."""
        try:
            stage()
        except Closed:
            pass
        except BaseException as error:
            if not self._stopped.is_set():
                self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Ends the stream after what is already finished. Frames in between are not run."""
        self._results.end(error)
        self._stopped.set()
        self._outputs.close()
        self._native.close()

    def _check_source(self) -> None:
        since = self._waiting_since
        if self.live and since is not None and time.monotonic() - since > self.options.deadline_s:
            self._fail(
                SourceError(
                    f"no frame for {self.options.deadline_s:g} s",
                    where=self.source.name,
                    hint="is the camera still there?",
                )
            )

    def _capture(self) -> None:
        try:
            frames = iter(self.source)
            while not self._stopped.is_set():
                self._waiting_since = time.monotonic()
                frame = next(frames, None)
                self._waiting_since = None
                if frame is None:
                    break
                self._captured += 1
                if not self._push(frame):
                    return
            self._native.end()
        except BaseException as error:
            # Frames before the fault are still run; the error follows them.
            self._source_error = error
            self._native.end()
        finally:
            if self._owns_source:
                self.source.close()

    def _push(self, frame: Frame) -> bool:
        """Hands a frame in; False when the stream is being closed."""
        native, transform = self._task.preparer.plan(frame)
        taken: bool | None = False
        while taken is False:
            taken = self._native.push(native, list(frame.planes), (frame, transform), 1.0, self._task.bucket(transform))
        return taken is True

    def _infer(self) -> None:
        try:
            with self._open_session() as session:
                if isinstance(session, NativeSession) and (core := session.core_session()) is not None:
                    self._infer_in_core(session, core)
                else:
                    self._pump(session)
        except Closed:
            raise
        except BaseException as error:
            self._native.close()
            self._outputs.end(error)  # postprocessing raises it after what came before
        else:
            self._outputs.end(self._source_error)

    def _pump(self, session: Session) -> None:
        """Calls the engine for each prepared frame."""
        while (taken := self._native.take(1.0)) is not None:
            if taken is not False:
                self._outputs.put(self._run(session, *taken))

    def _infer_in_core(self, session: NativeSession, core: _native.Session) -> None:
        """Lets a thread of the core call the engine, and finishes here what it gives: one hand-over less."""
        self._native.infer_with(core)
        while (done := self._native.take_result(1.0)) is not None:
            session.check_open()
            if done is False:
                continue
            outputs, (frame, transform), times_ns, dropped = done
            self._finish(_Prepared(frame, transform, outputs, _stage_ms(frame, times_ns), dropped))

    def _run(
        self,
        session: Session,
        slot: int,
        data: np.ndarray[Any, np.dtype[np.uint8]],
        token: tuple[Frame, FrameTransform],
        *times_ns: int,
    ) -> _Prepared:
        frame, transform = token
        feed = self._task.preparer.as_input(data, transform.input_hw)
        dropped = self._native.dropped
        start_ns = time.monotonic_ns()
        try:
            outputs = session.run({self._task.input_name: feed})
        finally:
            self._native.release(slot)
        pushed_ns, prepare_ns, prepared_ns = times_ns
        passed_ns = (pushed_ns, prepare_ns, prepared_ns, start_ns, time.monotonic_ns())
        stage_ms = _stage_ms(frame, passed_ns)
        return _Prepared(frame, transform, outputs, stage_ms, dropped)

    def _postprocess(self) -> None:
        try:
            while True:
                self._finish(self._outputs.get())
        except Closed:
            self._results.end()

    def _finish(self, item: _Prepared) -> None:
        start_ns = time.monotonic_ns()
        result = self._task.finish(item.outputs, item.transform)
        stage_ms = {**item.stage_ms, "postprocess": (time.monotonic_ns() - start_ns) / 1e6}
        self._results.put(StreamResult(item.frame, result, item.transform, stage_ms, dropped=item.dropped))


def _stage_ms(frame: Frame, passed_ns: tuple[int, int, int, int, int]) -> dict[str, float]:
    """Milliseconds by stage from the times at which a frame was pushed, and prepared and inferred from and to."""
    pushed_ns, prepare_ns, prepared_ns, infer_ns, inferred_ns = passed_ns
    return {
        "capture": (pushed_ns - frame.timestamp_ns) / 1e6 if frame.timestamp_ns else 0.0,
        "preprocess": (prepared_ns - prepare_ns) / 1e6,
        "queue": (prepare_ns - pushed_ns + infer_ns - prepared_ns) / 1e6,
        "infer": (inferred_ns - infer_ns) / 1e6,
    }


_open_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Threads still inside an engine when the interpreter ends would abort the process."""
    for stream in list(_open_streams):
        stream.close()


def open_stream(model: Model, source: object, *, live: bool | None = None, **options: Any) -> Stream:
    """Opens a stream of a model; see Model.stream. options: the fields of StreamOptions.

    Raises:
        UsageError: The package takes no picture, or an option is out of range.
        SourceError: The source can't be opened.
    """
    task = ImageTask.of(model.manifest)
    return Stream(task, model.pool.lease, source, live=live, options=_stream_options(options))


def _stream_options(options: dict[str, Any]) -> StreamOptions:
    known = {field.name for field in dataclasses.fields(StreamOptions)}
    unknown = sorted(set(options) - known)
    if unknown:
        raise UsageError("no such stream option", got=unknown[0], expected=", ".join(sorted(known)))
    return StreamOptions(**options)
