"""Named preprocessing and post-processing specs: what the families of models expect."""

from __future__ import annotations

from edgekit.package.specs import PostprocessSpec, PreprocessSpec

# torchvision's evaluation transform: shorter side 256, middle 224, ImageNet statistics.
_IMAGENET = PreprocessSpec(
    color="rgb",
    resize="center-crop",
    scale=1 / 255,
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    crop_ratio=0.875,
)
# Ultralytics' letterbox: centred, padded with grey 114, pixels in 0..1.
_YOLO = PreprocessSpec(color="rgb", resize="letterbox", scale=1 / 255, pad_value=114.0)
_HALF = (0.5, 0.5, 0.5)

PREPROCESS: dict[str, PreprocessSpec] = {
    "imagenet": _IMAGENET,
    "yolo": _YOLO,
    # PaddleOCR's text detection as packaged by rapidocr-onnxruntime: BGR, shorter side at least 736, multiples of 32.
    "ppocr-det": PreprocessSpec(color="bgr", resize="limit-side", mean=_HALF, std=_HALF, pad_value=None),
    # PaddleOCR's recognition: BGR, height 48, zeros on the right.
    "ppocr-rec": PreprocessSpec(color="bgr", resize="fixed-height", mean=_HALF, std=_HALF, pad_value=None),
    # Pixels 0..1 and nothing else.
    "unit": PreprocessSpec(resize="stretch", pad_value=None),
}

POSTPROCESS: dict[str, PostprocessSpec] = {
    "imagenet": PostprocessSpec(task="classify", form="logits"),
    "yolo": PostprocessSpec(task="detect", form="yolov8"),
    "ppocr-det": PostprocessSpec(task="text-detect", form="dbnet", score_threshold=0.3),
    "ppocr-rec": PostprocessSpec(task="text-recognize", form="ctc"),
    "unit": PostprocessSpec(),
}
