"""Lets a forked child exit although the parent's engines had threads, which the child does not have.

Destructors of ONNX Runtime and OpenVINO wait for their worker threads; in a child these are gone and the wait never
ends. So in a child, objects of such libraries are never destroyed, neither while Python shuts down nor after.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

_holders: weakref.WeakSet[Any] = weakref.WeakSet()


def never_destroy_in_child(holder: object) -> None:
    """Keeps an object, and with it everything it refers to, alive for ever in children forked from now on.

    Args:
        holder: Anything that can be weakly referenced.
    """
    _holders.add(holder)


def _in_child() -> None:
    if not _holders:
        return
    import ctypes

    for holder in list(_holders):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(holder))
    # on_exit(3) handlers run before the static destructors registered earlier; Python has flushed its streams and run
    # its own atexit handlers by then. Only glibc has it.
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
