"""A picture as it comes from a source: planes of uint8 with their colour format, time and number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgekit.errors import ImageError

PixelFormat = Literal["rgb", "bgr", "gray", "nv12", "i420"]
YuvMatrix = Literal["601", "709"]
YuvRange = Literal["studio", "full"]
ImageArray = NDArray[np.uint8]

MAX_SIDE_PX = 32768


@dataclass(frozen=True)
class Frame:
    """One picture.

    Attributes:
        planes: uint8 arrays whose rows are dense but may lie further apart than they are long. rgb, bgr: one array
            (height, width, 3). gray: (height, width). nv12: Y (height, width) and interleaved UV (ceil(height / 2),
            2 * ceil(width / 2)). i420: Y, U and V, the last two (ceil(height / 2), ceil(width / 2)). Wider rows than
            the picture needs are allowed: the rest is padding that nobody reads.
        format: Meaning of the planes.
        width, height: In pixels.
        matrix, range: nv12 and i420 only: ITU-R BT.601 or BT.709, studio (16..235) or full range.
        timestamp_ns: time.monotonic_ns() when the picture was taken; 0 when unknown.
        frame_id: Number of the frame in its source, from 0, counted before any is dropped.
        name: Path or URL it came from; empty for arrays.
    """

    planes: tuple[ImageArray, ...]
    format: PixelFormat
    width: int
    height: int
    matrix: YuvMatrix = "601"
    range: YuvRange = "studio"
    timestamp_ns: int = 0
    frame_id: int = 0
    name: str = ""

    def __post_init__(self) -> None:
        """Checks size and number of planes.

        Raises:
            ImageError: A size is out of range, or planes are missing.
        """
        expected = {"nv12": 2, "i420": 3}.get(self.format, 1)
        if len(self.planes) != expected:
            raise ImageError("wrong number of planes", where=self.name or None, got=len(self.planes), expected=expected)
        if not (1 <= self.width <= MAX_SIDE_PX and 1 <= self.height <= MAX_SIDE_PX):
            raise ImageError(
                "image size is out of range",
                where=self.name or None,
                got=f"{self.width}x{self.height}",
                expected=f"1..{MAX_SIDE_PX} pixels a side",
            )

    @property
    def size_hw(self) -> tuple[int, int]:
        """(height, width) in pixels."""
        return self.height, self.width

    @classmethod
    def from_array(
        cls,
        array: NDArray[np.generic],
        color: Literal["rgb", "bgr", "gray"] = "rgb",
        *,
        timestamp_ns: int = 0,
        frame_id: int = 0,
        name: str = "",
    ) -> Frame:
        """Wraps an array without copying it where its rows are dense.

        Args:
            array: uint8 (height, width, 3), (height, width, 1) or (height, width).
            color: Order of the three channels; one channel is always grey. OpenCV gives "bgr".
            timestamp_ns: See Frame.
            frame_id: See Frame.
            name: See Frame.

        Raises:
            ImageError: Another dtype or shape.
        """
        if array.dtype != np.uint8:
            raise ImageError("image array has the wrong dtype", where=name or None, got=array.dtype, expected="uint8")
        if array.ndim == 3 and array.shape[2] == 1:
            array = array[:, :, 0]
        if 0 in array.shape or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)):
            raise ImageError(
                "image array has the wrong shape",
                where=name or None,
                got=array.shape,
                expected="(height, width, 3) or (height, width)",
            )
        row_is_dense = array.strides[1:] == ((3, 1) if array.ndim == 3 else (1,))
        plane = array.view(np.uint8) if row_is_dense else np.ascontiguousarray(array, dtype=np.uint8)
        return cls(
            planes=(plane,),
            format="gray" if array.ndim == 2 else color,
            width=array.shape[1],
            height=array.shape[0],
            timestamp_ns=timestamp_ns,
            frame_id=frame_id,
            name=name,
        )

    def to_rgb(self) -> ImageArray:
        """Returns the picture as a fresh uint8 array (height, width, 3), RGB."""
        from edgekit.vision.fused_pass import picture_to_rgb

        return picture_to_rgb(self)
