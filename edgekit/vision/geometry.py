"""How a picture is laid into the network's input: sizes and offsets for each resize mode, in integers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgekit.errors import TensorError
from edgekit.package.specs import PreprocessSpec, TensorSpec

SizeHw = tuple[int, int]


@dataclass(frozen=True)
class Placement:
    """Sizes in pixels: what the picture is resized to, where it starts in the input, and the size of the input."""

    resized_hw: SizeHw
    offset_xy: tuple[int, int]
    input_hw: SizeHw


@dataclass(frozen=True)
class InputSizes:
    """Heights and widths that an input may have.

    Attributes:
        allowed_hw: The sizes, or empty when every size is allowed where `fixed_hw` is None.
        fixed_hw: Fixed height and width; None for a dim that is free.
    """

    allowed_hw: tuple[SizeHw, ...]
    fixed_hw: tuple[int | None, int | None]

    @classmethod
    def of(cls, spec: TensorSpec, buckets: Sequence[Mapping[str, int]] = ()) -> InputSizes:
        """Reads the sizes from an image input.

        Args:
            spec: Input of four dims in nchw or nhwc.
            buckets: Sizes of the symbolic dims, see Manifest.buckets.

        Raises:
            TensorError: It is no image input.
        """
        if spec.layout not in ("nchw", "nhwc") or len(spec.shape) != 4:
            raise TensorError(
                "input takes no image",
                where=spec.name,
                got=f"{spec.layout} {spec.shape}",
                expected="nchw or nhwc of 4 dims",
            )
        first = 2 if spec.layout == "nchw" else 1
        dims = (spec.shape[first], spec.shape[first + 1])
        fixed = tuple(dim if isinstance(dim, int) else None for dim in dims)
        if None not in fixed:
            return cls(((fixed[0] or 1, fixed[1] or 1),), (fixed[0], fixed[1]))
        sizes = {
            tuple(dim if isinstance(dim, int) else bucket[dim] for dim in dims)
            for bucket in buckets
            if all(isinstance(dim, int) or dim in bucket for dim in dims)
        }
        allowed = sorted(((h, w) for h, w in sizes), key=lambda size: (size[0] * size[1], size))
        return cls(tuple(allowed), (fixed[0], fixed[1]))

    def choose(self, wanted_hw: SizeHw) -> SizeHw:
        """Smallest allowed size that holds the wanted one; otherwise the one that needs the least shrinking."""
        if not self.allowed_hw:
            return self.fixed_hw[0] or wanted_hw[0], self.fixed_hw[1] or wanted_hw[1]
        for size in self.allowed_hw:
            if size[0] >= wanted_hw[0] and size[1] >= wanted_hw[1]:
                return size
        return max(self.allowed_hw, key=lambda size: min(size[0] / wanted_hw[0], size[1] / wanted_hw[1], 1.0))


def place(source_hw: SizeHw, spec: PreprocessSpec, sizes: InputSizes, name: str = "input") -> Placement:
    """Lays a picture of the given size into the input.

    Args:
        source_hw: Size of the picture in pixels.
        spec: The resize mode and its settings.
        sizes: What sizes the input may have.
        name: Of the input, for errors.

    Raises:
        TensorError: resize "none" with another size than the input's, or a mode that needs a size and has none.
    """
    if spec.resize == "limit-side":
        return _limit_side(source_hw, spec, sizes)
    if spec.resize == "fixed-height":
        return _fixed_height(source_hw, sizes, name)
    if spec.resize == "none":
        input_hw = sizes.choose(source_hw)
        if input_hw != source_hw:
            raise TensorError("image has the wrong size", where=name, got=_text(source_hw), expected=_text(input_hw))
        return Placement(source_hw, (0, 0), source_hw)
    if not sizes.allowed_hw and None in sizes.fixed_hw:
        raise TensorError(
            f'resize "{spec.resize}" needs an input of fixed size', where=name, hint="convert the model with --shape"
        )
    input_hw = sizes.choose(source_hw)
    if spec.resize == "stretch":
        return Placement(input_hw, (0, 0), input_hw)
    if spec.resize == "letterbox":
        ratio = min(input_hw[0] / source_hw[0], input_hw[1] / source_hw[1])
        resized = _scaled(source_hw, ratio)
        resized = min(resized[0], input_hw[0]), min(resized[1], input_hw[1])
    else:
        # The shorter side relative to the input's becomes the input's divided by crop_ratio; the middle is kept.
        ratio = max(input_hw[0] / source_hw[0], input_hw[1] / source_hw[1]) / spec.crop_ratio
        resized = _scaled(source_hw, ratio)
        resized = max(resized[0], input_hw[0]), max(resized[1], input_hw[1])
    offset = ((input_hw[1] - resized[1]) // 2, (input_hw[0] - resized[0]) // 2)
    return Placement(resized, offset, input_hw)


def _scaled(source_hw: SizeHw, ratio: float) -> SizeHw:
    return max(1, round(source_hw[0] * ratio)), max(1, round(source_hw[1] * ratio))


def _limit_side(source_hw: SizeHw, spec: PreprocessSpec, sizes: InputSizes) -> Placement:
    """PP-OCR's rule for text detection, then padding at the right and bottom up to an allowed size."""
    if spec.side_limit_type == "min":
        ratio = max(1.0, spec.side_limit_px / min(source_hw))
    else:
        ratio = min(1.0, spec.side_limit_px / max(source_hw))
    step = spec.side_multiple

    def rounded(factor: float) -> SizeHw:
        height, width = (max(step, round(int(side * factor) / step) * step) for side in source_hw)
        return height, width

    wanted = rounded(ratio)
    input_hw = sizes.choose(wanted)
    if wanted[0] > input_hw[0] or wanted[1] > input_hw[1]:
        ratio *= min(input_hw[0] / wanted[0], input_hw[1] / wanted[1])
        wanted = rounded(ratio)
        wanted = min(wanted[0], input_hw[0]), min(wanted[1], input_hw[1])
    return Placement(wanted, (0, 0), input_hw)


def _fixed_height(source_hw: SizeHw, sizes: InputSizes, name: str) -> Placement:
    """PP-OCR's rule for recognition: the height fits, the width keeps the proportions or is squeezed to the largest."""
    heights: set[int | None] = {size[0] for size in sizes.allowed_hw} or {sizes.fixed_hw[0]}
    height = next(iter(heights))
    if len(heights) != 1 or height is None:
        raise TensorError(
            'resize "fixed-height" needs an input of one height', where=name, got=sorted(map(str, heights))
        )
    wanted = math.ceil(height * source_hw[1] / source_hw[0])
    input_hw = sizes.choose((height, wanted))
    return Placement((height, min(wanted, input_hw[1])), (0, 0), input_hw)


def _text(size_hw: SizeHw) -> str:
    return f"{size_hw[1]}x{size_hw[0]}"
