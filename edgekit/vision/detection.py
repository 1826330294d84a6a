"""The detect task: outputs of the known families of detectors to boxes in source pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from edgekit import _native
from edgekit.errors import PackageError, TensorError
from edgekit.package.manifest import Manifest
from edgekit.package.specs import PostprocessSpec
from edgekit.vision.frame_transform import FrameTransform
from edgekit.vision.output_arrays import real_outputs
from edgekit.vision.results import Detections

Floats = NDArray[np.float32]
Candidates = tuple[Floats, Floats, NDArray[np.int32]]
Decode = Callable[[list[Floats], PostprocessSpec, tuple[int, int]], Candidates]


def _yolov8(outputs: list[Floats], spec: PostprocessSpec, input_hw: tuple[int, int]) -> Candidates:
    del input_hw
    return _native.decode_yolov8(_without_batch(outputs[0], 3), spec.score_threshold)


def _yolov8_heads(outputs: list[Floats], spec: PostprocessSpec, input_hw: tuple[int, int]) -> Candidates:
    del input_hw
    return _joined(
        _native.decode_yolov8_head(_without_batch(head, 4), stride, spec.dfl_bins, spec.score_threshold)
        for head, stride in _heads_and_strides(outputs, spec)
    )


def _yolov5(outputs: list[Floats], spec: PostprocessSpec, input_hw: tuple[int, int]) -> Candidates:
    del input_hw
    return _native.decode_yolov5(_without_batch(outputs[0], 3), spec.score_threshold)


def _yolov5_heads(outputs: list[Floats], spec: PostprocessSpec, input_hw: tuple[int, int]) -> Candidates:
    del input_hw
    heads = _heads_and_strides(outputs, spec)
    share, rest = divmod(len(spec.anchors), 2 * len(heads))
    if share == 0 or rest:
        raise PackageError(
            "anchors don't fit the heads", where="postprocess", got=len(spec.anchors), expected="w, h pairs"
        )
    return _joined(
        _native.decode_yolov5_head(
            _without_batch(head, head.ndim),
            spec.anchors[2 * share * i : 2 * share * (i + 1)],
            stride,
            spec.score_threshold,
        )
        for i, (head, stride) in enumerate(heads)
    )


def _ssd(outputs: list[Floats], spec: PostprocessSpec, input_hw: tuple[int, int]) -> Candidates:
    if len(outputs) < 2:
        raise TensorError("ssd needs boxes and scores", got=f"{len(outputs)} outputs", expected=2)
    # Either order: boxes have four columns; a model of three classes has boxes first.
    codes, scores = outputs[:2] if outputs[0].shape[-1] == 4 else (outputs[1], outputs[0])
    anchors = np.asarray(spec.anchors, dtype=np.float32)
    return _native.decode_ssd(
        _without_batch(codes, 3), _without_batch(scores, 3), anchors, input_hw, spec.variances, spec.score_threshold
    )


_DECODERS: dict[str, Decode] = {
    "yolov8": _yolov8,
    "yolov8-heads": _yolov8_heads,
    "yolov5": _yolov5,
    "yolov5-heads": _yolov5_heads,
    "ssd": _ssd,
}


def _without_batch(array: Floats, rank: int) -> Floats:
    if array.ndim != rank or array.shape[0] != 1:
        raise TensorError("unexpected shape of an output", got=array.shape, expected=f"{rank} dims, batch 1")
    return array.reshape(array.shape[1:])


def _heads_and_strides(outputs: list[Floats], spec: PostprocessSpec) -> list[tuple[Floats, int]]:
    if len(outputs) < len(spec.strides):
        raise TensorError("fewer heads than strides", got=len(outputs), expected=len(spec.strides))
    return list(zip(outputs, spec.strides, strict=False))


def _joined(parts: Iterable[Candidates]) -> Candidates:
    boxes, scores, class_ids = zip(*parts, strict=True)
    return np.concatenate(boxes), np.concatenate(scores), np.concatenate(class_ids)


class DetectTask:
    """Outputs of a detector to boxes in source pixels."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._decode = _DECODERS[manifest.postprocess.form]

    def postprocess(self, outputs: Mapping[str, NDArray[np.generic]], transform: FrameTransform | None) -> Detections:
        """See tasks.Task.postprocess."""
        if transform is None:
            raise TensorError("boxes need the transform of their picture")
        spec = self._manifest.postprocess
        arrays = real_outputs(outputs, self._manifest.outputs)
        try:
            boxes, scores, class_ids = self._decode(arrays, spec, transform.input_hw)
        except ValueError as error:
            raise TensorError(f"outputs don't have the form {spec.form}: {error}") from error
        kept = _native.nms(boxes, scores, class_ids, spec.iou_threshold, spec.max_detections, spec.class_agnostic)
        return Detections(transform.boxes_to_source(boxes[kept]), scores[kept], class_ids[kept], self._manifest.labels)
