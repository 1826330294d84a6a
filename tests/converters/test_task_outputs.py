"""Tasks against the shapes of outputs: what fits, with its number of classes, and what is refused in one line."""

import pytest

from edgekit.converters.task_outputs import check_task_outputs
from edgekit.errors import UsageError
from edgekit.package.specs import FORMS, PostprocessSpec, TensorSpec


def classes(task, form, *shapes):
    outputs = [TensorSpec(f"y{index}", "float32", shape) for index, shape in enumerate(shapes)]
    return check_task_outputs(PostprocessSpec(task, form), outputs)


@pytest.mark.parametrize(
    "task, form, shapes, expected",
    [
        ("classify", "logits", [(1, 10)], 10),
        ("classify", "probabilities", [(1, 1000, 1, 1)], 1000),
        ("detect", "yolov8", [(1, 84, 8400)], 80),
        ("detect", "yolov8", [(1, 84, 8400), (1, 3)], 80),  # by-products are left alone
        ("detect", "yolov5", [(1, 25200, 85)], 80),
        ("detect", "yolov8-heads", [(1, 72, 40, 40), (1, 72, 20, 20), (1, 72, 10, 10)], 8),
        ("detect", "yolov5-heads", [(1, 255, 40, 40), (1, 255, 20, 20), (1, 255, 10, 10)], 0),
        ("detect", "ssd", [(1, 3000, 21), (1, 3000, 4)], 0),
        ("text-detect", "dbnet", [(1, 1, 736, 736)], 0),
        ("text-detect", "dbnet", [(1, 1, "h", "w")], 0),
        ("text-recognize", "ctc", [(1, "steps", 6625)], 6625),
        ("raw", "raw", [(7,)], 0),
    ],
)
def test_what_fits(task, form, shapes, expected):
    assert classes(task, form, *shapes) == expected


@pytest.mark.parametrize(
    "task, form, shapes",
    [
        ("classify", "logits", [(1, 12, 2100)]),
        ("classify", "logits", [(1, 1)]),
        ("detect", "yolov8", [(1, 10)]),
        ("detect", "yolov8", [(1, 4, 100)]),
        ("detect", "yolov8", [(2, 84, 8400)]),
        ("detect", "yolov5", [(1, 100, 5)]),
        ("detect", "yolov8-heads", [(1, 72, 40, 40)]),
        ("detect", "yolov8-heads", [(1, 72, 40, 40), (1, 73, 20, 20), (1, 72, 10, 10)]),
        ("detect", "ssd", [(1, 3000, 4)]),
        ("text-detect", "dbnet", [(1, 10)]),
        ("text-detect", "dbnet", [(1, 3, 64, 64)]),
        ("text-recognize", "ctc", [(1, 2)]),
        ("text-recognize", "ctc-logits", [(1, 1, 320, 320)]),
    ],
)
def test_what_does_not_fit_names_task_shape_and_what_would(task, form, shapes):
    with pytest.raises(UsageError) as caught:
        classes(task, form, *shapes)
    said = str(caught.value)
    assert f"--task {task}, --form {form}" in said and "expected" in said
    assert f"y0 [{', '.join(map(str, shapes[0]))}]" in said


def test_every_form_is_checked():
    """A shape that no task can read is refused by each form but raw."""
    for task, forms in FORMS.items():
        for form in forms:
            if task == "raw":
                continue
            with pytest.raises(UsageError):
                classes(task, form, (2, 3, 5, 7, 11, 13))
