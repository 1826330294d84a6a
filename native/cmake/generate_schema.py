"""Turns edgekit/package/program_schema.toml into the C++ header program_schema.h.

Usage: generate_schema.py SCHEMA.toml OUT.h
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

SCALARS = {
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "f32": "float",
}


def pascal(name: str) -> str:
    """conv_q8 -> ConvQ8."""
    return "".join(part.capitalize() for part in name.split("_"))


def field(name: str, kind: str) -> str:
    """One struct member."""
    array = re.fullmatch(r"(\w+)\[(\d+)\]", kind)
    return f"  {SCALARS[array[1]]} {name}[{array[2]}];" if array else f"  {SCALARS[kind]} {name};"


def field_bytes(kind: str) -> int:
    """Size of a member."""
    array = re.fullmatch(r"(\w+)\[(\d+)\]", kind)
    scalar, count = (array[1], int(array[2])) if array else (kind, 1)
    return count * int(re.sub(r"\D", "", scalar)) // 8


def enum(name: str, values: dict[str, int], base: str) -> list[str]:
    """One enum class with a count and a name table."""
    cpp = pascal(name)
    rows = [f"enum class {cpp} : {base} {{", *(f"  k{pascal(key)} = {value}," for key, value in values.items()), "};"]
    rows.append(f"inline constexpr int k{cpp}Count = {max(values.values()) + 1};")
    rows.append(f"inline const char* name_of({cpp} value) {{")
    rows.append("  switch (value) {")
    rows += [f'    case {cpp}::k{pascal(key)}: return "{key}";' for key in values]
    return [*rows, "  }", '  return "?";', "}"]


def records(schema: dict[str, Any]) -> list[str]:
    """The record structs."""
    rows: list[str] = []
    for name, record in schema["records"].items():
        size = sum(field_bytes(kind) for _, kind in record["fields"])
        rows += [f"struct {pascal(name)}Record {{", *(field(key, kind) for key, kind in record["fields"]), "};"]
        rows.append(f'static_assert(sizeof({pascal(name)}Record) == {size}, "no padding in {name}");')
    return rows


def operators(schema: dict[str, Any]) -> list[str]:
    """The Opcode enum, attribute structs and the table of signatures."""
    ops = schema["ops"]
    rows = enum("opcode", {name: op["code"] for name, op in ops.items()}, "uint16_t")
    for name, op in ops.items():
        members = [field(key, kind) for key, kind in op["attributes"]]
        rows += [f"struct {pascal(name)}Attrs {{", *(members or ["  // no attributes"]), "};"]
    rows += [
        "struct OpSignature {",
        "  Opcode opcode;",
        "  int min_inputs, max_inputs, min_outputs, max_outputs;",
        "  uint64_t optional_inputs, optional_outputs;  // bit i: operand i may be absent",
        "  int attribute_words;",
        "  uint64_t float_attributes;  // bit i: attribute i is f32, the others are i32",
        "};",
        "inline constexpr OpSignature kOpSignatures[] = {",
    ]
    for name, op in ops.items():
        numbers = []
        for side in ("inputs", "outputs"):
            optional = [index for index, key in enumerate(op[side]) if key.endswith("?")]
            required = [index for index, key in enumerate(op[side]) if not key.endswith("?")]
            numbers.append(((max(required) + 1 if required else 0), len(op[side]), sum(1 << i for i in optional)))
        (lo_in, hi_in, opt_in), (lo_out, hi_out, opt_out) = numbers
        floats = sum(1 << index for index, (_, kind) in enumerate(op["attributes"]) if kind == "f32")
        rows.append(
            f"    {{Opcode::k{pascal(name)}, {lo_in}, {hi_in}, {lo_out}, {hi_out}, {opt_in}u, {opt_out}u, "
            f"{len(op['attributes'])}, {floats}u}},"
        )
    return [*rows, "};"]


def packing(schema: dict[str, Any]) -> list[str]:
    """How each ISA packs weights."""
    rows = [
        "struct IsaPacking {",
        "  Isa isa;",
        "  int q8_nr, q8_kg;",
        "  bool activations_signed, saturating_pairs, winograd;",
        "  int f32_nr;",
        "};",
        "inline constexpr IsaPacking kIsaPacking[] = {",
    ]
    for name, row in schema["isa_packing"].items():
        signed = str(row["q8"]["act"] == "s8").lower()
        q8 = row["q8"]
        flags = ", ".join(str(q8[key]).lower() for key in ("saturating_pairs", "winograd"))
        rows.append(f"    {{Isa::k{pascal(name)}, {q8['nr']}, {q8['kg']}, {signed}, {flags}, {row['f32']['nr']}}},")
    return [*rows, "};"]


def header(schema: dict[str, Any]) -> str:
    """The whole header."""
    form, limits = schema["format"], schema["limits"]
    rows = [
        "// Generated from edgekit/package/program_schema.toml by native/cmake/generate_schema.py; do not edit.",
        "#ifndef EDGEKIT_PROGRAM_SCHEMA_H_",
        "#define EDGEKIT_PROGRAM_SCHEMA_H_",
        "",
        "#include <cstdint>",
        "",
        "namespace edgekit {",
        "",
    ]
    rows.append(f'inline constexpr char kMagic[9] = "{form["magic"]}";')
    rows += [
        f"inline constexpr int kFormatMajor = {form['major']};",
        f"inline constexpr int kFormatMinor = {form['minor']};",
        f"inline constexpr int kAlignmentBytes = {form['alignment_bytes']};",
        f"inline constexpr int kMaxRank = {form['max_rank']};",
    ]
    rows += [f"inline constexpr uint64_t kLimit{pascal(key)} = {value}u;" for key, value in limits.items()]
    for name, values in schema["enums"].items():
        rows += ["", *enum(name, values, "uint8_t" if name == "dtype" else "int32_t")]
    rows += [
        "",
        *records(schema),
        "",
        *operators(schema),
        "",
        *packing(schema),
        "",
        "}  // namespace edgekit",
        "",
        "#endif  // EDGEKIT_PROGRAM_SCHEMA_H_",
        "",
    ]
    return "\n".join(rows)


def main() -> None:
    """Writes the header, only when it changes, so that a rebuild stays small."""
    schema = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    out = Path(sys.argv[2])
    text = header(schema)
    if not out.exists() or out.read_text(encoding="utf-8") != text:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
