"""What Linux tells about this machine: cores, caches, clocks, memory. What it does not tell is None, never guessed."""

from __future__ import annotations

import os
import platform
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

# CPU part numbers of implementer 0x41 (Arm Ltd.): MIDR_EL1 in the Technical Reference Manual of each core.
_ARM_PARTS = {
    0xD03: "Cortex-A53",
    0xD04: "Cortex-A35",
    0xD05: "Cortex-A55",
    0xD07: "Cortex-A57",
    0xD08: "Cortex-A72",
    0xD09: "Cortex-A73",
    0xD0A: "Cortex-A75",
    0xD0B: "Cortex-A76",
    0xD0C: "Neoverse-N1",
    0xD0D: "Cortex-A77",
    0xD40: "Neoverse-V1",
    0xD41: "Cortex-A78",
    0xD42: "Cortex-A78AE",
    0xD44: "Cortex-X1",
    0xD46: "Cortex-A510",
    0xD47: "Cortex-A710",
    0xD48: "Cortex-X2",
    0xD49: "Neoverse-N2",
    0xD4D: "Cortex-A715",
    0xD4E: "Cortex-X3",
    0xD4F: "Neoverse-V2",
    0xD80: "Cortex-A520",
    0xD81: "Cortex-A720",
    0xD82: "Cortex-X4",
}
_ROOT = Path("/")


@dataclass(frozen=True)
class CoreGroup:
    """Logical CPUs of one kind.

    Attributes:
        core: Model of the core.
        cpus: Their numbers.
        max_ghz: Highest clock, None when the kernel does not tell.
        capacity: The kernel's relative speed, 1024 for the fastest; None on machines with one kind of core.
    """

    core: str
    cpus: tuple[int, ...]
    max_ghz: float | None
    capacity: int | None


@dataclass(frozen=True)
class Machine:
    """This machine.

    Attributes:
        architecture: As platform.machine() says it.
        groups: Fastest first.
        features: CPU features, named as in /proc/cpuinfo.
        l2_kib, l3_kib: Caches as CPU 0's fastest sibling sees them.
        memory_bytes: Main memory, or the cgroup's limit where that is less.
        governor: Frequency governor of the fastest core.
        board: Name of the board or product.
    """

    architecture: str
    groups: tuple[CoreGroup, ...]
    features: frozenset[str]
    l2_kib: int | None
    l3_kib: int | None
    memory_bytes: int | None
    governor: str | None
    board: str | None


def read_machine(root: Path = _ROOT, features: frozenset[str] | None = None) -> Machine:
    """Reads what the kernel tells.

    Args:
        root: Where proc and sys lie; for tests.
        features: CPU features; by default what the native core finds.
    """
    if features is None:
        from edgekit import _native

        features = frozenset(_native.cpu_features())
    entries = _cpuinfo(root)
    groups = _core_groups(root, entries)
    first = groups[0].cpus[0] if groups else 0
    caches = _caches(root, first)
    governor = _text(root / f"sys/devices/system/cpu/cpu{first}/cpufreq/scaling_governor")
    board = _text(root / "proc/device-tree/model") or _text(root / "sys/class/dmi/id/product_name")
    return Machine(
        architecture=platform.machine(),
        groups=groups,
        features=features,
        l2_kib=caches.get(2),
        l3_kib=caches.get(3),
        memory_bytes=_memory_bytes(root),
        governor=governor,
        board=board,
    )


def _cpuinfo(root: Path) -> dict[int, dict[str, str]]:
    entries: dict[int, dict[str, str]] = {}
    for block in (_text(root / "proc/cpuinfo") or "").split("\n\n"):
        fields = dict(
            (key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in block.splitlines())
        )
        if fields.get("processor", "").isdigit():
            entries[int(fields["processor"])] = fields
    return entries


def _core_groups(root: Path, entries: dict[int, dict[str, str]]) -> tuple[CoreGroup, ...]:
    cpus = sorted(entries) or list(range(os.cpu_count() or 1))
    kinds: dict[tuple[int, float, str], list[int]] = defaultdict(list)
    for cpu in cpus:
        folder = root / f"sys/devices/system/cpu/cpu{cpu}"
        capacity = _number(folder / "cpu_capacity") or 0
        max_khz = _number(folder / "cpufreq/cpuinfo_max_freq") or 0
        kinds[(capacity, max_khz / 1e6, _core_name(entries.get(cpu, {})))].append(cpu)
    ordered = sorted(kinds.items(), key=lambda item: item[0][:2], reverse=True)
    return tuple(
        CoreGroup(core, tuple(members), max_ghz or None, capacity or None)
        for (capacity, max_ghz, core), members in ordered
    )


def _core_name(entry: dict[str, str]) -> str:
    if name := entry.get("model name"):
        return " ".join(name.split())
    implementer, part = entry.get("CPU implementer", ""), entry.get("CPU part", "")
    try:
        known = _ARM_PARTS.get(int(part, 16)) if int(implementer, 16) == 0x41 else None
    except ValueError:
        return "unknown"
    return known or f"implementer {implementer} part {part}"


def _caches(root: Path, cpu: int) -> dict[int, int]:
    sizes = {}
    for folder in sorted((root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")):
        size = re.fullmatch(r"(\d+)K", _text(folder / "size") or "")
        level = _number(folder / "level")
        if size and level and _text(folder / "type") in ("Data", "Unified"):
            sizes[level] = int(size.group(1))
    return sizes


def _memory_bytes(root: Path) -> int | None:
    total = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo") or "", re.MULTILINE)
    limits = [_number(root / "sys/fs/cgroup/memory.max"), _number(root / "sys/fs/cgroup/memory/memory.limit_in_bytes")]
    known = [limit for limit in (int(total.group(1)) * 1024 if total else None, *limits) if limit]
    return min(known) if known else None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text and text.isdigit() else None


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode(errors="replace").strip("\0\n ") or None
    except OSError:
        return None
