"""Where a pixel of the source lies in the network's input, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class FrameTransform:
    """An axis-aligned map between source and input, in continuous pixels: pixel i covers [i, i + 1).

    input = (source - crop) * scale + offset. The scales are the exact quotients of integer sizes that the image was
    resized with, so boxes come back without a systematic shift.

    Attributes:
        source_hw: Size of the source in pixels.
        input_hw: Size of the network's input in pixels.
        scale_xy: Input pixels a source pixel, (x, y).
        offset_xy: Where the shown part starts in the input, (x, y); negative where its edge was cut off.
        crop_xy: Corner of the shown part in the source, (x, y).
    """

    source_hw: tuple[int, int]
    input_hw: tuple[int, int]
    scale_xy: tuple[float, float]
    offset_xy: tuple[int, int]
    crop_xy: tuple[int, int] = (0, 0)

    def to_input(self, points_xy: ArrayLike) -> FloatArray:
        """Maps points (..., 2) in source pixels to input pixels, float32."""
        points = np.asarray(points_xy, dtype=np.float64)
        return ((points - self.crop_xy) * self.scale_xy + self.offset_xy).astype(np.float32)

    def to_source(self, points_xy: ArrayLike) -> FloatArray:
        """Maps points (..., 2) in input pixels to source pixels, float32, not clipped."""
        points = np.asarray(points_xy, dtype=np.float64)
        return ((points - self.offset_xy) / self.scale_xy + self.crop_xy).astype(np.float32)

    def boxes_to_input(self, boxes_xyxy: ArrayLike) -> FloatArray:
        """Maps boxes (n, 4) of x0, y0, x1, y1 in source pixels to input pixels, float32."""
        return self.to_input(np.asarray(boxes_xyxy, dtype=np.float64).reshape(-1, 2)).reshape(-1, 4)

    def boxes_to_source(self, boxes_xyxy: ArrayLike, *, clip: bool = True) -> FloatArray:
        """Maps boxes (n, 4) of x0, y0, x1, y1 in input pixels to source pixels, float32.

        Args:
            boxes_xyxy: The boxes.
            clip: Cut them off at the edges of the source.
        """
        points = self.to_source(np.asarray(boxes_xyxy, dtype=np.float64).reshape(-1, 2))
        if clip:
            height, width = self.source_hw
            np.clip(points, 0, (width, height), out=points)
        return points.reshape(-1, 4)
