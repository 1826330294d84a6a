"""--preprocess: a preset, a TOML file, or none; single keys overridden; into the spec that goes into the package."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgekit.errors import UsageError
from edgekit.package.presets import POSTPROCESS, PREPROCESS
from edgekit.package.specs import FORMS, PostprocessSpec, PreprocessSpec
from edgekit.records import decode, field_names, replace, to_builtins

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_TOML_BYTES = 1 << 16
_LISTS = ("mean", "std")
_NUMBERS = ("scale", "pad_value", "crop_ratio")
_COUNTS = ("side_multiple", "side_limit_px")


def resolve_preprocess(choice: str | None, overrides: Mapping[str, str]) -> PreprocessSpec | None:
    """Makes the preprocess spec.

    Args:
        choice: Name of a preset, or path of a TOML file whose keys are those of PreprocessSpec, with `preset` naming
            what it starts from; None: the model takes no pictures, unless something is overridden.
        overrides: Key to its text: "0.485,0.456,0.406", "1/255", "gray", "letterbox"; "none" for no pad value.

    Raises:
        UsageError: Unknown preset or key, or a value that can't be read.
    """
    if choice is None and not overrides:
        return None
    values: dict[str, Any] = {} if choice is None else _chosen(choice)
    where = "--preprocess" if choice is None else f"--preprocess {choice}"
    _decode(values, where)
    for key, text in overrides.items():
        values[key] = _parse(key, text)
        _check_value(key, values[key])
    if values.get("color") == "gray":
        for key in _LISTS:
            given = values.get(key)
            values[key] = given[:1] if given and len(set(given)) == 1 else given or ([0.0] if key == "mean" else [1.0])
    spec = _decode(values, where)
    channels = 1 if spec.color == "gray" else 3
    for key in _LISTS:
        count, named = len(getattr(spec, key)), _option(key) if key in overrides else where
        if count not in (1, channels):
            expected = "1" if channels == 1 else f"1 or {channels}"
            hint = f"color {spec.color} has {channels} a pixel; give --{key}"
            raise UsageError(f"{key} has the wrong length", where=named, got=count, expected=expected, hint=hint)
    if 0.0 in spec.std:
        raise UsageError("std must not be 0", where=_option("std") if "std" in overrides else where)
    return spec


def _decode(values: Mapping[str, Any], where: str) -> PreprocessSpec:
    try:
        spec: PreprocessSpec = decode(values, PreprocessSpec)
    except ValueError as error:
        raise UsageError(f"not a preprocessing: {error}", where=where) from error
    return spec


def _check_value(key: str, value: Any) -> None:
    try:
        decode({key: value}, PreprocessSpec)
    except ValueError as error:
        raise UsageError(str(error).rpartition(" at ")[0], where=_option(key)) from error


def _option(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _chosen(choice: str) -> dict[str, Any]:
    if choice in PREPROCESS:
        return dict(to_builtins(PREPROCESS[choice]))
    if not choice.endswith(".toml"):
        raise UsageError(
            "unknown preset", where="--preprocess", got=choice, expected=f"{', '.join(PREPROCESS)} or a .toml file"
        )
    values = _read_toml(Path(choice))
    preset = values.pop("preset", None)
    if preset is not None and preset not in PREPROCESS:
        raise UsageError("unknown preset", where=choice, got=preset, expected=", ".join(PREPROCESS))
    return {**(dict(to_builtins(PREPROCESS[preset])) if preset else {}), **values}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_TOML_BYTES + 1)
        if len(data) > _MAX_TOML_BYTES:
            raise UsageError("too large for a preprocessing", where=path, expected=f"at most {_MAX_TOML_BYTES} bytes")
        return tomllib.loads(data.decode())
    except OSError as error:
        raise UsageError("can't be read", where=path, got=error.strerror) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError("not a TOML file", where=path, got=str(error)) from error


def _parse(key: str, text: str) -> Any:
    if key not in (known := field_names(PreprocessSpec)):
        raise UsageError("no such key of the preprocessing", where=key, expected=", ".join(known))
    try:
        if key in _LISTS:
            return [_number(part) for part in text.split(",")]
        if key == "pad_value" and text.lower() == "none":
            return None
        if key in _NUMBERS:
            return _number(text)
        return int(text) if key in _COUNTS else text
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise UsageError("not a number", where=_option(key), got=text) from error


def _number(text: str) -> float:
    numerator, slash, denominator = text.partition("/")
    value = float(numerator) / float(denominator) if slash else float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def resolve_postprocess(choice: str | None, task: str | None, form: str | None) -> PostprocessSpec:
    """Makes the post-processing spec: the preset's, with task and form overridden.

    Raises:
        UsageError: Unknown task, or a form that the task does not read.
    """
    spec = POSTPROCESS.get(choice or "", PostprocessSpec())
    if task is not None:
        if task not in FORMS:
            raise UsageError("unknown task", where="--task", got=task, expected=", ".join(FORMS))
        if task != spec.task:
            values = {"task": task, "form": FORMS[task][0], "score_threshold": spec.score_threshold}
            spec = decode(values, PostprocessSpec)
    if form is None:
        return spec
    if form not in FORMS[spec.task]:
        known = ", ".join(FORMS[spec.task])
        raise UsageError(f"task {spec.task} has no such form of outputs", where="--form", got=form, expected=known)
    return replace(spec, form=form)
