"""Measures the peaks of this machine: what `edgekit devices measure` stores and the benchmark's roofline stands on."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import dataclass

import msgspec

import edgekit
from edgekit.errors import UsageError
from edgekit.target.machine import Machine, read_machine
from edgekit.target.profile import Figure, Measured, Profile
from edgekit.target.this_machine import measured_profile

MAX_THREADS = 256
_LEAST_BUFFER_BYTES = 64 << 20
_MOST_BUFFER_BYTES = 512 << 20


@dataclass(frozen=True)
class MachinePeaks:
    """Measured peaks.

    Attributes:
        threads: On how many threads.
        isa: Instruction set of the kernels that were measured.
        int8_gmac_s: 1e9 multiply-accumulates/s of 8-bit operands with exact sums.
        fp32_gmac_s: The same of float32.
        read_gb_s: 1e9 bytes/s read from memory.
    """

    threads: int
    isa: str
    int8_gmac_s: float
    fp32_gmac_s: float
    read_gb_s: float


def measure_machine(threads: int = 0, machine: Machine | None = None) -> MachinePeaks:
    """Measures for about a second.

    Args:
        threads: How many; 0: as many as an inference would use.
        machine: What is known of it; by default it is read now. Its caches decide how much memory is read.

    Raises:
        UsageError: The number of threads is out of range.
        EnvironmentFaultError: Not enough memory.
    """
    from edgekit import _native

    if not 0 <= threads <= MAX_THREADS:
        raise UsageError("number of threads is out of range", got=threads, expected=f"0 to {MAX_THREADS}")
    count = threads or _native.usable_cpus()
    return MachinePeaks(
        threads=count,
        isa=_native.active_isa(),
        int8_gmac_s=_native.measure_int8_gmac_s(count),
        fp32_gmac_s=_native.measure_fp32_gmac_s(count),
        read_gb_s=_native.measure_read_gb_s(_buffer_bytes(machine or read_machine()), count),
    )


def measurement_toml(peaks: MachinePeaks, machine: Machine | None = None) -> str:
    """Returns the profile that keeps what was measured; this-machine finds it in measured_file()."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    source = f"edgekit {edgekit.__version__} devices measure, {now}, {peaks.threads} threads, {peaks.isa}"
    figures = [Figure(_rounded(value), source) for value in (peaks.int8_gmac_s, peaks.fp32_gmac_s, peaks.read_gb_s)]
    measured = Measured(peaks.threads, figures[0], figures[1])
    return profile_toml(measured_profile(machine or read_machine(), measured, figures[2]))


def profile_toml(profile: Profile) -> str:
    """Writes a resolved profile as TOML that load_profile() reads back."""
    table = msgspec.to_builtins(profile)
    table.pop("parents")
    lines = [f"{key} = {_value(value)}" for key, value in table.items() if value is not None]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, dict):
        items = (f"{_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
        return "{ " + ", ".join(items) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} in a profile")
    return json.dumps(value, ensure_ascii=True)  # booleans, numbers and strings are the same in TOML


def _key(key: str) -> str:
    return json.dumps(key, ensure_ascii=True)


def _buffer_bytes(machine: Machine) -> int:
    last_level_kib = machine.l3_kib or machine.l2_kib or 0
    most = min(_MOST_BUFFER_BYTES, (machine.memory_bytes or _MOST_BUFFER_BYTES) // 8)
    return max(1 << 20, min(most, max(_LEAST_BUFFER_BYTES, 4 * last_level_kib * 1024)))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
