"""JSON as a package may hold it: UTF-8, no duplicate keys, no NaN, bounded depth, decoded into a typed value."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from edgekit.errors import PackageError
from edgekit.records import Record, decode

R = TypeVar("R", bound=Record)


def parse_json(data: bytes, where: object) -> Any:
    """Parses JSON strictly.

    Args:
        data: The text.
        where: What it is, for messages.

    Raises:
        PackageError: Not JSON, a duplicate key, NaN or infinity, or nested too deeply.
    """

    def refuse_constant(name: str) -> NoReturn:
        raise PackageError("number is not finite", where=where, got=name)

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise PackageError("key is there twice", where=where, got=ascii(twice)[:80])
        return table

    try:
        return json.loads(data.decode(), parse_constant=refuse_constant, object_pairs_hook=unique_keys)
    except RecursionError as error:
        raise PackageError("is nested too deeply", where=where) from error
    except ValueError as error:  # not UTF-8, not JSON, or an integer of thousands of digits
        raise PackageError("is not valid JSON", where=where, got=str(error)[:120]) from error


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
