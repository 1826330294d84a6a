"""The strict JSON reader against Python's json module, and what it refuses that the module lets pass."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekit.errors import PackageError
from edgekit.package.strict_json import parse_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def same(a, b):
    """Equal, and of the same types throughout (True == 1 and 1 == 1.0 otherwise)."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    return a == b


@settings(deadline=None)
@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_reads_what_python_writes(value, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert same(parse_json(text, "t"), json.loads(text))


@settings(deadline=None)
@given(st.binary(max_size=30) | st.text('{}[]",:\\/u0123456789abcdeEf+-. tnrl', max_size=30).map(str.encode))
def test_accepts_nothing_that_python_refuses(text):
    try:
        value = parse_json(text, "t")
    except PackageError as error:
        assert "\n" not in str(error)
    else:
        assert same(value, json.loads(text.decode()))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "{", "[", '"', "[1,]", '{"a":1,}', "{1:2}", "[1 2]", "1 2", "nul", "True", "'a'", "[1}", '{"a" 1}'),
        *("01", "-", "+1", ".5", "1.", "1e", "0x1", "1_0", "--1"),
        *("NaN", "Infinity", "-Infinity", "1e999", "1" * 101, "[" * 66, '{"a":' * 66),
        *(r'"\x"', r'"\u12"', r'"\u12g4"', r'"\ud800"', r'"\ud800A"', r'"\udc00"', '"\x01"', '"\n"'),
        *('{"a":1,"a":2}', r'{"a":1,"\u0061":2}', '{"b":{"a":1,"a":2}}'),
    ],
)
def test_refused(text):
    with pytest.raises(PackageError, match="is not valid JSON") as caught:
        parse_json(text.encode(), "where")
    said = str(caught.value)
    assert said.startswith("where: ") and len(said) < 200
    assert said.count("(") == said.count(")") and not said.endswith(("')", '")'))  # no quote is left open or closed


@pytest.mark.parametrize("data", [b'"\xff"', b'"\xc3"', b'"\xed\xa0\x80"', b"\xef\xbb\xbf1", b'"a\x00b"', b"1\x00"])
def test_bytes_that_are_not_text_are_refused(data):
    with pytest.raises(PackageError):
        parse_json(data, "where")


def test_long_but_not_too_long():
    assert parse_json(b"9" * 100, "t") == int("9" * 100)
    assert parse_json(b"[" * 64 + b"]" * 64, "t")
    assert parse_json(rb'"\ud83d\ude00\u00e9\u20ac\/"', "t") == "😀é€/"
