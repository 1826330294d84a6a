"""What a stream gives for each frame, and how a stream is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgekit.errors import UsageError
from edgekit.vision.frame import Frame
from edgekit.vision.frame_transform import FrameTransform
from edgekit.vision.results import Result


@dataclass(frozen=True)
class StreamOptions:
    """How a stream works.

    Attributes:
        slots: Prepared inputs at a time. Two: one in flight and one queued, the balance that keeps latency low.
        ingress: Frames that wait in front of preprocessing. Live sources replace the oldest of them.
        results: Results that wait for the reader. Live: the oldest unread one is replaced and counted as skipped, so
            that a slow reader never stalls inference. Otherwise inference waits.
        deadline_s: Live sources: how long a frame may stay away before the stream fails.
        close_timeout_s: How long close() waits for a thread that is inside an engine or a device.
    """

    slots: int = 2
    ingress: int = 1
    results: int = 2
    deadline_s: float = 5.0
    close_timeout_s: float = 5.0

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: One is out of range.
        """
        for name, value, most in (
            ("slots", self.slots, 64),
            ("ingress", self.ingress, 1024),
            ("results", self.results, 1024),
        ):
            if not 1 <= value <= most:
                raise UsageError("stream option is out of range", where=name, got=value, expected=f"1..{most}")
        for name, seconds in (("deadline_s", self.deadline_s), ("close_timeout_s", self.close_timeout_s)):
            if not seconds > 0:
                raise UsageError("stream option is out of range", where=name, got=seconds, expected="above 0")


@dataclass(frozen=True)
class StreamResult:
    """The result of one frame. Attributes of the task's result can be read here too: r.boxes_xyxy_px, r.labels, ...

    Attributes:
        frame: The frame itself.
        result: What the task gave.
        transform: The way between source and input pixels of this very frame.
        stage_ms: Milliseconds by stage: capture (from the frame's timestamp to the ingress), preprocess, queue (waiting
            before preprocessing and before inference), infer, postprocess.
        age_ms: From the frame's timestamp until the reader got the result.
        dropped: Frames that the ingress had dropped when this one was run; they were never run.
        skipped: Results that had been replaced unread when this one was read (live streams with slow readers).
    """

    frame: Frame
    result: Result
    transform: FrameTransform
    stage_ms: Mapping[str, float]
    age_ms: float = 0.0
    dropped: int = 0
    skipped: int = 0

    @property
    def frame_id(self) -> int:
        """Number of the frame in its source, from 0."""
        return self.frame.frame_id

    @property
    def timestamp_ns(self) -> int:
        """time.monotonic_ns() when the frame was taken."""
        return self.frame.timestamp_ns

    def __getattr__(self, name: str) -> Any:
        # Only called for what the class itself lacks. Private names are kept out, so that copying and pickling work.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.result, name)
