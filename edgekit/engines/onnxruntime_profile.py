"""Reads the Chrome trace that ONNX Runtime writes when it profiles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgekit.engines.base import LayerTime

_KERNEL = "_kernel_time"


def read_profile(path: Path) -> list[LayerTime]:
    """Returns the time of every node in the last run of a profile, in order of execution.

    Args:
        path: The JSON file that end_profiling() names: events with cat "Node" and durations in microseconds.
    """
    events = json.loads(path.read_text(encoding="utf-8"))
    runs = [event for event in events if event.get("name") == "model_run"]
    start = max((event["ts"] for event in runs), default=0)
    return list(_layers(events, start))


def _layers(events: list[dict[str, Any]], start_us: int) -> Iterator[LayerTime]:
    for event in events:
        name = event.get("name", "")
        if event.get("cat") == "Node" and name.endswith(_KERNEL) and event["ts"] >= start_us:
            arguments = event.get("args", {})
            op, provider = arguments.get("op_name", ""), arguments.get("provider", "")
            yield LayerTime(name.removesuffix(_KERNEL), op, provider.removesuffix("ExecutionProvider"), event["dur"])
