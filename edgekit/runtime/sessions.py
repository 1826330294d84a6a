"""A pool of sessions of one model: weights shared, a bounded number, checkout within a deadline."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator

from edgekit.engines.base import Session
from edgekit.errors import DeviceLostError, FatalEngineError, RetryableError

DEFAULT_TIMEOUT_S = 30.0


class SessionPool:
    """Lends sessions; makes them when they are first needed.

    Args:
        create: Makes one.
        limit: Most sessions at a time.
    """

    def __init__(self, create: Callable[[], Session], limit: int) -> None:
        self._create = create
        self._limit = limit
        self._idle: list[Session] = []
        self._made = 0
        self._closed = False
        self._process = os.getpid()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def lease(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> Iterator[Session]:
        """Lends a session to the caller's thread for the length of a with block.

        Args:
            timeout_s: How long to wait for one to come back, in seconds.

        Raises:
            RetryableError: None came back in time.
            FatalEngineError: The pool is closed, or belongs to the parent process.
        """
        session = self._take(timeout_s)
        usable = True
        try:
            yield session
        except (DeviceLostError, FatalEngineError):
            usable = False
            raise
        finally:
            self._give_back(session, usable)

    def close(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Waits for lent sessions until the deadline, then closes; safe to call twice and in a forked child."""
        if os.getpid() != self._process:
            return
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._closed = True
            while self._made > len(self._idle) and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            idle, self._idle = self._idle, []
            self._made -= len(idle)
        for session in idle:
            session.close()

    def _take(self, timeout_s: float) -> Session:
        if os.getpid() != self._process:  # the lock may be held for ever in a forked child
            raise FatalEngineError("model belongs to the parent process", hint="load it in the child, after the fork")
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                if self._closed:
                    raise FatalEngineError("model is closed")
                if self._idle:
                    return self._idle.pop()
                if self._made < self._limit:
                    self._made += 1
                    break
                left = deadline - time.monotonic()
                if left <= 0:
                    raise RetryableError("no session became free in time", got=f"{timeout_s:g} s", expected=self._limit)
                self._changed.wait(left)
        try:
            return self._create()
        except BaseException:
            self._forget()
            raise

    def _give_back(self, session: Session, usable: bool) -> None:
        with self._changed:
            if usable and not self._closed:
                self._idle.append(session)
                self._changed.notify()
                return
        session.close()
        self._forget()

    def _forget(self) -> None:
        with self._changed:
            self._made -= 1
            self._changed.notify_all()
