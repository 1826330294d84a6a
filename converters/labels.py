"""Class names: from a file, or from the metadata that exporters leave in the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from edgekit.errors import UsageError
from edgekit.package.specs import PostprocessSpec

LABELLED_TASKS = ("classify", "detect", "text-recognize")
"""Tasks whose results name classes; see edgekit.vision.tasks."""

_MAX_FILE_BYTES = 1 << 22
_MAX_LABELS = 1 << 17
_BLANK = "blank"
# Ultralytics writes a Python dictionary: {0: 'person', 1: "traffic light"}. It is read, never evaluated.
_NAME = re.compile(r"""(\d{1,6})\s*:\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""")


def given_labels(given: Path | tuple[str, ...] | None, postprocess: PostprocessSpec) -> tuple[str, ...] | None:
    """Reads the labels that the user gives.

    Args:
        given: A file with one name a line, or the names; None: none are given.
        postprocess: For text recognition the blank comes first and the space last, as PP-OCR counts its classes.

    Raises:
        UsageError: The file can't be read.
    """
    if given is None or isinstance(given, tuple):
        return given
    lines = _read(given)
    return _characters(lines) if postprocess.task == "text-recognize" and _BLANK not in lines[:1] else tuple(lines)


def check_label_count(labels: tuple[str, ...], classes: int, postprocess: PostprocessSpec) -> None:
    """Checks that there is a label for each class and none beyond.

    Args:
        labels: The names; none fit every model.
        classes: Of the model; 0 where it is not known.
        postprocess: Its task; text recognition may leave the last label, the space, unused.

    Raises:
        UsageError: Too few or too many.
    """
    spare = int(postprocess.task == "text-recognize")
    if labels and classes and not classes <= len(labels) <= classes + spare:
        raise UsageError(
            "labels differ in number from the model's classes", where="--labels", got=len(labels), expected=classes
        )


def metadata_labels(metadata: Mapping[str, str], postprocess: PostprocessSpec) -> tuple[str, ...]:
    """Finds labels in the metadata of a model; none where it holds none."""
    if postprocess.task == "text-recognize" and metadata.get("character"):
        return _characters(metadata["character"].split("\n"))
    found = {int(number): single or double for number, single, double in _NAME.findall(metadata.get("names", ""))}
    if found and sorted(found) == list(range(len(found))):
        return tuple(re.sub(r"\\(.)", r"\1", found[i]) for i in range(len(found)))
    return ()


def _characters(lines: list[str]) -> tuple[str, ...]:
    kept = lines[:-1] if lines and lines[-1] == "" else lines
    return (_BLANK, *kept, " ")


def _read(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
        if len(data) > _MAX_FILE_BYTES:
            raise UsageError("too large for labels", where=path, expected=f"at most {_MAX_FILE_BYTES} bytes")
        lines = data.decode("utf-8-sig").splitlines()
    except OSError as error:
        raise UsageError("labels can't be read", where=path, got=error.strerror) from error
    except UnicodeDecodeError as error:
        raise UsageError("labels are not UTF-8 text", where=path) from error
    if not lines or len(lines) > _MAX_LABELS:
        raise UsageError("no labels in it, or too many", where=path, got=len(lines), expected=f"1 to {_MAX_LABELS}")
    return lines
