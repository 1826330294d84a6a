"""Hot loops keep their sums in registers: the disassembly of a product kernel's loops has no vector on the stack."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from native import building

X86_SPILL = re.compile(r"(?=.*\([^)]*%r[sb]p[^)]*\))(?=.*%[xyz]mm)")
ARM_SPILL = re.compile(r"\b(?:ldr|str|ldp|stp)\s+(?:q|d)\d+.*\[(?:sp|x29)")


def disassemble(objdump: str, file: Path) -> list[tuple[int, str]]:
    """Address and text of each instruction."""
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", str(file)], capture_output=True, text=True, check=True)
    rows = re.findall(r"^\s*([0-9a-f]+):\s+(.*)$", text.stdout, re.MULTILINE)
    return [(int(address, 16), instruction) for address, instruction in rows]


def loops(code: list[tuple[int, str]]) -> list[list[str]]:
    """The bodies of innermost loops: from a backward jump's target to the jump."""
    spans = []
    for address, instruction in code:
        jump = re.match(r"(?:j\w+|b\.\w+|cbnz|cbz)\s+(?:[xw]\d+,\s*)?([0-9a-f]+)\b", instruction)
        if jump and int(jump[1], 16) < address:
            spans.append((int(jump[1], 16), address))
    inner = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
    return [[text for address, text in code if first <= address <= last] for first, last in inner]


def object_file(build: Path, source: str) -> Path:
    """The compiled object of a kernel source."""
    found = [p for p in build.rglob(f"{source}.o") if "edgekit_core" in str(p)]
    assert len(found) == 1, found
    return found[0]


def check(objdump: str, build: Path, source: str, multiply: str, most: int, spill: re.Pattern[str]) -> None:
    """Fails unless the tallest tile's loop holds `most` multiplications and no loop with any spills."""
    if shutil.which(objdump) is None:
        pytest.skip(f"{objdump} is not installed")
    building.build(build, ["edgekit_core"])
    bodies = [b for b in loops(disassemble(objdump, object_file(build, source))) if any(multiply in i for i in b)]
    assert max(sum(multiply in i for i in body) for body in bodies) >= most
    assert [i for body in bodies for i in body if spill.search(i)] == []


@pytest.mark.parametrize(
    ("source", "multiply", "most"),
    [("gemm_u8s8_6x16_avx2.cc", "vpmaddwd", 12), ("gemm_u8s8_6x64_avx512_vnni.cc", "vpdpbusd", 24)],
)
def test_x86_products(native_build: Path, source: str, multiply: str, most: int) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("not an x86 machine")
    check("objdump", native_build, source, multiply, most, X86_SPILL)


@pytest.mark.parametrize(
    ("source", "multiply", "most"),
    [("gemm_s8s8_4x8_neon.cc", "sadalp", 8), ("gemm_s8s8_8x8_neon_dotprod.cc", "sdot", 64)],
)
def test_arm_products(native_build_arm64: Path, source: str, multiply: str, most: int) -> None:
    check("aarch64-linux-gnu-objdump", native_build_arm64, source, multiply, most, ARM_SPILL)


@pytest.mark.parametrize(
    ("pattern", "instruction", "spills"),
    [
        (X86_SPILL, "vmovdqa -0x1b0(%rbp),%ymm6", True),
        (X86_SPILL, "vpaddd 0x40(%rsp),%ymm5,%ymm5", True),
        (X86_SPILL, "vpbroadcastd (%r8,%rax,4),%ymm3", False),
        (X86_SPILL, "mov 0x20(%rsp),%rdx", False),
        (ARM_SPILL, "str q3, [sp, #16]", True),
        (ARM_SPILL, "ldr q3, [x1, #16]", False),
    ],
)
def test_spills_are_recognised(pattern: re.Pattern[str], instruction: str, spills: bool) -> None:
    assert bool(pattern.search(instruction)) == spills
