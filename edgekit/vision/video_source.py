"""Videos, network streams and cameras through PyAV (FFmpeg)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from edgekit.errors import MissingDependencyError, SourceError
from edgekit.vision.frame import MAX_SIDE_PX, Frame, ImageArray, PixelFormat, YuvMatrix, YuvRange
from edgekit.vision.images import MAX_PIXELS

if TYPE_CHECKING:
    import av

# FFmpeg's AVColorSpace and AVColorRange (libavutil/pixfmt.h).
_BT709 = 1
_UNSPECIFIED = 2
_FULL_RANGE = 2
# Unmarked videos of this height and more are BT.709 by convention.
_HD_HEIGHT = 720

_NATIVE_FORMATS: dict[str, tuple[PixelFormat, YuvRange | None]] = {
    "yuv420p": ("i420", None),
    "yuvj420p": ("i420", "full"),
    "nv12": ("nv12", None),
    "rgb24": ("rgb", None),
    "bgr24": ("bgr", None),
    "gray": ("gray", None),
}


class VideoSource:
    """A video file, network stream or camera.

    Frames keep their YUV planes where the network's preprocessing reads them (NV12, I420); others are converted to
    RGB by FFmpeg.

    Args:
        name: Path, URL or /dev/video device.
        deadline_s: How long opening, and then each read, may take.
        live: The source has its own pace.

    Raises:
        SourceError: It can't be opened, or has no video.
        MissingDependencyError: PyAV is not installed.
    """

    def __init__(self, name: str, *, deadline_s: float, live: bool) -> None:
        self.name = name
        self._live_wanted = live
        self._deadline_s = deadline_s
        self._container: av.container.InputContainer | None = self._open()
        # A URL may name a file as well as a camera; a file knows how long it is.
        self.live = live and not self._container.duration
        streams = self._container.streams.video
        if not streams:
            self.close()
            raise SourceError("has no video", where=name)
        self._stream = streams[0]
        # Frame threading would hold back as many frames as there are threads: not for live sources.
        self._stream.thread_type = "SLICE" if self.live else "AUTO"
        rate = self._stream.average_rate
        self.fps = float(rate) if rate else 0.0

    def _open(self) -> av.container.InputContainer:
        try:
            import av
        except ImportError as error:
            raise MissingDependencyError(
                "reading videos and cameras needs PyAV", where=self.name, hint='pip install "edgekit[camera]"'
            ) from error
        av.logging.set_level(None)  # FFmpeg's own lines on stderr would break the one-line rule
        options: dict[str, str] = {}
        is_device = self.name.startswith("/dev/video")
        if self.name.lower().startswith("rtsp"):
            options = {"rtsp_transport": "tcp", "fflags": "nobuffer", "flags": "low_delay"}
        elif self._live_wanted:
            options = {"fflags": "nobuffer", "flags": "low_delay"}
        start = time.monotonic()
        try:
            return av.open(
                self.name, format="v4l2" if is_device else None, options=options, timeout=(self._deadline_s,) * 2
            )
        except (av.error.FFmpegError, OSError, ValueError) as error:
            raise SourceError("can't be opened", where=self.name, hint=self._reason(error, start)) from error

    def __iter__(self) -> Iterator[Frame]:
        """Yields frames.

        Raises:
            SourceError: A read failed or took longer than the deadline, or no frame could be decoded at all.
        """
        import av

        number = 0
        start = time.monotonic()
        if self._container is None:
            raise SourceError("is closed", where=self.name)
        try:
            for decoded in self._container.decode(video=0):
                yield self._frame(decoded, number)
                number += 1
                start = time.monotonic()  # of the next read
        except av.error.EOFError:
            pass
        except (av.error.FFmpegError, OSError, ValueError) as error:
            raise SourceError(
                f"reading stopped after {number} frames", where=self.name, hint=self._reason(error, start)
            ) from error
        if number == 0:
            raise SourceError("no frame could be decoded", where=self.name)
        if self.live:
            raise SourceError(f"ended after {number} frames", where=self.name, hint="is the camera still there?")

    def _frame(self, decoded: Any, number: int) -> Frame:
        width, height = decoded.width, decoded.height
        if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE_PX:
            raise SourceError("frames are too large", where=self.name, got=f"{width}x{height}", expected=MAX_PIXELS)
        if decoded.format.name not in _NATIVE_FORMATS:
            decoded = decoded.reformat(format="rgb24")
        pixel_format, fixed_range = _NATIVE_FORMATS[decoded.format.name]
        rows = [height] + [(height + 1) // 2] * (len(decoded.planes) - 1)
        return Frame(
            planes=tuple(_plane(decoded.planes[i], rows[i], width if i == 0 and pixel_format in ("rgb", "bgr") else 0)
                         for i in range(_plane_count(pixel_format))),
            format=pixel_format,
            width=width,
            height=height,
            matrix=_matrix(decoded, height),
            range=fixed_range or ("full" if decoded.color_range == _FULL_RANGE else "studio"),
            timestamp_ns=time.monotonic_ns(),
            frame_id=number,
            name=self.name,
        )  # fmt: skip

    def _reason(self, error: Exception, start: float) -> str:
        """Why FFmpeg gave up, one line. It reports a missed deadline in many ways, so the time since start decides."""
        if time.monotonic() - start >= self._deadline_s:
            return f"no answer within {self._deadline_s:g} s"
        return str(getattr(error, "strerror", None) or error or type(error).__name__)

    def close(self) -> None:
        """See FrameSource."""
        if self._container is not None:
            self._container.close()
            self._container = None

    def __enter__(self) -> VideoSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _plane_count(pixel_format: PixelFormat) -> int:
    return {"i420": 3, "nv12": 2}.get(pixel_format, 1)


def _plane(plane: Any, rows: int, rgb_width: int) -> ImageArray:
    """The plane's memory, which the array keeps alive, as (rows, bytes of a row) or (rows, width, 3)."""
    data = np.frombuffer(plane, np.uint8)
    lines = data[: rows * plane.line_size].reshape(rows, plane.line_size)
    if rgb_width:
        return np.lib.stride_tricks.as_strided(lines, (rows, rgb_width, 3), (plane.line_size, 3, 1), writeable=False)
    return lines


def _matrix(decoded: Any, height: int) -> YuvMatrix:
    space = int(decoded.colorspace)
    if space == _UNSPECIFIED or space == 0:
        return "709" if height >= _HD_HEIGHT else "601"
    return "709" if space == _BT709 else "601"
