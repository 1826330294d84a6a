"""From CPU features to the instruction set that native programs are packed for."""

from __future__ import annotations

from collections.abc import Iterable

# Best first. A program for an ISA runs on every CPU that has all its features, named as in Linux's /proc/cpuinfo.
_REQUIRED: dict[str, frozenset[str]] = {
    "x86_avx512_vnni": frozenset(
        {"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"}
    ),
    "x86_avx_vnni": frozenset({"avx2", "fma", "f16c", "bmi2", "avx_vnni"}),
    "x86_avx2": frozenset({"avx2", "fma", "f16c", "bmi2"}),
    "arm_neon_i8mm": frozenset({"asimd", "asimddp", "i8mm"}),
    "arm_neon_dotprod": frozenset({"asimd", "asimddp"}),
    "arm_neon": frozenset({"asimd"}),
    "scalar": frozenset(),
}

ISA_NAMES = tuple(_REQUIRED)


def native_isa(features: Iterable[str]) -> str:
    """Returns the best instruction set of program_schema.toml (enums.isa) that a CPU with these features can run.

    Args:
        features: Names as in /proc/cpuinfo: avx2, avx512_vnni, asimddp, ...
    """
    have = frozenset(features)
    return next(isa for isa, needed in _REQUIRED.items() if needed <= have)


def activation_dtype(isa: str) -> str:
    """Returns how INT8 activations are stored: "u8" on x86 and for scalar programs, "s8" on ARM."""
    return "s8" if isa.startswith("arm_") else "u8"
