"""Records: construction, immutability, and decoding from parsed JSON."""

import pickle
from typing import Literal

import pytest

from edgekit.records import EMPTY, Record, decode, field_names, replace, to_builtins


class Size(Record, closed=True):
    width: int
    height: int = 4


class Shape(Record):
    name: str
    kind: Literal["box", "disc"]
    size: Size
    corners: tuple[Size, ...] = ()
    pair: tuple[int, str] = (0, "")
    weights: dict[str, float] = EMPTY
    note: str | None = None
    dims: tuple[int | str, ...] = ()
    open: bool = False
    inner: Size | None = None


GOOD = {"name": "a", "kind": "box", "size": {"width": 3}}


def test_fields_by_order_and_by_name():
    assert field_names(Size) == ("width", "height")
    assert Size(1) == Size(width=1, height=4) != Size(1, 5)
    assert hash(Size(1, 2)) == hash(Size(1, 2)) and repr(Size(1, 2)) == "Size(width=1, height=2)"
    assert Size(1) != (1, 4)
    assert pickle.loads(pickle.dumps(Size(7))) == Size(7)


@pytest.mark.parametrize("values, named", [((), {}), ((1, 2, 3), {}), ((1,), {"width": 2}), ((1,), {"depth": 2})])
def test_wrong_fields_are_refused(values, named):
    with pytest.raises(TypeError):
        Size(*values, **named)


def test_a_record_can_not_be_changed_but_replaced():
    size = Size(1)
    with pytest.raises(AttributeError):
        size.width = 2
    with pytest.raises(AttributeError):
        del size.width
    assert replace(size, width=2) == Size(2, 4) and size == Size(1)


def test_tables_are_not_shared():
    first, second = decode(GOOD, Shape), decode(GOOD, Shape)
    first.weights["x"] = 1.0
    assert second.weights == {} == EMPTY


def test_fields_are_inherited():
    class Solid(Size):
        depth: int = 1

    assert field_names(Solid) == ("width", "height", "depth")
    assert decode({"width": 1, "depth": 9}, Solid) == Solid(1, 4, 9)


def test_decode_and_back():
    value = {
        **GOOD,
        "corners": [{"width": 1, "height": 2}],
        "pair": [5, "x"],
        "weights": {"a": 1, "b": 0.5},
        "dims": [1, "n"],
        "open": True,
        "inner": {"width": 8},
    }
    shape = decode(value, Shape)
    assert shape.corners == (Size(1, 2),) and shape.pair == (5, "x") and shape.dims == (1, "n")
    assert shape.weights == {"a": 1.0, "b": 0.5} and type(shape.weights["a"]) is float
    assert shape.note is None and shape.open is True and shape.inner == Size(8)
    assert decode(to_builtins(shape), Shape) == shape
    assert to_builtins(shape)["corners"] == [{"width": 1, "height": 2}]


def test_unknown_keys_are_ignored_unless_the_record_is_closed():
    assert decode({**GOOD, "colour": 1}, Shape) == decode(GOOD, Shape)
    with pytest.raises(ValueError, match=r"unknown field 'colour' at \$\.size"):
        decode({**GOOD, "size": {"width": 1, "colour": 2}}, Shape)


BAD = {
    "not an object": 5,
    "missing": {"name": "a", "kind": "box"},
    "text for a number": {**GOOD, "size": {"width": "3"}},
    "true for a number": {**GOOD, "size": {"width": True}},
    "float for a whole number": {**GOOD, "size": {"width": 3.0}},
    "number for a flag": {**GOOD, "open": 1},
    "not one of the words": {**GOOD, "kind": "ring"},
    "a list for a word": {**GOOD, "kind": ["box"]},
    "an object for an array": {**GOOD, "corners": {}},
    "inside an array": {**GOOD, "corners": [{"width": 1}, {}]},
    "too many items": {**GOOD, "pair": [1, "a", 2]},
    "none where none is not allowed": {**GOOD, "name": None},
    "neither of two": {**GOOD, "dims": [1.5]},
    "text in a table of numbers": {**GOOD, "weights": {"a": "b"}},
    "whole number beyond a float": {**GOOD, "weights": {"a": 10**400}},
    "array for a table": {**GOOD, "weights": []},
    "inside an optional object": {**GOOD, "inner": {"width": "x"}},
}


@pytest.mark.parametrize("name", BAD)
def test_other_forms_are_refused_and_the_place_is_named(name):
    decode(GOOD, Shape)
    with pytest.raises(ValueError, match=r" at \$"):
        decode(BAD[name], Shape)
    if name == "inside an array":
        with pytest.raises(ValueError, match=r"missing field 'width' at \$\.corners\[1\]"):
            decode(BAD[name], Shape)
    if name == "inside an optional object":
        with pytest.raises(ValueError, match=r"expected int, got str at \$\.inner\.width"):
            decode(BAD[name], Shape)
