"""Writing videos through PyAV (FFmpeg)."""

from __future__ import annotations

import contextlib
import os
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from edgekit.errors import ImageError, MissingDependencyError, UsageError
from edgekit.package.storage import check_output, storage_error
from edgekit.vision.frame import ImageArray

if TYPE_CHECKING:
    import av

_CODECS = ("libx264", "h264", "mpeg4")


class VideoWriter:
    """Writes frames to a video; use it in a with statement or close() it, otherwise the file is not playable.

    The size is that of the first frame, cut to even numbers as yuv420p needs. The file appears under its name when it
    is closed; until then it is a hidden one beside it. A with statement that an error leaves keeps nothing, not in the
    place of an older file either; one that Ctrl-C leaves keeps what was written.

    Args:
        path: Its suffix chooses the container: .mp4, .mkv, .avi, ...
        fps: Frames a second.
        codec: "auto": H.264, or MPEG-4 Part 2 where FFmpeg was built without an encoder for it; or FFmpeg's name.

    Raises:
        UsageError: fps is not positive, or FFmpeg knows no such container or codec.
        StorageError: The file can't be written.
        MissingDependencyError: PyAV is not installed.
    """

    def __init__(self, path: str | Path, fps: float = 25.0, codec: str = "auto") -> None:
        try:
            import av
        except ImportError as error:
            raise MissingDependencyError(
                "writing videos needs PyAV", where=path, hint='pip install "edgekit[camera]"'
            ) from error
        if not 0 < fps <= 10_000:
            raise UsageError("frames a second are out of range", where=path, got=fps, expected="above 0, at most 10000")
        av.logging.set_level(None)
        self.path = Path(path)
        self.frames = 0
        self._av = av
        self._codec = codec if codec != "auto" else next((c for c in _CODECS if _can_encode(av, c)), "mpeg4")
        self._rate = Fraction(fps).limit_denominator(1001)
        self._stream: av.VideoStream | None = None
        check_output(self.path)
        self._partial = self.path.with_name(f".{self.path.stem}.{os.getpid()}.partial{self.path.suffix}")
        try:
            # Each packet goes to the disk at once, so that a full disk stops the work at the first that has no room.
            options = {"flush_packets": "1"}
            self._container: av.container.OutputContainer | None = av.open(str(self._partial), "w", options=options)
        except OSError as error:
            raise storage_error(self.path, error) from error
        except ValueError as error:
            raise UsageError("unknown kind of video file", where=path, hint="use .mp4, .mkv or .avi") from error

    def write(self, image_rgb: ImageArray) -> None:
        """Adds a frame.

        Args:
            image_rgb: uint8 (height, width, 3), RGB, of the first frame's size.

        Raises:
            ImageError: Another shape or dtype.
            StorageError: The disk is full.
        """
        if self._container is None:
            raise UsageError("video is closed", where=self.path)
        if image_rgb.dtype != np.uint8 or image_rgb.ndim != 3 or image_rgb.shape[2] != 3 or min(image_rgb.shape) < 2:
            raise ImageError(
                "not a video frame",
                where=self.path,
                got=f"{image_rgb.dtype} {image_rgb.shape}",
                expected="uint8 (height, width, 3), at least 2 pixels high and wide",
            )
        height, width = image_rgb.shape[0] // 2 * 2, image_rgb.shape[1] // 2 * 2
        if self._stream is None:
            self._stream = self._add_stream(width, height)
        if (self._stream.width, self._stream.height) != (width, height):
            raise ImageError(
                "frame has another size than the video",
                where=self.path,
                got=f"{width}x{height}",
                expected=f"{self._stream.width}x{self._stream.height}",
                hint="a video takes frames of one size only; make them so, or write pictures",
            )
        frame = self._av.VideoFrame.from_ndarray(np.ascontiguousarray(image_rgb[:height, :width]), format="rgb24")
        frame.pts = self.frames
        self._mux(frame)
        self.frames += 1

    def _add_stream(self, width: int, height: int) -> av.VideoStream:
        assert self._container is not None
        try:
            stream = self._container.add_stream(self._codec, rate=self._rate)
        except (ValueError, self._av.error.FFmpegError) as error:
            raise UsageError("no such video codec", where=self.path, got=self._codec) from error
        if not isinstance(stream, self._av.VideoStream):
            raise UsageError("not a video codec", where=self.path, got=self._codec)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        if self._codec == "mpeg4":
            stream.bit_rate = max(1_000_000, width * height * 4)
        return stream

    def _mux(self, frame: av.VideoFrame | None) -> None:
        assert self._container is not None and self._stream is not None
        try:
            for packet in self._stream.encode(frame):
                self._container.mux(packet)
        except OSError as error:
            raise storage_error(self.path, error) from error

    def discard(self) -> None:
        """Closes without leaving a file but an older one of that name; safe to call twice, and after close()."""
        if self._container is None:
            return
        container, self._container = self._container, None
        with contextlib.suppress(OSError):  # nothing is wanted of it any more
            container.close()
        with contextlib.suppress(OSError):
            self._partial.unlink()

    def close(self) -> None:
        """Finishes the file; safe to call twice.

        Raises:
            StorageError: The disk is full; nothing is left.
        """
        if self._container is None:
            return
        try:
            if self._stream is not None:
                self._mux(None)
            self._container.close()
            if self.frames:
                self._partial.replace(self.path)
        except OSError as error:
            raise storage_error(self.path, error) from error
        finally:
            self.discard()

    def __enter__(self) -> VideoWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, Exception):
            self.discard()
        else:
            self.close()


def _can_encode(av: object, codec: str) -> bool:
    try:
        av.codec.Codec(codec, "w")  # type: ignore[attr-defined]
    except Exception:
        return False
    return True
