"""Keeps libraries underneath from reporting their use."""

from __future__ import annotations

import sys


def withhold_openvino_telemetry() -> None:
    """Call it before OpenVINO is imported: without this module OpenVINO uses a stub of its own.

    With it, the first import tells its makers so, from a forked copy of this process. That is no business of a device,
    and a fork in the middle of another thread's loading of a library leaves a child whose first dlopen() fails, with a
    line of ld.so on our standard error. Where the application has imported either already, nothing is changed.
    """
    if "openvino" not in sys.modules:
        # None means that it can't be imported; the type of sys.modules does not know that.
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
