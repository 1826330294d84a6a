"""Immutable records: named, typed fields, given as arguments or decoded from parsed JSON.

What a device needs between `import edgekit` and the first result is made of these. They do what frozen dataclasses and
typed JSON libraries do, but defining one generates no code and loading this module loads no other: on a small board
those cost more time than an inference.
"""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """Tells type checkers that subclasses have an __init__ made from their fields."""
        return lambda cls: cls


R = TypeVar("R", bound="Record")

EMPTY: dict[str, Any] = {}  # the default of a table; each record gets one of its own


@dataclass_transform(frozen_default=True)
class Record:
    """Base of all records. A subclass lists its fields as a dataclass does: `name: type` or `name: type = default`.

    Args:
        values: Fields, in order or by name.

    Raises:
        TypeError: A field is missing, unknown or given twice.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _closed: ClassVar[bool] = False

    def __init_subclass__(cls, closed: bool = False) -> None:
        """Collects the fields.

        Args:
            closed: decode() refuses keys that are not fields; otherwise it ignores them.
        """
        cls._fields = (*cls._fields, *cls.__annotations__)
        cls._closed = closed

    def __init__(self, *values: Any, **named: Any) -> None:
        state = self.__dict__
        state.update(zip(self._fields, values, strict=False))
        if len(values) > len(self._fields):
            raise TypeError(f"{type(self).__name__}() takes {len(self._fields)} fields, not {len(values)}")
        for name in self._fields[len(values) :]:
            if name in named:
                state[name] = named.pop(name)
            elif hasattr(type(self), name):
                default = getattr(type(self), name)
                state[name] = dict(default) if default is EMPTY else default
            else:
                raise TypeError(f"{type(self).__name__}() lacks the field {name!r}")
        if named:
            raise TypeError(f"{type(self).__name__}() has no field {next(iter(named))!r}, or it is given twice")
        self.__post_init__()

    def __post_init__(self) -> None:
        """Checks the fields; for subclasses."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} can't be changed; replace() makes another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} can't be changed; replace() makes another one")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__[name] for name in self._fields))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={self.__dict__[name]!r}' for name in self._fields)})"


def replace(record: R, **changes: Any) -> R:
    """Makes a record like another one with some fields changed."""
    return type(record)(**{**record.__dict__, **changes})


def field_names(kind: type[Record]) -> tuple[str, ...]:
    """Returns the names of a record class's fields, in order."""
    return kind._fields


def to_builtins(value: Any) -> Any:
    """Turns records into dicts and tuples into lists, at every depth: what JSON can hold."""
    if isinstance(value, Record):
        return {name: to_builtins(value.__dict__[name]) for name in value._fields}
    if isinstance(value, dict):
        return {key: to_builtins(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_builtins(each) for each in value]
    return value


def decode(value: Any, kind: Any, path: str = "$") -> Any:
    """Makes a typed value of parsed JSON or TOML. Nothing is coerced but whole numbers to floats and lists to tuples.

    Args:
        value: None, bool, int, float, str, or lists and dicts of such.
        kind: A record class whose annotations are types, not text; or a type that such a class may name: bool, int,
            float, str, None, Literal of texts, tuple, dict with text as keys, or a union of these.
        path: Where the value lies, for messages.

    Raises:
        ValueError: Of another form; the message says what was expected where.
    """
    origin = get_origin(kind)
    if origin is None:
        return _decode_record(value, kind, path) if issubclass(kind, Record) else _decode_plain(value, kind, path)
    parts = get_args(kind)
    if origin is Literal:
        if not isinstance(value, str) or value not in parts:
            wanted = " or ".join(map(repr, parts))
            if not isinstance(value, str):
                raise _unexpected(value, wanted, path)
            raise ValueError(f"expected {wanted}, got {ascii(value)[:80]} at {path}")
        return value
    if origin in (Union, UnionType):
        return _decode_union(value, parts, path)
    if origin is dict:
        if not isinstance(value, dict):
            raise _unexpected(value, "object", path)
        return {key: decode(each, parts[1], f"{path}.{ascii(key)[1:-1][:80]}") for key, each in value.items()}
    return _decode_tuple(value, parts, path)


def _decode_record(value: Any, kind: type[Record], path: str) -> Record:
    if not isinstance(value, dict):
        raise _unexpected(value, "object", path)
    kinds = {name: each for base in reversed(kind.__mro__[:-2]) for name, each in base.__annotations__.items()}
    fields = {name: decode(value[name], kinds[name], f"{path}.{name}") for name in kind._fields if name in value}
    if kind._closed and (unknown := value.keys() - kinds.keys()):
        raise ValueError(f"unknown field {ascii(min(unknown))[:80]} at {path}")
    for name in kind._fields:
        if name not in fields and not hasattr(kind, name):
            raise ValueError(f"missing field {name!r} at {path}")
    return kind(**fields)


def _decode_plain(value: Any, kind: type, path: str) -> Any:
    if type(value) is kind:
        return value
    if kind is float and type(value) is int and abs(value) < 1 << 1000:
        return float(value)
    raise _unexpected(value, kind.__name__, path)


def _decode_union(value: Any, kinds: tuple[Any, ...], path: str) -> Any:
    for kind in kinds:
        if isinstance(value, dict) and get_origin(kind) is None and issubclass(kind, Record):
            return _decode_record(value, kind, path)  # what is wrong inside the object says more than "no union member"
    for kind in kinds:
        try:
            return decode(value, kind, path)
        except ValueError:
            continue
    raise _unexpected(value, " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds), path)


def _decode_tuple(value: Any, kinds: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _unexpected(value, "array", path)
    if kinds[1:] == (...,):
        if kinds[0] is str and all(type(each) is str for each in value):
            return tuple(value)
        return tuple(decode(each, kinds[0], f"{path}[{index}]") for index, each in enumerate(value))
    if len(value) != len(kinds):
        raise ValueError(f"expected {len(kinds)} items, got {len(value)} at {path}")
    pairs = enumerate(zip(value, kinds, strict=True))
    return tuple(decode(each, kind, f"{path}[{index}]") for index, (each, kind) in pairs)


def _unexpected(value: Any, expected: str, path: str) -> ValueError:
    return ValueError(f"expected {expected}, got {type(value).__name__} at {path}")
