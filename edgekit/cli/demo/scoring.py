"""Average precision of boxes at an overlap of 0.5, for the demo's table."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MATCH_IOU = 0.5

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


def box_iou(first: Floats, second: Floats) -> NDArray[np.float64]:
    """Overlap of every box with every box.

    Args:
        first: (n, 4) as x0, y0, x1, y1.
        second: (m, 4).

    Returns:
        (n, m) in [0, 1].
    """
    a, b = first.astype(np.float64), second.astype(np.float64)
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    area_a, area_b = (a[:, 2:] - a[:, :2]).prod(axis=1), (b[:, 2:] - b[:, :2]).prod(axis=1)
    overlap: NDArray[np.float64] = shared / np.maximum(area_a[:, None] + area_b[None] - shared, 1e-9)
    return overlap


@dataclass
class AveragePrecision:
    """Collects detections picture by picture; AP is the area under the precision envelope (PASCAL VOC 2010)."""

    _scores: list[list[float]] = field(default_factory=list)
    _hits: list[list[bool]] = field(default_factory=list)
    _classes: list[list[int]] = field(default_factory=list)
    _truths: dict[int, int] = field(default_factory=dict)

    def add(self, boxes: Floats, scores: Floats, class_ids: Ids, truth_boxes: Floats, truth_ids: Ids) -> None:
        """Adds one picture; boxes as x0, y0, x1, y1 in pixels."""
        order = np.argsort(-scores, kind="stable")
        overlap = box_iou(boxes[order], truth_boxes)
        taken: set[int] = set()
        hits = []
        for row, class_id in zip(overlap, class_ids[order], strict=True):
            fitting = [
                j for j in np.argsort(-row) if row[j] >= MATCH_IOU and truth_ids[j] == class_id and j not in taken
            ]
            hits.append(bool(fitting))
            taken.update(int(j) for j in fitting[:1])
        self._scores.append([float(s) for s in scores[order]])
        self._hits.append(hits)
        self._classes.append([int(c) for c in class_ids[order]])
        for class_id in truth_ids:
            self._truths[int(class_id)] = self._truths.get(int(class_id), 0) + 1

    def value(self) -> float:
        """Mean over the classes present, 0..1; nan when nothing was added."""
        flat = [
            np.asarray([value for picture in column for value in picture])
            for column in (self._scores, self._hits, self._classes)
        ]
        scores, hits, classes = flat
        per_class = []
        for class_id, count in self._truths.items():
            mine = np.flatnonzero(classes == class_id)
            ranked = hits[mine[np.argsort(-scores[mine], kind="stable")]].astype(np.float64)
            found = np.cumsum(ranked)
            precision = found / np.arange(1, len(ranked) + 1)
            envelope = np.maximum.accumulate(precision[::-1])[::-1] if len(precision) else precision
            recall = np.concatenate([[0.0], found / count])
            per_class.append(float((np.diff(recall) * envelope).sum()))
        return float(np.mean(per_class)) if per_class else float("nan")
