"""program.ekn to bytes and back, by the layouts of program_schema.toml.

The C++ loader verifies a file in full before it runs; read_program checks what it needs to never read out of bounds.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgekit.errors import IntegrityError, InternalError, PackageError, PackageVersionError
from edgekit.package.program import ABSENT, Buffer, Op, Plan, Program, Tensor
from edgekit.package.program_schema import OpSignature, program_schema

_SECTIONS = ("plans", "buffers", "tensors", "ops")
_RANK = program_schema().max_rank


class _Tables:
    """The sections while they are being written."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _SECTIONS}
        self.operands: list[int] = []
        self.attributes: list[int] = []
        self._strings = bytearray()
        self._string_offsets: dict[str, tuple[int, int]] = {"": (0, 0)}

    def string(self, text: str) -> dict[str, int]:
        """Stores a name; returns the two fields that refer to it."""
        if text not in self._string_offsets:
            data = text.encode()
            self._string_offsets[text] = (len(self._strings), len(data))
            self._strings += data
        offset, size = self._string_offsets[text]
        return {"name_offset": offset, "name_bytes": size}

    def operand_range(self, tensors: list[int]) -> int:
        """Stores tensor indices; returns the first position."""
        first = len(self.operands)
        self.operands += tensors
        return first

    def section_bytes(self) -> dict[str, bytes]:
        """Every section but the constants, in file order."""
        schema = program_schema()
        sections: dict[str, bytes] = {}
        for name in _SECTIONS:
            table = np.zeros(len(self.rows[name]), schema.records[name[:-1]])
            for index, row in enumerate(self.rows[name]):
                for key, value in row.items():
                    table[index][key] = value
            sections[name] = table.tobytes()
        sections["operands"] = np.asarray(self.operands, "<i4").tobytes()
        sections["attributes"] = np.asarray(self.attributes, "<u4").tobytes()
        sections["strings"] = bytes(self._strings)
        return sections


def write_program(program: Program) -> bytes:
    """Serialises a program.

    Args:
        program: Its constants are stored as they are.

    Returns:
        The bytes of program.ekn.

    Raises:
        InternalError: An operand, attribute or dtype does not fit the schema.
    """
    schema = program_schema()
    tables = _Tables()
    for plan in program.plans:
        _write_plan(tables, plan)
    header = np.zeros((), schema.records["header"])
    header["magic"] = np.frombuffer(schema.magic, np.uint8)
    header["major"], header["minor"] = schema.major, schema.minor
    header["isa"] = schema.enums["isa"][program.isa]
    for name in _SECTIONS:
        header[f"{name[:-1]}_count"] = len(tables.rows[name])
    header["operand_count"], header["attribute_word_count"] = len(tables.operands), len(tables.attributes)
    sections: dict[str, bytes | memoryview] = {**tables.section_bytes(), "constants": program.constants}
    body: list[bytes | memoryview] = []
    position = header.nbytes
    for name, data in sections.items():
        padding = -position % schema.alignment_bytes
        body += [bytes(padding), data]
        position += padding
        header[f"{name}_offset"] = position
        position += len(data)
    header["strings_bytes"], header["constants_bytes"] = len(sections["strings"]), len(program.constants)
    header["file_bytes"] = position
    crc = 0
    for chunk in body:
        crc = zlib.crc32(chunk, crc)
    header["body_crc32"] = crc
    return b"".join([header.tobytes(), *body])


def _write_plan(tables: _Tables, plan: Plan) -> None:
    record: dict[str, Any] = {"arena_bytes": plan.arena_bytes}
    for name in ("buffers", "tensors", "ops"):
        record[f"first_{name[:-1]}"] = len(tables.rows[name])
        record[f"{name[:-1]}_count"] = len(getattr(plan, name))
    for name, tensors in (("input", plan.inputs), ("output", plan.outputs)):
        record[f"first_{name}"], record[f"{name}_count"] = tables.operand_range(tensors), len(tensors)
    kinds = program_schema().enums["buffer_kind"]
    tables.rows["plans"].append(record)
    tables.rows["buffers"] += [{"kind": kinds[b.kind], "size_bytes": b.size_bytes} for b in plan.buffers]
    tables.rows["tensors"] += [_tensor_row(tables, tensor) for tensor in plan.tensors]
    tables.rows["ops"] += [_op_row(tables, op) for op in plan.ops]


def _tensor_row(tables: _Tables, tensor: Tensor) -> dict[str, Any]:
    rank = len(tensor.dims)
    if rank > _RANK or len(tensor.strides) != rank or min(tensor.dims, default=1) < 1:
        raise InternalError("tensor does not fit the program schema", where=tensor.name, got=tensor)
    unused = (0,) * (_RANK - rank)
    return {
        **tables.string(tensor.name),
        "dtype": program_schema().enums["dtype"][tensor.dtype],
        "rank": rank,
        "buffer": tensor.buffer,
        "zero_point": tensor.zero_point,
        "scale": tensor.scale,
        "offset_bytes": tensor.offset_bytes,
        "dims": tensor.dims + unused,
        "strides": tensor.strides + unused,
    }


def _op_row(tables: _Tables, op: Op) -> dict[str, Any]:
    signature = program_schema().ops[op.opcode]
    unknown = set(op.attributes) - {name for name, _ in signature.attributes}
    if unknown or len(op.inputs) > len(signature.inputs) or len(op.outputs) > len(signature.outputs):
        raise InternalError(f"{op.opcode} does not fit the program schema", where=op.name, got=op)
    row = {
        **tables.string(op.name),
        "opcode": signature.code,
        "input_count": len(op.inputs),
        "output_count": len(op.outputs),
        "first_operand": tables.operand_range([*op.inputs, *op.outputs]),
        "first_attribute": len(tables.attributes),
        "attribute_count": len(signature.attributes),
        "macs": op.macs,
    }
    for name, kind in signature.attributes:
        value = np.array(op.attributes.get(name, 0), "<i4" if kind == "i32" else "<f4")
        tables.attributes.append(int(value.view("<u4")))
    return row


def read_program(data: bytes | memoryview) -> Program:
    """Parses a program.ekn.

    Args:
        data: The whole file; the constants of the result are a view of it.

    Returns:
        The program; attributes are complete.

    Raises:
        PackageVersionError: Written by a newer edgekit.
        IntegrityError: The checksum differs.
        PackageError: Not a program, truncated or malformed.
    """
    view = memoryview(data)
    header = _read_header(view)
    schema = program_schema()
    tables = {
        name: _table(view, header, name, schema.records[name[:-1]], int(header[f"{name[:-1]}_count"]))
        for name in _SECTIONS
    }
    tables["operands"] = _table(view, header, "operands", np.dtype("<i4"), int(header["operand_count"]))
    tables["attributes"] = _table(view, header, "attributes", np.dtype("<u4"), int(header["attribute_word_count"]))
    strings = _table(view, header, "strings", np.dtype("u1"), int(header["strings_bytes"])).tobytes()
    start, size = int(header["constants_offset"]), int(header["constants_bytes"])
    if start + size > len(view):
        raise PackageError("constants reach beyond the end of the program", got=start + size, expected=len(view))
    try:
        plans = [_read_plan(tables, strings, row) for row in tables["plans"]]
        isa = schema.enum_name("isa", int(header["isa"]))
    except (KeyError, IndexError, UnicodeDecodeError) as error:
        raise PackageError("a record of the program is malformed", got=error) from error
    return Program(isa, plans, view[start : start + size])


def _read_header(view: memoryview) -> np.void:
    schema = program_schema()
    dtype = schema.records["header"]
    if len(view) < dtype.itemsize or bytes(view[: len(schema.magic)]) != schema.magic:
        raise PackageError("not a native program", got=bytes(view[:8]), expected=schema.magic)
    header: np.void = np.frombuffer(view, dtype, 1)[0]
    if header["major"] > schema.major:
        raise PackageVersionError(
            "program written by a newer edgekit", got=int(header["major"]), expected=schema.major, hint="update edgekit"
        )
    if int(header["file_bytes"]) != len(view):
        raise PackageError("program has the wrong size", got=len(view), expected=int(header["file_bytes"]))
    _check_layout(header)
    if (crc := zlib.crc32(view[dtype.itemsize :])) != int(header["body_crc32"]):
        raise IntegrityError("program's checksum differs", got=crc, expected=int(header["body_crc32"]))
    return header


def _check_layout(header: np.void) -> None:
    """Refuses sections that don't follow one another, each on its boundary, up to the end of the file."""
    schema = program_schema()
    sizes = {n: int(header[f"{n[:-1]}_count"]) * schema.records[n[:-1]].itemsize for n in _SECTIONS}
    sizes["operands"], sizes["attributes"] = (4 * int(header[n]) for n in ("operand_count", "attribute_word_count"))
    sizes["strings"], sizes["constants"] = int(header["strings_bytes"]), int(header["constants_bytes"])
    position = header.nbytes
    for name, size in sizes.items():
        position += -position % schema.alignment_bytes
        if int(header[f"{name}_offset"]) != position:
            raise PackageError(f"{name} section misplaced", got=int(header[f"{name}_offset"]), expected=position)
        position += size
    if position != int(header["file_bytes"]):
        raise PackageError("program has the wrong size", got=int(header["file_bytes"]), expected=position)


def _table(view: memoryview, header: np.void, name: str, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    offset = int(header[f"{name}_offset"])
    if offset + count * dtype.itemsize > len(view):
        raise PackageError(f"{name} reach beyond the end of the program", got=count, expected="fewer")
    return np.frombuffer(view, dtype, count, offset)


def _rows(table: NDArray[Any], first: int, count: int) -> NDArray[Any]:
    if int(first) + int(count) > len(table):
        raise IndexError(f"range {first}+{count} of {len(table)} records")
    return table[int(first) : int(first) + int(count)]


def _text(strings: bytes, row: np.void) -> str:
    start, end = int(row["name_offset"]), int(row["name_offset"]) + int(row["name_bytes"])
    if end > len(strings):
        raise IndexError(f"name at {start}..{end} of {len(strings)} string bytes")
    return strings[start:end].decode()


def _read_plan(tables: dict[str, NDArray[Any]], strings: bytes, record: np.void) -> Plan:
    schema = program_schema()
    part = {n: _rows(tables[n], record[f"first_{n[:-1]}"], record[f"{n[:-1]}_count"]) for n in _SECTIONS[1:]}
    ends = [
        [int(t) for t in _rows(tables["operands"], record[f"first_{side}"], record[f"{side}_count"])]
        for side in ("input", "output")
    ]
    buffers: list[Buffer] = []
    for row in part["buffers"]:
        kind: Any = schema.enum_name("buffer_kind", int(row["kind"]))
        buffers.append(Buffer(kind, int(row["size_bytes"])))
    tensors = [_read_tensor(strings, row) for row in part["tensors"]]
    ops = [_read_op(tables, strings, row) for row in part["ops"]]
    indices = [index for op in ops for index in (*op.inputs, *op.outputs)] + ends[0] + ends[1]
    if any(index != ABSENT and not 0 <= index < len(tensors) for index in indices):
        raise IndexError("operand beyond the plan's tensors")
    return Plan(buffers, tensors, ops, ends[0], ends[1])


def _read_tensor(strings: bytes, row: np.void) -> Tensor:
    rank = int(row["rank"])
    if rank > _RANK:
        raise IndexError(f"rank {rank}")
    return Tensor(
        name=_text(strings, row),
        dtype=program_schema().enum_name("dtype", int(row["dtype"])),
        dims=tuple(int(dim) for dim in row["dims"][:rank]),
        strides=tuple(int(stride) for stride in row["strides"][:rank]),
        buffer=int(row["buffer"]),
        offset_bytes=int(row["offset_bytes"]),
        scale=float(row["scale"]),
        zero_point=int(row["zero_point"]),
    )


def _read_op(tables: dict[str, NDArray[Any]], strings: bytes, row: np.void) -> Op:
    signature: OpSignature = program_schema().op_by_code[int(row["opcode"])]
    first, inputs = int(row["first_operand"]), int(row["input_count"])
    operands = [int(t) for t in _rows(tables["operands"], first, inputs + int(row["output_count"]))]
    words = _rows(tables["attributes"], row["first_attribute"], row["attribute_count"])
    if len(words) != len(signature.attributes):
        raise IndexError(f"{signature.name} with {len(words)} attributes")
    attributes = {
        name: float(words[i : i + 1].view("<f4")[0]) if kind == "f32" else int(words[i : i + 1].view("<i4")[0])
        for i, (name, kind) in enumerate(signature.attributes)
    }
    op_ends = tuple(operands[:inputs]), tuple(operands[inputs:])
    return Op(signature.name, *op_ends, attributes, _text(strings, row), int(row["macs"]))
