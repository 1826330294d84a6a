"""Raw outputs to results, by the task that a package declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgekit import _native
from edgekit.errors import PackageError, TensorError
from edgekit.package.manifest import Manifest
from edgekit.package.specs import FORMS, PostprocessSpec
from edgekit.vision.detection import DetectTask
from edgekit.vision.frame_transform import FrameTransform
from edgekit.vision.output_arrays import single_output
from edgekit.vision.results import Classification, Raw, Result, Text, TextBoxes

Outputs = Mapping[str, NDArray[np.generic]]

# PaddleOCR drops boxes whose shorter side has no more than this many source pixels.
_LEAST_TEXT_SIDE_PX = 3


class Task(Protocol):
    """One kind of result."""

    def postprocess(self, outputs: Outputs, transform: FrameTransform | None) -> Result:
        """Makes a result of raw outputs.

        Args:
            outputs: Output name to array, as run() gives them.
            transform: Of the picture that was run; None only for tasks without coordinates.

        Raises:
            TensorError: The outputs don't have the declared form.
        """
        ...


class ClassifyTask:
    """Class scores to the best few classes."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._softmax = manifest.postprocess.form == "logits"
        self._top_k = manifest.postprocess.top_k

    def postprocess(self, outputs: Outputs, transform: FrameTransform | None) -> Classification:
        """See Task.postprocess."""
        del transform
        scores = single_output(outputs, self._manifest.outputs).reshape(-1)
        if self._softmax:
            scores = _softmax(scores)
        best = np.argsort(-scores, kind="stable")[: self._top_k]
        return Classification(best.astype(np.int32), scores[best].astype(np.float32), self._manifest.labels)


class TextDetectTask:
    """DBNet's probability map to polygons."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest

    def postprocess(self, outputs: Outputs, transform: FrameTransform | None) -> TextBoxes:
        """See Task.postprocess."""
        if transform is None:
            raise TensorError("text boxes need the transform of their picture")
        spec = self._manifest.postprocess
        values = single_output(outputs, self._manifest.outputs)
        if values.ndim != 4 or values.shape[:2] != (1, 1):
            raise TensorError("not a probability map", got=values.shape, expected="(1, 1, height, width)")
        chart = values[0, 0]
        corners, scores = _native.dbnet_boxes(
            chart, spec.score_threshold, spec.box_threshold, spec.unclip_ratio, spec.dilate
        )
        height, width = transform.input_hw
        polygons = transform.to_source(
            corners * np.array([width / chart.shape[1], height / chart.shape[0]], np.float32)
        )
        source_height, source_width = transform.source_hw
        polygons = np.clip(polygons, 0, np.array([source_width - 1, source_height - 1], np.float32))
        sides = np.linalg.norm(polygons - np.roll(polygons, -1, axis=1), axis=2)
        large = sides.min(axis=1, initial=np.inf) > _LEAST_TEXT_SIDE_PX
        return TextBoxes(polygons[large], scores[large])


class TextRecognizeTask:
    """CTC's rows to a text."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._softmax = manifest.postprocess.form == "ctc-logits"

    def postprocess(self, outputs: Outputs, transform: FrameTransform | None) -> Text:
        """See Task.postprocess."""
        del transform
        rows = single_output(outputs, self._manifest.outputs)
        if rows.ndim != 3 or rows.shape[0] != 1:
            raise TensorError("not rows of character scores", got=rows.shape, expected="(1, steps, classes)")
        values = _softmax(rows[0]) if self._softmax else rows[0]
        ids, scores = _native.ctc_greedy(values, self._manifest.postprocess.blank)
        labels = self._manifest.labels
        if ids.size and int(ids.max()) >= len(labels):
            raise TensorError("fewer labels than classes", got=len(labels), expected=f"at least {int(ids.max()) + 1}")
        text = "".join(labels[index] for index in ids)
        return Text(text, float(scores.mean()) if scores.size else 0.0, scores)


class RawTask:
    """Outputs as they are."""

    def __init__(self, manifest: Manifest) -> None:
        del manifest

    def postprocess(self, outputs: Outputs, transform: FrameTransform | None) -> Raw:
        """See Task.postprocess."""
        del transform
        return Raw(dict(outputs))


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True), dtype=np.float32)


_TASKS: dict[str, Callable[[Manifest], Task]] = {
    "classify": ClassifyTask,
    "detect": DetectTask,
    "text-detect": TextDetectTask,
    "text-recognize": TextRecognizeTask,
    "raw": RawTask,
}


def check_form(spec: PostprocessSpec) -> None:
    """Checks that a task knows the form of its outputs.

    Raises:
        PackageError: It doesn't.
    """
    known = FORMS[spec.task]
    if spec.form not in known:
        raise PackageError("unknown form of outputs", where=spec.task, got=spec.form, expected=", ".join(known))


def make_task(manifest: Manifest) -> Task:
    """Makes the task that a package declares.

    Raises:
        PackageError: The post-processing spec makes no sense.
    """
    check_form(manifest.postprocess)
    return _TASKS[manifest.postprocess.task](manifest)
