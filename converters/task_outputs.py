"""Does a task fit the model's outputs? Asked before the long part of a conversion, by shapes alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgekit.errors import UsageError
from edgekit.package.specs import PostprocessSpec, TensorSpec

Shape = tuple[int | str, ...]

_BOX = 4  # numbers of a box


def check_task_outputs(postprocess: PostprocessSpec, outputs: Sequence[TensorSpec]) -> int:
    """Checks that outputs have the shapes that the task's form says.

    Args:
        postprocess: Task and form, of edgekit.package.specs.FORMS.
        outputs: Of the model; a symbolic dim fits anything.

    Returns:
        Number of classes that labels name; 0 where shapes don't tell.

    Raises:
        UsageError: They have not.
    """
    if postprocess.form not in _COUNTS:
        return 0
    count, expected = _COUNTS[postprocess.form]
    shapes = [spec.shape for spec in outputs]
    classes = count(postprocess, shapes)
    if classes is None:
        raise UsageError(
            "the task doesn't fit the model's outputs",
            where=f"--task {postprocess.task}, --form {postprocess.form}",
            got=", ".join(f"{spec.name} [{', '.join(map(str, spec.shape))}]" for spec in outputs)[:400],
            expected=expected,
            hint="choose another --task or --form; --task raw gives the outputs as they are",
        )
    return classes


def _of_scores(_: PostprocessSpec, shapes: Sequence[Shape]) -> int | None:
    wide = [dim for dim in shapes[0] if dim != 1]
    if len(wide) != 1:
        return None
    return wide[0] if isinstance(wide[0], int) else 0


def _of_yolov8(_: PostprocessSpec, shapes: Sequence[Shape]) -> int | None:
    return _beyond(shapes[0], 3, 1, _BOX)


def _of_yolov5(_: PostprocessSpec, shapes: Sequence[Shape]) -> int | None:
    return _beyond(shapes[0], 3, 2, _BOX + 1)


def _of_yolov8_heads(spec: PostprocessSpec, shapes: Sequence[Shape]) -> int | None:
    heads = shapes[: len(spec.strides)]
    counts = {_beyond(shape, 4, 1, _BOX * spec.dfl_bins) for shape in heads}
    return counts.pop() if len(heads) == len(spec.strides) and len(counts) == 1 else None


def _of_yolov5_heads(spec: PostprocessSpec, shapes: Sequence[Shape]) -> int | None:
    heads = shapes[: len(spec.strides)]
    fit = len(heads) == len(spec.strides) and all(len(shape) in (4, 5) and shape[0] == 1 for shape in heads)
    return 0 if fit else None


def _of_ssd(_: PostprocessSpec, shapes: Sequence[Shape]) -> int | None:
    two = shapes[:2]
    fit = len(two) == 2 and all(len(shape) == 3 and shape[0] == 1 for shape in two)
    return 0 if fit and any(shape[2] == _BOX for shape in two) else None


def _of_map(_: PostprocessSpec, shapes: Sequence[Shape]) -> int | None:
    return 0 if len(shapes[0]) == 4 and shapes[0][:2] == (1, 1) else None


def _of_steps(_: PostprocessSpec, shapes: Sequence[Shape]) -> int | None:
    return _beyond(shapes[0], 3, 2, 0)


def _beyond(shape: Shape, rank: int, axis: int, others: int) -> int | None:
    """Classes along an axis that holds `others` further numbers; None when the shape has no room for any."""
    if len(shape) != rank or shape[0] != 1:
        return None
    size = shape[axis]
    if isinstance(size, str):
        return 0
    return size - others if size > others else None


_SCORES = "one output of class scores, [1, classes]"
_STEPS = "one output [1, steps, classes]"
_COUNTS: dict[str, tuple[Callable[[PostprocessSpec, Sequence[Shape]], int | None], str]] = {
    "logits": (_of_scores, _SCORES),
    "probabilities": (_of_scores, _SCORES),
    "yolov8": (_of_yolov8, "one output [1, 4 + classes, boxes]"),
    "yolov8-heads": (_of_yolov8_heads, "a head for each stride, [1, 4 * bins + classes, height, width]"),
    "yolov5": (_of_yolov5, "one output [1, boxes, 5 + classes]"),
    "yolov5-heads": (_of_yolov5_heads, "a head for each stride, [1, anchors * (5 + classes), height, width]"),
    "ssd": (_of_ssd, "box codes [1, anchors, 4] and scores [1, anchors, classes]"),
    "dbnet": (_of_map, "one probability map, [1, 1, height, width]"),
    "ctc": (_of_steps, _STEPS),
    "ctc-logits": (_of_steps, _STEPS),
}
