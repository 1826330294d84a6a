"""From text boxes to straight pictures of lines, for a recognizer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgekit import _native
from edgekit.vision.frame import ImageArray
from edgekit.vision.results import TextBoxes

# PaddleOCR takes boxes at least this much taller than wide for vertical text and turns them.
_VERTICAL_RATIO = 1.5
# Boxes whose tops differ by less than this share of the smaller height stand on one line.
_SAME_LINE_SHARE = 0.5


def crop_line(image_rgb: ImageArray, polygon: NDArray[np.float32]) -> ImageArray:
    """Cuts one line out and straightens it.

    Args:
        image_rgb: uint8 (height, width, 3).
        polygon: (4, 2): corners x, y in pixels, clockwise from the text's top left.

    Returns:
        uint8 (height, width, 3); turned by 90 degrees counter-clockwise when the box stands upright.

    Raises:
        TensorError: The polygon encloses no area.
    """
    sides = np.linalg.norm(polygon - np.roll(polygon, -1, axis=0), axis=1)
    width = max(1, round(float(max(sides[0], sides[2]))))
    height = max(1, round(float(max(sides[1], sides[3]))))
    crop = _native.warp_quad(image_rgb, polygon, height, width)
    return np.ascontiguousarray(np.rot90(crop)) if height >= _VERTICAL_RATIO * width else crop


def reading_order(boxes: TextBoxes) -> list[int]:
    """Indices of boxes from top to bottom, and from left to right where they stand on one line."""
    if len(boxes) == 0:
        return []
    rects = boxes.boxes_xyxy_px
    by_top = np.argsort(rects[:, 1], kind="stable").tolist()
    lines: list[list[int]] = [[by_top[0]]]
    for index in by_top[1:]:
        first = lines[-1][0]
        height = min(rects[index, 3] - rects[index, 1], rects[first, 3] - rects[first, 1])
        if rects[index, 1] - rects[first, 1] < _SAME_LINE_SHARE * height:
            lines[-1].append(index)
        else:
            lines.append([index])
    return [index for line in lines for index in sorted(line, key=lambda i: float(rects[i, 0]))]


def crop_lines(image_rgb: ImageArray, boxes: TextBoxes) -> list[ImageArray]:
    """Cuts all lines out, in reading order; see crop_line."""
    return [crop_line(image_rgb, boxes.polygons[index]) for index in reading_order(boxes)]
