"""The demo's pictures: drawn shapes that drift and turn in front of a soft background, with true boxes.

Same seed, same clip. Nothing is stored or downloaded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgekit.errors import MissingDependencyError

CLASS_NAMES = ("disc", "square", "triangle", "star", "cross", "arrow", "gear", "crescent")
VISIBLE_SHARE = 0.35  # an object hidden more than this has no box
_SUPERSAMPLING = 3

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class Scene:
    """One picture and what is in it.

    Attributes:
        image_hwc: uint8 RGB, shape (height, width, 3).
        boxes_xyxy_px: float32, shape (objects, 4), tight around what is visible.
        class_ids: int64, shape (objects,), indices into CLASS_NAMES.
    """

    image_hwc: Image
    boxes_xyxy_px: NDArray[np.float32]
    class_ids: NDArray[np.int64]


@dataclass(frozen=True)
class _Body:
    """One object on its way through the clip; speeds are per frame."""

    class_id: int
    corners: NDArray[np.float64]
    hole: NDArray[np.float64] | None
    radius_px: float
    start_px: tuple[float, float]
    speed_px: tuple[float, float]
    angle: float
    spin: float
    color: NDArray[np.float32]


def _ring(count: int, radius: float = 1.0, phase: float = 0.0) -> list[tuple[float, float]]:
    angles = [phase + 2 * math.pi * k / count for k in range(count)]
    return [(radius * math.cos(a), radius * math.sin(a)) for a in angles]


def _gear(teeth: int, root: float) -> list[tuple[float, float]]:
    profile = ((0.0, root), (0.15, 1.0), (0.45, 1.0), (0.6, root))
    angles = [(2 * math.pi * (tooth + part) / teeth, radius) for tooth in range(teeth) for part, radius in profile]
    return [(radius * math.cos(a), radius * math.sin(a)) for a, radius in angles]


def _outline(name: str) -> tuple[list[tuple[float, float]], list[tuple[float, float]] | None]:
    """Corner points inside the unit circle, and those of the hole if it has one."""
    c, s, h = 0.32, 0.28, 0.15
    star = [p for pair in zip(_ring(5), _ring(5, 0.44, math.pi / 5), strict=True) for p in pair]
    cross = [(-c, -1), (c, -1), (c, -c), (1, -c), (1, c), (c, c), (c, 1), (-c, 1), (-c, c), (-1, c), (-1, -c), (-c, -c)]
    arrow = [(-1, -s), (h, -s), (h, -0.75), (1, 0), (h, 0.75), (h, s), (-1, s)]
    shifted = [(0.85 * x + 0.52, 0.85 * y) for x, y in _ring(40)]
    table: dict[str, tuple[list[tuple[float, float]], list[tuple[float, float]] | None]] = {
        "disc": (_ring(40), None),
        "square": (_ring(4, phase=math.pi / 4), None),
        "triangle": (_ring(3), None),
        "star": (star, None),
        "cross": (cross, None),
        "arrow": (arrow, None),
        "gear": (_gear(8, 0.75), _ring(24, 0.3)),
        "crescent": (_ring(40), shifted),
    }
    return table[name]


def _background(rng: np.random.Generator, size_hw: tuple[int, int]) -> NDArray[np.float32]:
    """Low-frequency noise, nearly grey, float32 RGB (height, width, 3)."""
    height, width = size_hw
    image = np.zeros((height, width, 3), np.float32)
    for cells, strength in ((3, 30.0), (9, 10.0), (40, 4.0)):
        shade = rng.normal(0.0, strength, (cells + 1, cells + 1, 1))
        grid = (shade + rng.normal(0.0, 0.2 * strength, (cells + 1, cells + 1, 3))).astype(np.float32)
        ys, xs = np.linspace(0, cells - 1e-3, height), np.linspace(0, cells - 1e-3, width)
        y0, x0 = ys.astype(int), xs.astype(int)
        wy, wx = (ys - y0)[:, None, None].astype(np.float32), (xs - x0)[None, :, None].astype(np.float32)
        top = grid[y0][:, x0] * (1 - wx) + grid[y0][:, x0 + 1] * wx
        low = grid[y0 + 1][:, x0] * (1 - wx) + grid[y0 + 1][:, x0 + 1] * wx
        image += top * (1 - wy) + low * wy
    clipped: NDArray[np.float32] = np.clip(image + rng.uniform(70, 170), 0, 255)
    return clipped


def _bodies(rng: np.random.Generator, count: int, size_hw: tuple[int, int]) -> list[_Body]:
    height, width = size_hw
    unit = min(height, width)
    bodies = []
    for _ in range(count):
        class_id = int(rng.integers(len(CLASS_NAMES)))
        outer, hole = _outline(CLASS_NAMES[class_id])
        start = (float(rng.uniform(0.1, 0.9) * width), float(rng.uniform(0.1, 0.9) * height))
        speed = (float(rng.uniform(-1, 1)) * unit / 160, float(rng.uniform(-1, 1)) * unit / 160)
        bodies.append(
            _Body(
                class_id,
                np.asarray(outer),
                None if hole is None else np.asarray(hole),
                float(np.exp(rng.uniform(np.log(0.1), np.log(0.22)))) * unit,
                start,
                speed,
                float(rng.uniform(0, 2 * math.pi)),
                float(rng.uniform(-0.05, 0.05)),
                rng.uniform(0, 255, 3).astype(np.float32),
            )
        )
    return bodies


def _mask(body: _Body, frame: int, size_hw: tuple[int, int]) -> tuple[NDArray[np.float32], int, int]:
    """Coverage 0..1 of a body in a frame, and the left and top of that patch in the picture."""
    try:
        from PIL import Image as PilImage
        from PIL import ImageDraw
    except ModuleNotFoundError as error:
        raise MissingDependencyError("the demo draws with Pillow", hint='pip install "edgekit[demo]"') from error
    height, width = size_hw
    angle = body.angle + body.spin * frame
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    x = _bounce(body.start_px[0] + body.speed_px[0] * frame, width)
    y = _bounce(body.start_px[1] + body.speed_px[1] * frame, height)
    left, top = int(x - body.radius_px) - 1, int(y - body.radius_px) - 1
    side = (2 * math.ceil(body.radius_px) + 3) * _SUPERSAMPLING
    canvas = PilImage.new("L", (side, side), 0)
    draw = ImageDraw.Draw(canvas)
    for points, fill in ((body.corners, 255), (body.hole, 0)):
        if points is not None:
            placed = (points @ turn * body.radius_px + np.array([x - left, y - top])) * _SUPERSAMPLING
            draw.polygon([(float(px), float(py)) for px, py in placed], fill=fill)
    return np.asarray(canvas.reduce(_SUPERSAMPLING), dtype=np.float32) / np.float32(255), left, top


def _bounce(position: float, limit: int) -> float:
    """Reflects a coordinate at 0 and limit."""
    phase = position % (2 * limit)
    return phase if phase <= limit else 2 * limit - phase


def scenes(seed: int, frames: int, size_hw: tuple[int, int] = (480, 640), objects: int = 7) -> Iterator[Scene]:
    """Draws a clip.

    Args:
        seed: Same seed, same clip.
        frames: Number of frames.
        size_hw: Height and width in pixels.
        objects: Objects in the clip.

    Yields:
        One scene after the other.

    Raises:
        MissingDependencyError: Pillow is not installed.
    """
    rng = np.random.default_rng(seed)
    background = _background(rng, size_hw)
    bodies = _bodies(rng, objects, size_hw)
    for frame in range(frames):
        canvas, owner = background.copy(), np.full(size_hw, -1, np.int16)
        areas = [_stamp(canvas, owner, index, body, frame) for index, body in enumerate(bodies)]
        canvas += rng.normal(0, 4, size_hw)[..., None].astype(np.float32)
        boxes, class_ids = _visible(owner, areas, bodies)
        yield Scene(np.clip(np.rint(canvas), 0, 255).astype(np.uint8), boxes, class_ids)


def _stamp(canvas: NDArray[np.float32], owner: NDArray[np.int16], index: int, body: _Body, frame: int) -> int:
    """Blends a body into the picture; returns its whole area in pixels."""
    height, width = owner.shape
    mask, left, top = _mask(body, frame, (height, width))
    y0, x0 = max(top, 0), max(left, 0)
    y1, x1 = min(top + mask.shape[0], height), min(left + mask.shape[1], width)
    part = mask[y0 - top : y1 - top, x0 - left : x1 - left]
    shade = np.linspace(0.85, 1.1, part.shape[0], dtype=np.float32)[:, None, None] * body.color
    region = canvas[y0:y1, x0:x1]
    region += (shade - region) * part[..., None]
    owner[y0:y1, x0:x1][part > 0.5] = index
    return int((mask > 0.5).sum())


def _visible(
    owner: NDArray[np.int16], areas: list[int], bodies: list[_Body]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    boxes, class_ids = [], []
    for index, area in enumerate(areas):
        ys, xs = np.nonzero(owner == index)
        if ys.size > 0 and ys.size >= VISIBLE_SHARE * area:
            boxes.append((xs.min(), ys.min(), xs.max() + 1, ys.max() + 1))
            class_ids.append(bodies[index].class_id)
    return np.asarray(boxes, np.float32).reshape(-1, 4), np.asarray(class_ids, np.int64)
