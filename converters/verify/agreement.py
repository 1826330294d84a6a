"""How often an engine comes to the float model's result, by task: the measure that --max-drop is about.

0..100, 100 being full agreement with the float model; no labels are needed.

- classify: share of samples with the same best class.
- detect: F1 of cells whose best score reaches the threshold in one model and at least half of it in the other (so that
  scores next to the threshold do not count as losses), with the same class and, where the outputs hold boxes, an
  overlap (intersection over union) of at least 0.5.
- text-detect: F1 (Dice) of the pixels above the threshold.
- text-recognize: 1 - edit distance / length of the greedy CTC reading, over all samples.
- raw: 100 times the cosine of the worst output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgekit.converters.contracts import Array
from edgekit.converters.verify.accuracy import PartAccuracy
from edgekit.converters.verify.parts import DFL_BINS
from edgekit.package.specs import PostprocessSpec

_OVERLAP = 0.5


@dataclass
class Agreement:
    """Counts over samples.

    Args:
        postprocess: Task, form and thresholds.
    """

    postprocess: PostprocessSpec
    hits: float = 0.0
    total: float = 0.0

    def observe(self, expected: Mapping[str, Array], got: Mapping[str, Array]) -> None:
        """Counts one sample."""
        task, form = self.postprocess.task, self.postprocess.form
        if task == "classify":
            for name in list(expected)[:1]:
                a, b = (x[name].reshape(x[name].shape[0], -1).argmax(axis=1) for x in (expected, got))
                self._count(float((a == b).sum()), float(a.size))
        elif task == "detect" and form in ("yolov8", "yolov5", "yolov8-heads"):
            heads = len(self.postprocess.strides) if form == "yolov8-heads" else 1  # further outputs are by-products
            for name in list(expected)[:heads]:
                self._detections(expected[name], got[name])
        elif task == "text-detect":
            for name in list(expected)[:1]:
                a, b = (np.greater(x[name], self.postprocess.score_threshold) for x in (expected, got))
                self._count(2.0 * float((a & b).sum()), float(a.sum() + b.sum()))
        elif task == "text-recognize":
            for name in list(expected)[:1]:
                for row_a, row_b in zip(expected[name], got[name], strict=True):
                    a, b = self._read(row_a), self._read(row_b)
                    self._count(float(max(len(a) - edit_distance(a, b), 0)), float(len(a)))

    def _count(self, hits: float, total: float) -> None:
        self.hits += hits
        self.total += total

    def _read(self, steps: Array) -> list[int]:
        best = steps.argmax(axis=-1)
        changed = np.concatenate([[True], best[1:] != best[:-1]])
        return [int(c) for c in best[changed] if c != self.postprocess.blank]

    def _detections(self, expected: Array, got: Array) -> None:
        threshold = self.postprocess.score_threshold
        boxes_a, scores_a = _boxes_and_scores(expected, self.postprocess.form)
        boxes_b, scores_b = _boxes_and_scores(got, self.postprocess.form)
        best_a, best_b = scores_a.max(axis=-1), scores_b.max(axis=-1)
        same = scores_a.argmax(axis=-1) == scores_b.argmax(axis=-1)
        if boxes_a is not None and boxes_b is not None:
            same &= overlap(boxes_a, boxes_b) >= _OVERLAP
        found_a, found_b = best_a >= threshold, best_b >= threshold
        recalled = float((found_a & same & (best_b >= threshold / 2)).sum())
        confirmed = float((found_b & same & (best_a >= threshold / 2)).sum())
        self._count(recalled + confirmed, float(found_a.sum() + found_b.sum()))

    def result(self, parts: tuple[PartAccuracy, ...]) -> float | None:
        """Returns 0..100; for raw outputs from the parts' cosines; None when nothing was there to agree on."""
        if self.postprocess.task == "raw" or self.postprocess.form == "ssd":
            return 100.0 * max(0.0, min((p.cosine for p in parts), default=1.0))
        return 100.0 * self.hits / self.total if self.total else None


def _boxes_and_scores(output: Array, form: str) -> tuple[NDArray[np.float64] | None, NDArray[np.float64]]:
    """Brings an output into (boxes cx, cy, w, h [n, 4] or None, scores [n, classes])."""
    values = output.astype(np.float64)
    if form == "yolov8":
        rows = np.moveaxis(values, 1, -1).reshape(-1, values.shape[1])
        return rows[:, :4], rows[:, 4:]
    if form == "yolov5":
        rows = values.reshape(-1, values.shape[-1])
        return rows[:, :4], rows[:, 5:] * rows[:, 4:5]
    rows = np.moveaxis(values, 1, -1).reshape(-1, values.shape[1])
    return None, 1.0 / (1.0 + np.exp(-np.clip(rows[:, 4 * DFL_BINS :], -60, 60)))


def overlap(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intersection over union of boxes [n, 4] (cx, cy, w, h), row by row."""
    low = np.maximum(a[:, :2] - a[:, 2:] / 2, b[:, :2] - b[:, 2:] / 2)
    high = np.minimum(a[:, :2] + a[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2)
    inside = np.prod(np.clip(high - low, 0, None), axis=1)
    union = np.prod(a[:, 2:], axis=1) + np.prod(b[:, 2:], axis=1) - inside
    return np.where(union > 0, inside / np.where(union > 0, union, 1.0), 0.0)


def edit_distance(a: list[int], b: list[int]) -> int:
    """Levenshtein distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]
