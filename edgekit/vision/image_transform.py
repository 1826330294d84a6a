"""The one forward image transform, used by calibration, verification and the runtime alike."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from edgekit import _native
from edgekit.errors import TensorError, UsageError
from edgekit.package.specs import PreprocessSpec, TensorSpec
from edgekit.vision.frame import Frame
from edgekit.vision.frame_transform import FrameTransform
from edgekit.vision.fused_pass import PixelValues, native_pass
from edgekit.vision.geometry import InputSizes, Placement, place
from edgekit.vision.images import ImageLike, load_image

Array = NDArray[np.generic]

# Tables of frame sizes kept by one Preparer: a camera has one, a folder of photos several, a hostile folder any number.
_MOST_PASSES = 16


class Preparer:
    """Turns pictures into one input of a model; keeps its tables, so use one for many pictures.

    Threads may share it; pictures of one size are then prepared one after the other.

    Args:
        spec: What to do with a picture.
        input_spec: The input, layout nchw or nhwc, batch 1, dtype float32, uint8 or int8. With a quantization,
            values are quantized as by ONNX QuantizeLinear of the float32 result.
        buckets: Sizes of the input's symbolic dims, see Manifest.buckets.
        force_scalar: Use the reference rows rather than those of this machine's ISA; the result is the same.

    Raises:
        TensorError: input_spec takes no image.
        UsageError: mean, std and the channels don't fit together, or a std is 0.
    """

    def __init__(
        self,
        spec: PreprocessSpec,
        input_spec: TensorSpec,
        buckets: Sequence[Mapping[str, int]] = (),
        *,
        force_scalar: bool = False,
    ) -> None:
        self.spec = spec
        self.input_spec = input_spec
        self._sizes = InputSizes.of(input_spec, buckets)
        self._check()
        self._values = PixelValues.of(spec, input_spec)
        self._force_scalar = force_scalar
        self._lock = threading.Lock()
        self._passes: dict[tuple[object, ...], tuple[_native.Preprocessor, Placement]] = {}

    def _check(self) -> None:
        spec, target = self.spec, self.input_spec
        channels = 1 if spec.color == "gray" else 3
        dim = target.shape[1 if target.layout == "nchw" else 3]
        if dim != channels:
            raise TensorError(
                "input has another number of channels than the preprocessing",
                where=target.name,
                got=dim,
                expected=f"{channels} for color {spec.color}",
            )
        if target.shape[0] != 1 and not isinstance(target.shape[0], str):
            raise TensorError("only batch 1 takes a picture", where=target.name, got=target.shape[0], expected=1)
        if target.dtype not in ("float32", "uint8", "int8"):
            raise TensorError(
                "no picture can be stored as this dtype",
                where=target.name,
                got=target.dtype,
                expected="float32, uint8, int8",
            )
        for name, values in (("mean", spec.mean), ("std", spec.std)):
            if len(values) not in (1, channels) and not (channels == 1 and len(set(values)) == 1):
                raise UsageError("wrong number of values", where=name, got=len(values), expected=f"1 or {channels}")
        if any(not abs(value) > 0 for value in spec.std):
            raise UsageError("a std is 0", where="std", got=spec.std)

    def input_size_hw(self, source_hw: tuple[int, int]) -> tuple[int, int]:
        """Height and width of the input for a picture of that size."""
        return place(source_hw, self.spec, self._sizes, self.input_spec.name).input_hw

    def array_shape(self, input_hw: tuple[int, int]) -> tuple[int, int, int, int]:
        """Shape of the whole input, batch included."""
        channels = 1 if self.spec.color == "gray" else 3
        height, width = input_hw
        return (1, channels, height, width) if self.input_spec.layout == "nchw" else (1, height, width, channels)

    def prepare(self, image: ImageLike, out: Array | None = None) -> tuple[Array, FrameTransform]:
        """Prepares one picture.

        Args:
            image: Whatever load_image takes.
            out: Array to fill, C-contiguous, of the input's dtype and shape; a fresh one by default.

        Returns:
            The input with its batch dim, and the way back to source pixels.

        Raises:
            ImageError: The picture can't be read.
            TensorError: It can't be laid into the input, or `out` doesn't fit.
        """
        frame = load_image(image)
        native, placement = self._pass_for(frame)
        shape = self.array_shape(placement.input_hw)
        dtype = np.dtype(self.input_spec.dtype)
        if out is None:
            out = np.empty(shape, dtype=dtype)
        elif out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous or not out.flags.writeable:
            raise TensorError(
                "output array doesn't fit",
                where=self.input_spec.name,
                got=f"{out.dtype} {out.shape}",
                expected=f"writeable C-contiguous {dtype} {shape}",
            )
        native.run(list(frame.planes), out)
        return out, _transform(frame, placement)

    def plan(self, frame: Frame) -> tuple[_native.Preprocessor, FrameTransform]:
        """The native pass for a frame, for those who run it themselves, and the transform that belongs to it.

        Raises:
            TensorError: The frame can't be laid into the input.
        """
        native, placement = self._pass_for(frame)
        return native, _transform(frame, placement)

    def as_input(self, data: NDArray[np.uint8], input_hw: tuple[int, int]) -> Array:
        """The bytes that a native pass wrote, as the input: no copy."""
        return data.view(self.input_spec.dtype).reshape(self.array_shape(input_hw))

    def _pass_for(self, frame: Frame) -> tuple[_native.Preprocessor, Placement]:
        key = (frame.width, frame.height, frame.format, frame.matrix, frame.range)
        with self._lock:
            return self._passes.get(key) or self._make_pass(frame, key)

    def _make_pass(self, frame: Frame, key: tuple[object, ...]) -> tuple[_native.Preprocessor, Placement]:
        placement = place(frame.size_hw, self.spec, self._sizes, self.input_spec.name)
        try:
            native = native_pass(
                frame, placement, self.spec.interpolation, self._values, force_scalar=self._force_scalar
            )
        except ValueError as error:
            raise TensorError(str(error), where=frame.name or self.input_spec.name) from error
        if len(self._passes) >= _MOST_PASSES:
            self._passes.pop(next(iter(self._passes)))
        known = self._passes[key] = (native, placement)
        return known


def _transform(frame: Frame, placement: Placement) -> FrameTransform:
    resized_height, resized_width = placement.resized_hw
    return FrameTransform(
        source_hw=frame.size_hw,
        input_hw=placement.input_hw,
        scale_xy=(resized_width / frame.width, resized_height / frame.height),
        offset_xy=placement.offset_xy,
    )


def prepare(
    image: ImageLike,
    spec: PreprocessSpec,
    input_spec: TensorSpec,
    out: Array | None = None,
    *,
    buckets: Sequence[Mapping[str, int]] = (),
) -> tuple[Array, FrameTransform]:
    """Prepares one picture; see Preparer, which is faster for many."""
    return Preparer(spec, input_spec, buckets).prepare(image, out)
