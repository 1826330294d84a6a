"""JSON as a package may hold it: UTF-8, no duplicate keys, no NaN, bounded depth, decoded into a typed value."""

from __future__ import annotations

from typing import Any, TypeVar

from edgekit import _native
from edgekit.errors import PackageError
from edgekit.records import Record, decode

R = TypeVar("R", bound=Record)


def parse_json(data: bytes, where: object) -> Any:
    """Parses JSON strictly.

    Args:
        data: The text.
        where: What it is, for messages.

    Raises:
        PackageError: Not JSON, a duplicate key, a number that is not finite or absurdly long, or nested too deeply.
    """
    try:
        return _native.parse_json(data)
    except ValueError as error:
        raise PackageError("is not valid JSON", where=where, got=str(error)) from error


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
