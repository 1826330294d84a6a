"""What a package says about its inputs, outputs, pre- and post-processing: typed values, stored in manifest.json.

Preprocessing is declared once, here, and used by calibration, verification and the runtime, so the three agree.
"""

# No `from __future__ import annotations`: decode() reads the annotations of these classes.
from typing import Literal

from edgekit.records import Record

ColorOrder = Literal["rgb", "bgr", "gray"]
ResizeMode = Literal["stretch", "letterbox", "center-crop", "limit-side", "fixed-height", "none"]
Interpolation = Literal["bilinear", "nearest", "area"]
Layout = Literal["nchw", "nhwc", "plain"]
TaskName = Literal["classify", "detect", "text-detect", "text-recognize", "raw"]


FORMS: dict[str, tuple[str, ...]] = {
    "classify": ("logits", "probabilities"),
    "detect": ("yolov8", "yolov8-heads", "yolov5", "yolov5-heads", "ssd"),
    "text-detect": ("dbnet",),
    "text-recognize": ("ctc", "ctc-logits"),
    "raw": ("raw",),
}
"""Task to the forms of outputs that it reads, the usual one first; see PostprocessSpec."""


class Quantization(Record, closed=True):
    """Affine quantization of a tensor: real = (q - zero_point) * scale."""

    scale: float
    zero_point: int


class TensorSpec(Record, closed=True):
    """One input or output as the user of run() sees it.

    Attributes:
        name: Name in the source model.
        dtype: numpy name: float32, uint8, int8, int32, int64 or bool.
        shape: One entry a dim; a str is a symbolic dim that takes one of the values listed in Manifest.buckets.
        layout: nchw or nhwc for images, plain for everything else.
        quantization: Set only where the user sees quantized values.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    layout: Layout = "plain"
    quantization: Quantization | None = None


class PreprocessSpec(Record, closed=True):
    """How a picture becomes the network's input: x = (pixel * scale - mean[c]) / std[c].

    Attributes:
        color: Channel order of the network.
        resize: stretch: to the input size, proportions not kept. letterbox: fitted inside, centred, padded.
            center-crop: shorter side to the input size / crop_ratio, then the middle. limit-side (text detection):
            sides rounded to multiples of side_multiple, longest or shortest side limited by side_limit_px, then padded
            to the input size at the right and bottom. fixed-height (text recognition): height fits, width keeps
            proportions, padded on the right. none: the picture already has the size.
        interpolation: bilinear (half-pixel centres, no antialiasing, as cv2.INTER_LINEAR), nearest or area.
        scale: Factor on pixels 0..255, usually 1/255 or 1.
        mean: In units after scale, one a channel of the network.
        std: Likewise; never 0.
        pad_value: Pixel value 0..255 of padding, before scale; null: the value that becomes 0.
        crop_ratio: center-crop only.
        side_multiple, side_limit_px, side_limit_type: limit-side only.
    """

    color: ColorOrder = "rgb"
    resize: ResizeMode = "stretch"
    interpolation: Interpolation = "bilinear"
    scale: float = 1.0 / 255.0
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    pad_value: float | None = 114.0
    crop_ratio: float = 0.875
    side_multiple: int = 32
    side_limit_px: int = 736
    side_limit_type: Literal["min", "max"] = "min"


class PostprocessSpec(Record, closed=True):
    """How raw outputs become a result.

    Attributes:
        task: Which result.
        form: The form of the outputs. classify: logits, probabilities. detect: yolov8 (one output [1, 4+classes, n],
            boxes cx, cy, w, h in input pixels, scores 0..1), yolov8-heads (raw heads [1, 4*bins+classes, h, w] finest
            first), yolov5 (one output [1, n, 5+classes]: box, objectness, classes), yolov5-heads (raw heads
            [1, anchors*(5+classes), h, w] or [1, anchors, h, w, 5+classes], finest first), ssd (box codes [1, n, 4]
            and probabilities [1, n, classes] over anchors, class 0 being the background). text-detect: dbnet.
            text-recognize: ctc (probabilities), ctc-logits.
        score_threshold: Least score kept; dbnet: a pixel above it is text.
        iou_threshold: Overlap above which the weaker box of a class is dropped.
        max_detections: Most boxes kept.
        class_agnostic: Suppress across classes.
        top_k: classify: how many classes to return.
        strides: detect: pixels a cell, one a head, finest first.
        anchors: ssd: flattened cx, cy, w, h in 0..1; yolov5 raw heads: w, h pairs.
        box_threshold, unclip_ratio: dbnet.
        blank: ctc: index of the blank class.
        dfl_bins: yolov8-heads: bins of each distance's distribution.
        variances: ssd: what box codes of centres and of sizes are multiplied by.
        dilate: dbnet: grow regions by a pixel before boxing them.
    """

    task: TaskName = "raw"
    form: str = "raw"
    score_threshold: float = 0.25
    iou_threshold: float = 0.45
    max_detections: int = 300
    class_agnostic: bool = False
    top_k: int = 5
    strides: tuple[int, ...] = (8, 16, 32)
    anchors: tuple[float, ...] = ()
    box_threshold: float = 0.5
    unclip_ratio: float = 1.6
    blank: int = 0
    dfl_bins: int = 16
    variances: tuple[float, float] = (0.1, 0.2)
    dilate: bool = True
