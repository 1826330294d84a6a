"""The native preprocessing pass, configured from Python values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from edgekit import _native
from edgekit.package.specs import ColorOrder, Interpolation, PreprocessSpec, TensorSpec
from edgekit.vision.frame import Frame, ImageArray
from edgekit.vision.geometry import Placement

Values = tuple[float, ...]


@dataclass(frozen=True)
class PixelValues:
    """What becomes of a grey level v of network channel c: x = v * gain[c] + offset[c].

    Attributes:
        color: Channel order of the network.
        gain, offset, pad: One a channel; pad is the value x of padding.
        dtype: float32, uint8 or int8.
        quant_scale, zero_point: uint8 and int8: q = saturate(round_half_even(x / quant_scale) + zero_point).
        channels_first: NCHW rather than NHWC.
    """

    color: ColorOrder
    gain: Values
    offset: Values
    pad: Values
    dtype: str = "float32"
    quant_scale: float = 1.0
    zero_point: int = 0
    channels_first: bool = True

    @classmethod
    def of(cls, spec: PreprocessSpec, target: TensorSpec) -> PixelValues:
        """Folds scale, mean and std of a spec into one gain and offset a channel."""
        channels = 1 if spec.color == "gray" else 3
        mean = _one_a_channel(spec.mean, channels)
        std = _one_a_channel(spec.std, channels)
        offset = tuple(-m / s for m, s in zip(mean, std, strict=True))
        gain = tuple(spec.scale / s for s in std)
        if spec.pad_value is None:
            pad: Values = (0.0,) * channels
        else:
            pad = tuple(spec.pad_value * g + o for g, o in zip(gain, offset, strict=True))
        quantization = target.quantization
        return cls(
            color=spec.color,
            gain=gain,
            offset=offset,
            pad=pad,
            dtype=target.dtype,
            quant_scale=quantization.scale if quantization else 1.0,
            zero_point=quantization.zero_point if quantization else 0,
            channels_first=target.layout == "nchw",
        )


def _one_a_channel(values: Values, channels: int) -> Values:
    return tuple(values[min(index, len(values) - 1)] for index in range(channels))


def native_pass(
    frame: Frame, placement: Placement, interpolation: Interpolation, values: PixelValues, *, force_scalar: bool = False
) -> _native.Preprocessor:
    """Makes the pass for frames of this frame's size and format.

    Raises:
        ValueError: The sizes make no sense.
    """
    config = _native.PreprocessConfig()
    config.set_format(frame.format)
    config.set_yuv(frame.matrix, frame.range)
    config.set_order(values.color)
    config.set_interpolation(interpolation)
    config.set_dtype(values.dtype)
    config.source_width, config.source_height = frame.width, frame.height
    config.crop_width, config.crop_height = frame.width, frame.height
    config.resized_height, config.resized_width = placement.resized_hw
    config.offset_x, config.offset_y = placement.offset_xy
    config.output_height, config.output_width = placement.input_hw
    config.channels_first = values.channels_first
    config.gain, config.offset, config.pad = values.gain, values.offset, values.pad
    config.quant_scale, config.zero_point = values.quant_scale, values.zero_point
    config.force_scalar = force_scalar
    return _native.Preprocessor(config)


def picture_to_rgb(frame: Frame) -> ImageArray:
    """Converts any frame to a fresh uint8 array (height, width, 3), RGB."""
    if frame.format == "rgb":
        return frame.planes[0][: frame.height, : frame.width].copy()
    placement = Placement(frame.size_hw, (0, 0), frame.size_hw)
    ones, zeros = (1.0,) * 3, (0.0,) * 3
    values = PixelValues("rgb", gain=ones, offset=zeros, pad=zeros, dtype="uint8", channels_first=False)
    rgb = np.empty((frame.height, frame.width, 3), dtype=np.uint8)
    native_pass(frame, placement, "nearest", values).run(list(frame.planes), rgb)
    return rgb
