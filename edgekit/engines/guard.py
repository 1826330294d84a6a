"""What every session refuses in the same words: use after close, in a forked child, or from two threads at once."""

from __future__ import annotations

import os
import threading
from types import TracebackType

from edgekit.errors import EngineError, FatalEngineError


class SessionGuard:
    """Brackets one use of a session: `with guard: ...`.

    Args:
        label: What it guards, for messages, such as "onnxruntime session".
        parent: Guard of the model that the session belongs to; the session is unusable once that is closed.
    """

    def __init__(self, label: str, parent: SessionGuard | None = None) -> None:
        self._label = label
        self._parent = parent
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._closed = False

    def check_open(self) -> None:
        """Refuses use after close and in a forked child.

        Raises:
            FatalEngineError: One of the two.
        """
        if os.getpid() != self._process:
            raise FatalEngineError(
                "belongs to the parent process", where=self._label, hint="load the model in the child, after the fork"
            )
        if self._closed:
            raise FatalEngineError("is closed", where=self._label)
        if self._parent is not None:
            self._parent.check_open()

    def close(self) -> bool:
        """Marks it closed, waiting for a use in progress to end.

        Returns:
            True on the first call in the process that made it: whoever gets it frees the resources.
        """
        if os.getpid() != self._process:
            return False
        with self._lock:
            first = not self._closed
            self._closed = True
        return first

    def __enter__(self) -> None:
        self.check_open()
        if not self._lock.acquire(blocking=False):
            raise EngineError(
                "is in use by another thread", where=self._label, hint="give each thread a session of its own"
            )
        if self._closed:  # closed between the check and the lock
            self._lock.release()
            raise FatalEngineError("is closed", where=self._label)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
