"""A bounded queue between two threads that can end, fail and be closed."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Closed(Exception):  # noqa: N818 - an end, not an error
    """The mailbox is closed, or has ended and is empty."""


class Mailbox(Generic[T]):
    """A bounded queue.

    Args:
        capacity: Items that may wait.
        latest: A new item replaces the oldest waiting one; otherwise put() waits for room.
    """

    def __init__(self, capacity: int, *, latest: bool) -> None:
        self._capacity = capacity
        self._latest = latest
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._closed = False
        self._error: BaseException | None = None
        self.replaced = 0

    def put(self, item: T) -> None:
        """Adds an item.

        Raises:
            Closed: The mailbox is closed or has ended.
        """
        with self._changed:
            while not self._latest and len(self._items) >= self._capacity and not self._closed:
                self._changed.wait()
            if self._closed or self._ended:
                raise Closed
            while len(self._items) >= self._capacity:
                self._items.popleft()
                self.replaced += 1
            self._items.append(item)
            self._changed.notify_all()

    def get(self, timeout_s: float | None = None) -> T:
        """Takes the oldest item; an error is raised once, after all items before it.

        Raises:
            TimeoutError: None came in time.
            Closed: There will be no more.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while not self._items:
                if self._error is not None and not self._closed:
                    error, self._error = self._error, None
                    raise error
                if self._ended or self._closed:
                    raise Closed
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError
                self._changed.wait(left)
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def end(self, error: BaseException | None = None) -> None:
        """No more items will come; the first error given is the one that get() raises."""
        with self._changed:
            if not self._ended:
                self._error = error
            self._ended = True
            self._changed.notify_all()

    def close(self) -> None:
        """Throws away what waits and wakes everybody."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()
