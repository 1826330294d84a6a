"""program_schema.toml as Python values: enums, op signatures and numpy dtypes of the records.

Every layout is derived from that file, as the C++ header is, so that the writer and the loader can't disagree.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

import numpy as np

if sys.version_info >= (3, 11):
    import tomllib
else:  # Python 3.10
    import tomli as tomllib

_SCALARS = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "i32": "<i4", "i64": "<i8", "f32": "<f4"}
_NUMPY_DTYPES = {"f32": "float32", "s8": "int8", "u8": "uint8", "i32": "int32", "i64": "int64", "bool": "bool"}


@dataclass(frozen=True)
class OpSignature:
    """One row of [ops].

    Attributes:
        name: Opcode name, such as conv_q8.
        code: Its number in the file.
        inputs, outputs: Operand names in order; the names carry no "?".
        optional_inputs, optional_outputs: Names of those that may be absent.
        attributes: (name, kind) in file order; each is one 32-bit word.
    """

    name: str
    code: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    optional_inputs: frozenset[str]
    optional_outputs: frozenset[str]
    attributes: tuple[tuple[str, Literal["i32", "f32"]], ...]


@dataclass(frozen=True)
class Packing:
    """How an ISA wants the constant operand of a product.

    Attributes:
        nr_q8, kg_q8: Columns a panel and depth a group of INT8 weights.
        nr_f32: Columns a panel of float weights.
        act: dtype that stores quantized activations: u8 or s8.
        saturating_pairs: INT8 kernels add pairs of products in 16 bits, so that pairs of weights are bounded.
        winograd: Whether conv_q8_winograd has fast kernels.
    """

    nr_q8: int
    kg_q8: int
    nr_f32: int
    act: Literal["u8", "s8"]
    saturating_pairs: bool
    winograd: bool


@dataclass(frozen=True)
class ProgramSchema:
    """All of program_schema.toml.

    Attributes:
        magic, major, minor: Of the file's header.
        alignment_bytes: Sections and constants start on multiples of it.
        max_rank: Most dims a tensor may have.
        limits: Greatest counts and sizes, by name.
        enums: Enum name to value name to number.
        packings: ISA name to weight packing.
        records: Record name to the dtype of one record, without padding.
        ops: Opcode name to signature.
        op_by_code: The same by number.
    """

    magic: bytes
    major: int
    minor: int
    alignment_bytes: int
    max_rank: int
    limits: dict[str, int]
    enums: dict[str, dict[str, int]]
    packings: dict[str, Packing]
    records: dict[str, np.dtype[np.void]]
    ops: dict[str, OpSignature]
    op_by_code: dict[int, OpSignature]

    def enum_name(self, enum: str, value: int) -> str:
        """Returns the name of an enum value.

        Raises:
            KeyError: No such value.
        """
        for name, number in self.enums[enum].items():
            if number == value:
                return name
        raise KeyError(value)


def _record_dtype(fields: list[list[str]]) -> np.dtype[np.void]:
    rows: list[Any] = []
    for name, kind in fields:
        array = re.fullmatch(r"(\w+)\[(\d+)\]", kind)
        rows.append((name, _SCALARS[array[1]], (int(array[2]),)) if array else (name, _SCALARS[kind]))
    return np.dtype(rows)


def _signature(name: str, row: dict[str, Any]) -> OpSignature:
    plain = {side: tuple(operand.rstrip("?") for operand in row[side]) for side in ("inputs", "outputs")}
    optional = {side: frozenset(o[:-1] for o in row[side] if o.endswith("?")) for side in ("inputs", "outputs")}
    attributes = tuple((key, kind) for key, kind in row["attributes"])
    return OpSignature(
        name, row["code"], plain["inputs"], plain["outputs"], optional["inputs"], optional["outputs"], attributes
    )


@lru_cache(maxsize=1)
def program_schema() -> ProgramSchema:
    """Loads the schema, once a process."""
    text = resources.files("edgekit.package").joinpath("program_schema.toml").read_text(encoding="utf-8")
    raw = tomllib.loads(text)
    ops = {name: _signature(name, row) for name, row in raw["ops"].items()}
    packings = {
        isa: Packing(
            nr_q8=row["q8"]["nr"],
            kg_q8=row["q8"]["kg"],
            nr_f32=row["f32"]["nr"],
            act=row["q8"]["act"],
            saturating_pairs=row["q8"]["saturating_pairs"],
            winograd=row["q8"]["winograd"],
        )
        for isa, row in raw["isa_packing"].items()
    }
    form = raw["format"]
    return ProgramSchema(
        magic=form["magic"].encode(),
        major=form["major"],
        minor=form["minor"],
        alignment_bytes=form["alignment_bytes"],
        max_rank=form["max_rank"],
        limits=raw["limits"],
        enums=raw["enums"],
        packings=packings,
        records={name: _record_dtype(record["fields"]) for name, record in raw["records"].items()},
        ops=ops,
        op_by_code={op.code: op for op in ops.values()},
    )


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The numpy dtype of a program dtype name, such as s8.

    Raises:
        KeyError: No such dtype.
    """
    return np.dtype(_NUMPY_DTYPES[dtype])


def program_dtype(dtype: np.dtype[Any]) -> str:
    """Program dtype name of a numpy dtype.

    Raises:
        KeyError: Programs have no such dtype.
    """
    for name, numpy_name in _NUMPY_DTYPES.items():
        if dtype.name == numpy_name:
            return name
    raise KeyError(dtype.name)
