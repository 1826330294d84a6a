"""A moving test pattern, paced like a camera, of which no frame is lost unless a stream is told that it is live."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from types import TracebackType

import numpy as np

from edgekit.errors import SourceError
from edgekit.vision.frame import MAX_SIDE_PX, Frame, ImageArray

_FORM = re.compile(r"^test(?::(?:(\d+)x(\d+))?(?:@(\d+(?:\.\d+)?))?(?:#(\d+))?)?$")

# Colour bars of full brightness, left to right as in ITU-R BT.471.
_BARS = np.array(
    [[255, 255, 255], [255, 255, 0], [0, 255, 255], [0, 255, 0], [255, 0, 255], [255, 0, 0], [0, 0, 255], [0, 0, 0]],
    dtype=np.uint8,
)


class TestPattern:
    """Colour bars with a white square that moves. Like a file it waits until its frames are taken.

    Args:
        width: In pixels.
        height: In pixels.
        fps: Most frames a second; 0: as fast as they are taken.
        frames: How many there are; None: without end.
    """

    __test__ = False  # not a test, whatever pytest thinks of the name
    live = False

    def __init__(self, width: int = 640, height: int = 480, fps: float = 30.0, frames: int | None = None) -> None:
        self.fps = fps
        self.name = f"test:{width}x{height}@{fps:g}"
        self._frames = frames
        bars = _BARS[np.minimum(np.arange(width) * len(_BARS) // width, len(_BARS) - 1)]
        self._ground: ImageArray = np.ascontiguousarray(np.broadcast_to(bars, (height, width, 3)))
        self._closed = False

    @classmethod
    def parse(cls, text: str) -> TestPattern:
        """Reads "test:WIDTHxHEIGHT@FPS#FRAMES"; every part may be left out.

        Raises:
            SourceError: Another form, or a size or rate out of range.
        """
        match = _FORM.match(text)
        if match is None:
            raise SourceError("malformed test pattern", got=text, expected="test:WIDTHxHEIGHT@FPS#FRAMES")
        width, height, fps, frames = match.groups()
        size = (int(width or 640), int(height or 480))
        if not all(1 <= side <= MAX_SIDE_PX for side in size) or size[0] * size[1] > 1 << 26:
            raise SourceError("test pattern has an impossible size", got=f"{size[0]}x{size[1]}")
        rate = float(fps or 30.0)
        if rate > 10_000:
            raise SourceError("test pattern has an impossible rate", got=f"{rate:g}")
        return cls(*size, rate, int(frames) if frames else None)

    def picture(self, number: int) -> ImageArray:
        """The picture of a frame: uint8 (height, width, 3), RGB, fresh."""
        picture = self._ground.copy()
        height, width = picture.shape[:2]
        side = max(1, min(height, width) // 8)
        x = number * 7 % max(1, width - side)
        y = number * 5 % max(1, height - side)
        picture[y : y + side, x : x + side] = 255
        return picture

    def __iter__(self) -> Iterator[Frame]:
        """Yields frames at the set rate; late ones at once, without skipping any."""
        start_ns = time.monotonic_ns()
        number = 0
        while not self._closed and (self._frames is None or number < self._frames):
            due_ns = start_ns + int(number * 1e9 / self.fps) if self.fps > 0 else 0
            wait_s = (due_ns - time.monotonic_ns()) / 1e9
            if wait_s > 0:
                time.sleep(wait_s)
            now_ns = time.monotonic_ns()
            yield Frame.from_array(self.picture(number), timestamp_ns=now_ns, frame_id=number, name=self.name)
            number += 1

    def close(self) -> None:
        """Ends the iteration at the next frame."""
        self._closed = True

    def __enter__(self) -> TestPattern:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
