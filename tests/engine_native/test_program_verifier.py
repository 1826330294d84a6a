"""Each rule of the verifier, broken by one field of an otherwise sound program."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_native.op_zoo import listed_convolution
from engine_native.programs import inverter, pointwise

from edgekit import _native
from edgekit.errors import IsaError, PackageError
from edgekit.package.program_schema import program_schema

_RECORDS = program_schema().records
_TABLES = {"plan": "plans", "buffer": "buffers", "tensor": "tensors", "op": "ops"}
_INT32_MAX = 2**31 - 1
_UINT64_MAX = 2**64 - 1


class Editor:
    """A program whose records can be changed; seal() makes the checksum right again."""

    def __init__(self, data: bytes) -> None:
        self.bytes = bytearray(data)

    @property
    def header(self) -> np.void:
        return np.frombuffer(self.bytes, _RECORDS["header"], 1)[0]

    def table(self, record: str) -> np.ndarray[Any, Any]:
        offset, count = self.header[f"{_TABLES[record]}_offset"], self.header[f"{record}_count"]
        return np.frombuffer(self.bytes, _RECORDS[record], int(count), int(offset))

    def words(self, name: str, dtype: str) -> np.ndarray[Any, Any]:
        count = "operand_count" if name == "operands" else "attribute_word_count"
        return np.frombuffer(self.bytes, dtype, int(self.header[count]), int(self.header[f"{name}_offset"]))

    def set(self, record: str, index: int, **fields: Any) -> None:
        row = self.header if record == "header" else self.table(record)[index]
        for name, value in fields.items():
            row[name] = value

    def seal(self) -> bytes:
        header = self.header
        header["body_crc32"] = zlib.crc32(memoryview(self.bytes)[_RECORDS["header"].itemsize :])
        return bytes(self.bytes)


def _set(record: str, index: int = 0, **fields: Any) -> Callable[[Editor], None]:
    return lambda editor: editor.set(record, index, **fields)


def _set_dims(index: int, dims: list[int], strides: list[int]) -> Callable[[Editor], None]:
    def edit(editor: Editor) -> None:
        tensor = editor.table("tensor")[index]
        tensor["dims"][: len(dims)] = dims
        tensor["strides"][: len(strides)] = strides
        tensor["rank"] = len(dims)

    return edit


def _set_word(name: str, index: int, value: Any, dtype: str) -> Callable[[Editor], None]:
    def edit(editor: Editor) -> None:
        editor.words(name, dtype)[index] = value

    return edit


# Tensors of inverter(): 0 x (f32, input), 1 q (u8, arena), 2 table (u8, constants), 3 y (u8, output).
_BROKEN: dict[str, tuple[Callable[[Editor], None], str]] = {
    "magic": (_set("header", magic=0), "not an edgekit program"),
    "newer major": (_set("header", major=program_schema().major + 1), "update edgekit"),
    "older major": (_set("header", major=program_schema().major - 1), "convert the model anew"),
    "file size": (_set("header", file_bytes=10), "truncated or extended"),
    "unknown isa": (_set("header", isa=99), "unknown instruction set"),
    "header reserved": (_set("header", reserved=1), "reserved"),
    "no plans": (_set("header", plan_count=0), "no plan"),
    "too many plans": (_set("header", plan_count=65), "plans: too many"),
    "too many ops": (_set("header", op_count=2**31), "ops: too many"),
    "tensor count": (_set("header", tensor_count=262144), "tensors: section is out of bounds"),
    "operand count": (_set("header", operand_count=2**20), "out of bounds"),
    "section misaligned": (_set("header", tensors_offset=1), "misaligned"),
    "sections overlap": (_set("header", strings_offset=192), "strings: section is out of bounds"),
    "section offset overflows": (_set("header", constants_offset=_UINT64_MAX - 63), "out of bounds"),
    "constants too long": (_set("header", constants_bytes=_UINT64_MAX), "constants: section is out of bounds"),
    "plan range": (_set("plan", first_op=1), "does not begin where"),
    "plan count overflow": (_set("plan", op_count=2**32 - 1), "out of bounds"),
    "records of no plan": (_set("plan", op_count=1), "belong to no plan"),
    "plan reserved": (_set("plan", reserved=1), "reserved"),
    "inputs out of bounds": (_set("plan", first_input=2**32 - 1), "inputs are out of bounds"),
    "input left out": (_set("plan", input_count=0), "a buffer is no input"),
    "output left out": (_set("plan", output_count=0), "a buffer is no output"),
    "output is an input": (_set("plan", first_output=0), "not in an output buffer"),
    "arena beyond the limit": (_set("plan", arena_bytes=2**33), "arena size"),
    "arena size disagrees": (_set("plan", arena_bytes=128), "arena size"),
    "buffer kinds": (_set("buffer", 0, kind=1), "not arena and constants"),
    "buffer kind unknown": (_set("buffer", 2, kind=77), "wrong kind"),
    "second arena": (_set("buffer", 2, kind=0), "wrong kind"),
    "buffer reserved": (_set("buffer", 2, reserved=1), "reserved"),
    "input buffer beyond the limit": (_set("buffer", 2, size_bytes=2**33), "too large"),
    "constants size disagrees": (_set("buffer", 1, size_bytes=64), "constants buffer"),
    "input smaller than its buffer": (_set("buffer", 2, size_bytes=4096), "not the whole of its buffer"),
    "dtype": (_set("tensor", 1, dtype=6), "unknown dtype"),
    "rank": (_set("tensor", 1, rank=7), "rank"),
    "dim 0": (_set_dims(1, [0, 5], [5, 1]), "dim is less than 1"),
    "dim negative": (_set_dims(1, [-2, 5], [5, 1]), "dim is less than 1"),
    "dim beyond rank": (_set("tensor", 1, rank=1), "beyond the rank"),
    "elements overflow": (_set_dims(1, [_INT32_MAX] * 4, [0] * 4), "too many elements"),
    "stride too great": (_set_dims(1, [2, 5], [2**40, 1]), "stride"),
    "stride leaves the buffer": (_set_dims(1, [2, 5], [60, 1]), "outside its buffer"),
    "negative stride leaves": (_set_dims(1, [2, 5], [5, -1]), "outside its buffer"),
    "offset leaves": (_set("tensor", 1, offset_bytes=_UINT64_MAX), "outside its buffer"),
    "offset misaligned": (_set("tensor", 0, offset_bytes=2), "misaligned"),
    "buffer of a tensor": (_set("tensor", 1, buffer=9), "buffer does not exist"),
    "guard of the constants": (_set("tensor", 2, offset_bytes=64), "outside its buffer"),
    "scale is not a number": (_set("tensor", 1, scale=np.nan), "scale"),
    "scale negative": (_set("tensor", 1, scale=-1), "scale"),
    "scale infinite": (_set("tensor", 1, scale=np.inf), "scale"),
    "zero point": (_set("tensor", 1, zero_point=256), "zero point"),
    "tensor name": (_set("tensor", 1, name_bytes=2**32 - 1), "name is out of bounds"),
    "input without a name": (_set("tensor", 0, name_bytes=0), "name is empty"),
    "tensor reserved": (_set("tensor", 1, reserved_strides=1), "reserved"),
    "opcode": (_set("op", 0, opcode=999), "unknown opcode"),
    "operand count of an op": (_set("op", 0, input_count=3), "wrong number of operands"),
    "operands of an op": (_set("op", 0, first_operand=2**32 - 1), "operands are out of bounds"),
    "attributes of an op": (_set("op", 0, attribute_count=1), "attributes are out of bounds"),
    "op name": (_set("op", 0, name_offset=2**31), "name is out of bounds"),
    "op reserved": (_set("op", 0, reserved=1), "reserved"),
    "operand does not exist": (_set_word("operands", 2, 4, "<i4"), "does not exist"),
    "operand absent": (_set_word("operands", 2, -1, "<i4"), "does not exist"),
    "writes to an input": (_set_word("operands", 3, 0, "<i4"), "writes to constants or to an input"),
    "writes to constants": (_set_word("operands", 3, 2, "<i4"), "writes to constants or to an input"),
    "output never written": (_set_word("operands", 6, 1, "<i4"), "no op writes output"),
    "table is not constant": (_set_word("operands", 5, 1, "<i4"), "lut_q8"),
}


@pytest.mark.parametrize("case", _BROKEN)
def test_broken_field_is_refused(case: str) -> None:
    edit, message = _BROKEN[case]
    editor = Editor(inverter(5))
    edit(editor)
    with pytest.raises(PackageError, match=message) as caught:
        _native.Program.from_bytes(editor.seal())
    assert "\n" not in str(caught.value)


def test_sound_program_is_accepted() -> None:
    program = _native.Program.from_bytes(Editor(inverter(5)).seal())
    assert program.plan_count == 1


def test_self_overlapping_output_is_refused() -> None:
    editor = Editor(inverter(5))
    _set_dims(1, [2, 5], [4, 1])(editor)
    with pytest.raises(PackageError, match="overlaps itself"):
        _native.Program.from_bytes(editor.seal())


@pytest.mark.parametrize("name", [b"\xff", b"\x80", b"\x00", b"\xc0"])
def test_name_that_is_not_utf8_is_refused(name: bytes) -> None:
    editor = Editor(inverter(5))
    offset = int(editor.header["strings_offset"])
    editor.bytes[offset : offset + 1] = name
    with pytest.raises(PackageError, match="UTF-8"):
        _native.Program.from_bytes(editor.seal())


def test_float_attribute_must_be_finite() -> None:
    signature = program_schema().ops["conv_q8"]
    index = [name for name, _ in signature.attributes].index("add_lhs_scale")
    editor = Editor(pointwise(4).data)
    editor.words("attributes", "<f4")[index] = np.inf
    with pytest.raises(PackageError, match="not finite"):
        _native.Program.from_bytes(editor.seal())


_ROW_STARTS, _ROW_GROUPS, _ORDERS = [0, 2, 2, 2, 2, 2, 2, 4], [0, 35, 32, 4], [0x03020100, 0x0F060504]


@pytest.mark.parametrize(
    ("starts", "groups", "orders", "message"),
    [
        (None, _ROW_GROUPS, _ORDERS, "row_start"),
        ([0, 3, 2, 2, 2, 2, 2, 4], _ROW_GROUPS, _ORDERS, "row_start"),
        ([1, 2, 2, 2, 2, 2, 2, 4], _ROW_GROUPS, _ORDERS, "row_start"),
        ([0, 2, 2, 2, 2, 2, 2, 3], _ROW_GROUPS, _ORDERS, "row_start"),
        ([0, 2, 2, 2, 2, 2, 2, 9], _ROW_GROUPS, _ORDERS, "row_start"),
        ([0, 2, 2, 2, 2, 2, 4], _ROW_GROUPS, _ORDERS, "row_start"),
        (_ROW_STARTS, [0, 36, 32, 4], _ORDERS, "row_group"),
        (_ROW_STARTS, [0, -1, 32, 4], _ORDERS, "row_group"),
        (_ROW_STARTS, [0, 35, 33, 4], _ORDERS, "row_group"),  # too few lie behind it
        (_ROW_STARTS, [0, 35, 32, 2], _ORDERS, "row_group"),  # others are of another tap
        (_ROW_STARTS, [0, 35, 32, 11], _ORDERS, "row_group"),  # or of another kernel row
        (_ROW_STARTS, _ROW_GROUPS, _ORDERS[:1], "row_order"),
        (_ROW_STARTS, _ROW_GROUPS, [*_ORDERS, 0], "row_order"),
        (_ROW_STARTS, _ROW_GROUPS, [0x03020100, 0x10060504], "row_order"),
        (_ROW_STARTS, _ROW_GROUPS, [0x03020100, -1], "row_order"),
    ],
)
def test_rows_that_leave_the_image_are_refused(
    starts: list[int] | None, groups: list[int], orders: list[int], message: str
) -> None:
    assert _native.Program.from_bytes(listed_convolution(_ROW_STARTS, _ROW_GROUPS, _ORDERS)).plan_count == 1
    with pytest.raises(PackageError, match=message) as caught:
        _native.Program.from_bytes(listed_convolution(starts, groups, orders))
    assert "\n" not in str(caught.value)


def test_plans_must_have_the_same_interface() -> None:
    editor = Editor(inverter(5, 9))
    editor.table("tensor")[4]["name_offset"] = editor.table("tensor")[5]["name_offset"]
    with pytest.raises(PackageError, match="differ from plan 0"):
        _native.Program.from_bytes(editor.seal())


def test_flipped_bit_fails_the_checksum() -> None:
    data = bytearray(inverter(5))
    for position in range(192, len(data), 7):
        flipped = bytearray(data)
        flipped[position] ^= 4
        with pytest.raises(PackageError, match="checksum"):
            _native.Program.from_bytes(bytes(flipped))


def test_every_truncation_is_refused() -> None:
    data = inverter(5)
    for size in range(len(data)):
        with pytest.raises(PackageError):
            _native.Program.from_bytes(data[:size])


def test_isa_of_another_architecture_is_refused_by_name() -> None:
    other = "arm_neon_dotprod" if _native.best_isa().startswith("x86") else "x86_avx2"
    data = inverter(5, isa=other)
    with pytest.raises(IsaError, match=other):
        _native.Program.from_bytes(data)
    assert _native.Program.from_bytes(data, isa="scalar").kernel_isa == "scalar"
