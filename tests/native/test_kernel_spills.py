"""Hot loops keep their sums in registers: the disassembly of a product kernel's loops has no vector on the stack."""

from __future__ import annotations

import platform
import re
import shutil
from pathlib import Path

import pytest
from hot_loops import HotLoop, compiled, hot_loops

from native import building

X86_SPILL = re.compile(r"(?=.*\([^)]*%r[sb]p[^)]*\))(?=.*%[xyz]mm)")
ARM_SPILL = re.compile(r"\b(?:ldr|str|ldp|stp)\s+(?:q|d)\d+.*\[(?:sp|x29)")


def multiplying_loops(objdump: str, build: Path, source: str, multiply: str) -> list[HotLoop]:
    if shutil.which(objdump) is None:
        pytest.skip(f"{objdump} is not installed")
    building.build(build, ["edgekit_core"])
    return [loop for loop in hot_loops(objdump, compiled(build, source)) if loop.count(multiply)]


def check(objdump: str, build: Path, source: str, multiply: str, most: int, spill: re.Pattern[str]) -> None:
    """Fails unless the tallest tile's loop holds `most` multiplications and no loop with any spills."""
    loops = multiplying_loops(objdump, build, source, multiply)
    assert max(loop.count(multiply) for loop in loops) >= most
    assert [i for loop in loops for i in loop.body if spill.search(i)] == []


def check_window(objdump: str, build: Path, source: str, multiply: str, window: str, spill: re.Pattern[str]) -> None:
    """Fails unless the inner loop of a depthwise window, two output rows at a time, is without spills."""
    loops = [x for x in multiplying_loops(objdump, build, source, multiply) if f"{window}, 2>" in x.function]
    inner = min(loops, key=lambda loop: len(loop.body))  # steps at the border have addresses to read besides
    assert [i for i in inner.body if spill.search(i)] == []


@pytest.mark.parametrize(
    ("source", "multiply", "most"),
    [
        ("gemm_u8s8_6x16_avx2.cc", "vpmaddwd", 12),
        ("gemm_u16s16_6x16_avx2.cc", "vpmaddwd", 12),
        ("winograd_q8_avx2.cc", "vpmaddwd", 12),
        ("gemm_u8s8_6x16_avx_vnni.cc", "vpdpbusd", 12),
        ("gemm_u8s8_64_avx512_vnni.cc", "vpdpbusd", 24),
        ("winograd_q8_avx512_vnni.cc", "vpdpwssd", 24),
    ],
)
def test_x86_products(native_build: Path, source: str, multiply: str, most: int) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("not an x86 machine")
    check("objdump", native_build, source, multiply, most, X86_SPILL)


@pytest.mark.parametrize(
    ("source", "multiply", "most"),
    [
        ("gemm_s8s8_4x8_neon.cc", "sadalp", 8),
        ("gemm_s8s8_8x8_neon_dotprod.cc", "sdot", 64),
        ("gemm_s8s8_8x8_neon_i8mm.cc", "smmla", 32),
    ],
)
def test_arm_products(native_build_arm64: Path, source: str, multiply: str, most: int) -> None:
    check("aarch64-linux-gnu-objdump", native_build_arm64, source, multiply, most, ARM_SPILL)


# Of the AVX2 and AVX-VNNI kernels only 3x3 fits the 16 registers.
@pytest.mark.parametrize(
    ("source", "multiply", "window"),
    [
        *[("depthwise_u8s8_square_8c_avx2.cc", "vpmaddwd", window) for window in ("3, 1", "3, 2")],
        *[("depthwise_u8s8_square_8c_avx_vnni.cc", "vpdpbusd", window) for window in ("3, 1", "3, 2")],
        *[
            ("depthwise_u8s8_square_64c_avx512_vnni.cc", "vpdpbusd", f"{vectors}, {window}")
            for vectors in (4, 2, 1)
            for window in ("3, 1", "3, 2", "5, 1", "5, 2")
        ],
    ],
)
def test_x86_depthwise(native_build: Path, source: str, multiply: str, window: str) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("not an x86 machine")
    check_window("objdump", native_build, source, multiply, window, X86_SPILL)


@pytest.mark.parametrize(
    ("source", "multiply", "window"),
    [
        ("depthwise_s8s8_square_8c_neon_dotprod.cc", "sdot", "3, 1"),
        ("depthwise_s8s8_square_8c_neon_dotprod.cc", "sdot", "5, 1"),
        *[("depthwise_s8s8_square_8c_neon.cc", "smull", window) for window in ("5, 1", "5, 2")],
    ],
)
def test_arm_depthwise(native_build_arm64: Path, source: str, multiply: str, window: str) -> None:
    check_window("aarch64-linux-gnu-objdump", native_build_arm64, source, multiply, window, ARM_SPILL)


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
