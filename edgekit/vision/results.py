"""What a model says about a picture. Coordinates are pixels of the source picture; labels are names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgekit.errors import MissingDependencyError, printable

if TYPE_CHECKING:
    import supervision

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class _Marked:
    """What all results have.

    Attributes:
        simulated: The engine "simulated" gave the outputs: the values say nothing about the picture.
    """

    simulated: bool = False


class _Ranked(_Marked):
    """What results with several scored entries have in common."""

    confidence: FloatArray
    class_id: IntArray
    class_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def scores(self) -> FloatArray:
        """The same as confidence."""
        return self.confidence

    @property
    def labels(self) -> list[str]:
        """Class name of each entry; the number where the model has fewer labels than classes."""
        return [
            self.class_names[index] if 0 <= index < len(self.class_names) else str(index)
            for index in self.class_id.tolist()
        ]

    def summary(self) -> str:
        """One line for people: how many entries, and the first ten."""
        pairs = list(zip(self.labels, self.confidence.tolist(), strict=True))
        named = ", ".join(f"{label} {score:.2f}" for label, score in pairs[:10])
        rest = ", ..." if len(pairs) > 10 else ""
        return printable(f"{len(pairs)}: {named}{rest}" if pairs else "nothing")


@dataclass(frozen=True)
class Detections(_Ranked):
    """Boxes, best first.

    Attributes:
        xyxy: float32 (n, 4): x0, y0, x1, y1 in source pixels.
        confidence: float32 (n,), 0..1.
        class_id: int32 (n,).
        class_names: Labels of the model, by class id.
    """

    xyxy: FloatArray
    confidence: FloatArray
    class_id: IntArray
    class_names: tuple[str, ...] = ()

    @property
    def boxes_xyxy_px(self) -> FloatArray:
        """The same as xyxy."""
        return self.xyxy

    def to_supervision(self) -> supervision.Detections:
        """Converts to supervision.Detections with data["class_name"].

        Raises:
            MissingDependencyError: supervision is not installed.
        """
        try:
            import supervision
        except ImportError as error:
            raise MissingDependencyError("supervision is not installed", hint="pip install supervision") from error
        return supervision.Detections(
            xyxy=self.xyxy.copy(),
            confidence=self.confidence.copy(),
            class_id=self.class_id.astype(int),
            data={"class_name": np.array(self.labels, dtype=str)},
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "task": "detect",
            "detections": [
                {
                    "box_xyxy_px": [round(float(v), 2) for v in box],
                    "score": float(score),
                    "class_id": index,
                    "label": label,
                }
                for box, score, index, label in zip(
                    self.xyxy, self.confidence, self.class_id.tolist(), self.labels, strict=True
                )
            ],
        }


@dataclass(frozen=True)
class Classification(_Ranked):
    """The best classes of a picture, best first.

    Attributes:
        class_id: int32 (k,).
        confidence: float32 (k,), 0..1.
        class_names: Labels of the model, by class id.
    """

    class_id: IntArray
    confidence: FloatArray
    class_names: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "task": "classify",
            "classes": [
                {"class_id": index, "label": label, "score": float(score)}
                for index, label, score in zip(self.class_id.tolist(), self.labels, self.confidence, strict=True)
            ],
        }


@dataclass(frozen=True)
class TextBoxes(_Ranked):
    """Where text is, in the order found from top to bottom.

    Attributes:
        polygons: float32 (n, 4, 2): corners x, y in source pixels, clockwise from the text's top left.
        confidence: float32 (n,), 0..1.
    """

    polygons: FloatArray
    confidence: FloatArray

    @property
    def boxes_xyxy_px(self) -> FloatArray:
        """float32 (n, 4): the upright boxes around the polygons."""
        return np.concatenate([self.polygons.min(axis=1), self.polygons.max(axis=1)], axis=1)

    @property
    def labels(self) -> list[str]:
        """The word "text" for each box."""
        return ["text"] * len(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "task": "text-detect",
            "boxes": [
                {"polygon_px": np.round(polygon, 2).tolist(), "score": float(score)}
                for polygon, score in zip(self.polygons, self.confidence, strict=True)
            ],
        }


@dataclass(frozen=True)
class Text(_Marked):
    """A line that was read.

    Attributes:
        text: The characters.
        confidence: Mean of the characters' confidences, 0..1; 0 for an empty text.
        character_confidence: float32, one a character.
    """

    text: str
    confidence: float
    character_confidence: FloatArray = field(default_factory=lambda: np.zeros(0, np.float32))

    def summary(self) -> str:
        """One line for people: the text and its confidence."""
        return printable(f"{self.text!r} {self.confidence:.2f}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"task": "text-recognize", "text": self.text, "score": self.confidence}


@dataclass(frozen=True)
class Raw(_Marked):
    """The outputs of a model without a task.

    Attributes:
        outputs: Output name to array, as run() gives them.
    """

    outputs: Mapping[str, NDArray[np.generic]]

    def summary(self) -> str:
        """One line for people: names, dtypes and shapes."""
        return printable(", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in self.outputs.items()))

    def to_dict(self) -> dict[str, Any]:
        """Names, dtypes and shapes for JSON; values are left out."""
        return {
            "task": "raw",
            "outputs": {name: {"dtype": str(a.dtype), "shape": list(a.shape)} for name, a in self.outputs.items()},
        }


Result = Detections | Classification | TextBoxes | Text | Raw
