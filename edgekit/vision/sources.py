"""Where frames come from: pictures, folders, globs, videos, streams, cameras, test patterns, anything iterable."""

from __future__ import annotations

import dataclasses
import glob
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, cast, runtime_checkable

import numpy as np

from edgekit.errors import SourceError
from edgekit.vision.frame import Frame
from edgekit.vision.images import IMAGE_SUFFIXES, ImageLike, list_images, load_image
from edgekit.vision.test_pattern import TestPattern

DEFAULT_DEADLINE_S = 5.0

_URL = re.compile(r"^(rtsp|rtsps|rtmp|http|https|udp|tcp|srt)://", re.IGNORECASE)
_GLOB = re.compile(r"[*?\[]")


@runtime_checkable
class FrameSource(Protocol):
    """Frames in order, numbered from 0, once through.

    Attributes:
        live: Frames come at their own pace, whether they are taken or not.
        fps: Frames a second; 0 when unknown.
        name: Path, URL or device.
    """

    live: bool
    fps: float
    name: str

    def __iter__(self) -> Iterator[Frame]:
        """Yields frames; raises SourceError when a frame does not come before the deadline."""
        ...

    def close(self) -> None:
        """Frees the device or file; to be called by the thread that iterates, or when none does; safe to call twice."""
        ...

    def __enter__(self) -> FrameSource:
        """Returns itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it."""
        ...


class PictureSource:
    """Still pictures, numbered in their order.

    Args:
        pictures: Whatever load_image takes; read one at a time.
        name: For errors.
    """

    live = False
    fps = 0.0

    def __init__(self, pictures: Iterable[ImageLike], name: str = "pictures") -> None:
        self._pictures = pictures
        self.name = name

    def __iter__(self) -> Iterator[Frame]:
        """Yields the pictures as frames; Frames keep the numbers and times that they have.

        Raises:
            ImageError: One can't be read.
        """
        for number, picture in enumerate(self._pictures):
            frame = load_image(picture)
            yield dataclasses.replace(
                frame,
                frame_id=frame.frame_id or number,
                timestamp_ns=frame.timestamp_ns or time.monotonic_ns(),
            )

    def close(self) -> None:
        """Does nothing."""

    def __enter__(self) -> PictureSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_source(source: object, *, deadline_s: float = DEFAULT_DEADLINE_S) -> FrameSource:
    """Opens a source of frames.

    Args:
        source: A picture, folder of pictures, glob, video file or URL (rtsp, http, ...) as str or Path; a camera index
            or /dev/video path; a test pattern "test:WIDTHxHEIGHT@FPS#FRAMES" (all parts optional); one array, picture
            or Frame; an iterable of those; or a FrameSource, which is returned as it is.
        deadline_s: How long opening, or waiting for a frame of a live source, may take.

    Raises:
        SourceError: It can't be opened; one line.
        MissingDependencyError: PyAV or Pillow is needed and not installed.
    """
    if isinstance(source, FrameSource):
        return source
    if isinstance(source, bool) or source is None:
        raise SourceError("not a source of frames", got=repr(source))
    if isinstance(source, int):
        return _open_camera(source, deadline_s)
    if isinstance(source, (Frame, bytes, bytearray, memoryview, np.ndarray)) or hasattr(source, "getexif"):
        return PictureSource([cast("ImageLike", source)])
    if isinstance(source, (str, Path)):
        return _open_text(str(source), deadline_s)
    if isinstance(source, Iterable):
        return PictureSource(source)
    raise SourceError("not a source of frames", got=type(source).__name__)


def _open_text(text: str, deadline_s: float) -> FrameSource:
    if not text:  # Path("") would be the current folder
        raise SourceError("the source's name is empty", expected="a file, folder, camera index or address")
    if text == "test" or text.startswith("test:"):
        return TestPattern.parse(text)
    if text.isdecimal():
        return _open_camera(int(text), deadline_s)
    if text.startswith("/dev/video") or _URL.match(text):
        return _open_video(text, deadline_s, live=True)
    path = Path(text)
    if path.is_dir():
        pictures = list_images(path)
        if not pictures:
            raise SourceError("folder has no pictures", where=path, expected=", ".join(sorted(IMAGE_SUFFIXES)))
        return PictureSource(pictures, text)
    if not path.exists():
        if _GLOB.search(text):
            return _open_glob(text)
        raise SourceError("no such file, folder or camera", where=text, hint="check the path; 0 is the first camera")
    if path.suffix.lower() in IMAGE_SUFFIXES:
        return PictureSource([path], text)
    return _open_video(text, deadline_s, live=False)


def _open_glob(pattern: str) -> FrameSource:
    # glob.glob and not Path.glob, which refuses absolute patterns.
    found = sorted(Path(name) for name in glob.glob(pattern, recursive=True))  # noqa: PTH207
    pictures = [path for path in found if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file()]
    if not pictures:
        raise SourceError("no picture matches", where=pattern)
    return PictureSource(pictures, pattern)


def _open_camera(index: int, deadline_s: float) -> FrameSource:
    if index < 0:
        raise SourceError("camera index is negative", got=index)
    device = f"/dev/video{index}"
    if not Path(device).exists():
        raise SourceError("no such camera", where=device, hint="list them with: ls /dev/video*")
    return _open_video(device, deadline_s, live=True)


def _open_video(name: str, deadline_s: float, *, live: bool) -> FrameSource:
    from edgekit.vision.video_source import VideoSource

    return VideoSource(name, deadline_s=deadline_s, live=live)
