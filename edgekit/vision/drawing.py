"""Drawing results into pictures, with Pillow."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from edgekit.errors import MissingDependencyError
from edgekit.vision.frame import ImageArray
from edgekit.vision.results import Classification, Detections, Result, Text, TextBoxes

if TYPE_CHECKING:
    from PIL import ImageDraw, ImageFont

Color = tuple[int, int, int]

_GOLDEN_RATIO = 0.618033988749895
_TEXT_COLOR = (255, 255, 255)


def class_color(class_id: int) -> Color:
    """A colour for a class; neighbours differ clearly, and a class keeps its colour."""
    red, green, blue = colorsys.hsv_to_rgb(class_id * _GOLDEN_RATIO % 1.0, 0.85, 0.85)
    return round(red * 255), round(green * 255), round(blue * 255)


def draw(image_rgb: ImageArray, result: Result) -> ImageArray:
    """Draws a result.

    Args:
        image_rgb: uint8 (height, width, 3), RGB; not changed.
        result: Boxes with labels, polygons, or lines of text in the top left corner. Raw outputs draw nothing.

    Returns:
        A fresh picture of the same size.

    Raises:
        MissingDependencyError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise MissingDependencyError("drawing needs Pillow", hint='pip install "edgekit[camera]"') from error
    picture = Image.fromarray(np.ascontiguousarray(image_rgb))
    canvas = ImageDraw.Draw(picture)
    size_px = max(10, round(min(image_rgb.shape[:2]) / 40))
    font = ImageFont.load_default(size_px)
    line_px = max(1, size_px // 6)
    if isinstance(result, Detections):
        captions = [f"{label} {score:.2f}" for label, score in zip(result.labels, result.confidence, strict=True)]
        # The best box is drawn last, on top.
        for i in reversed(range(len(result))):
            color = class_color(int(result.class_id[i]))
            x0, y0, x1, y1 = result.xyxy[i].tolist()
            if x1 >= x0 and y1 >= y0:
                canvas.rectangle((x0, y0, x1, y1), outline=color, width=line_px)
            _caption(canvas, (x0, y0), captions[i], font, color)
    elif isinstance(result, TextBoxes):
        for polygon in result.polygons:
            points = [tuple(point) for point in polygon.tolist()]
            canvas.line([*points, points[0]], fill=class_color(0), width=line_px, joint="curve")
    elif isinstance(result, Classification):
        _lines(
            canvas,
            [f"{label} {score:.2f}" for label, score in zip(result.labels, result.confidence, strict=True)],
            font,
        )
    elif isinstance(result, Text):
        _lines(canvas, [f"{result.text} ({result.confidence:.2f})"], font)
    return np.array(picture)


def _caption(
    canvas: ImageDraw.ImageDraw,
    corner_xy: tuple[float, float],
    text: str,
    font: ImageFont.FreeTypeFont | ImageFont.ImageFont,
    color: Color,
) -> None:
    """Text on a filled ground above a corner, or below it where the picture ends."""
    _, _, width, height = canvas.textbbox((0, 0), text, font=font)
    x, y = corner_xy
    top = y - height - 2 if y >= height + 2 else y
    canvas.rectangle((x, top, x + width + 4, top + height + 2), fill=color)
    canvas.text((x + 2, top), text, fill=_TEXT_COLOR, font=font)


def _lines(
    canvas: ImageDraw.ImageDraw, texts: Sequence[str], font: ImageFont.FreeTypeFont | ImageFont.ImageFont
) -> None:
    y = 4.0
    for index, text in enumerate(texts):
        _, _, _, height = canvas.textbbox((0, 0), text, font=font)
        _caption(canvas, (4, y), text, font, class_color(index))
        y += height + 6
