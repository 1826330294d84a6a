"""JSON as a package may hold it: UTF-8, no duplicate keys, no NaN, bounded depth, decoded into a typed value."""

from __future__ import annotations

import json
import math
from typing import Any, TypeVar

from edgekit.errors import PackageError
from edgekit.records import Record, decode

R = TypeVar("R", bound=Record)

_LONGEST_NUMBER = 100


def parse_json(data: bytes, where: object) -> Any:
    """Parses JSON strictly.

    Args:
        data: The text.
        where: What it is, for messages.

    Raises:
        PackageError: Not JSON, a duplicate key, a number that is not finite or absurdly long, text that is not
            Unicode, or nested too deeply.
    """
    try:
        value = json.loads(
            data.decode(),
            parse_constant=_finite,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=_unique_keys,
        )
        json.dumps(value, ensure_ascii=False).encode()  # refuses half of a surrogate pair
    except RecursionError as error:
        raise PackageError("is not valid JSON", where=where, got="nested too deeply") from error
    except ValueError as error:
        raise PackageError("is not valid JSON", where=where, got=ascii(str(error))[1:-1][:120]) from error
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"number is not finite: {text[:40]}")
    return number


def _whole(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError(f"number of {len(text)} characters")
    return int(text)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key is there twice")
    return table


def convert(value: Any, kind: type[R], where: object) -> R:
    """Turns parsed JSON or TOML into a typed value, without coercion.

    Raises:
        PackageError: A field is missing, unknown where that is forbidden, or of the wrong type.
    """
    try:
        record: R = decode(value, kind)
    except ValueError as error:
        raise PackageError("does not have the right form", where=where, got=str(error)) from error
    return record
