"""Which cores this process may use: affinity mask and cgroup quota respected, big cores before little ones.

Sources: sched_getaffinity(2), cgroups(7) (cpu.max of version 2, cpu.cfs_quota_us of version 1), and the kernel's
cpu_capacity (Documentation/ABI/testing/sysfs-devices-system-cpu).
"""

from __future__ import annotations

import math
import os
from pathlib import Path

_ROOT = Path("/")
# A core counts as big from this share of the fastest one's capacity: Cortex-A715 beside X3 does, A510 does not.
_BIG_SHARE = 0.6


def usable_cpus(root: Path = _ROOT) -> list[int]:
    """Returns the logical CPUs that the affinity mask allows, fastest first; little cores come last.

    Args:
        root: Where sys lies; for tests.
    """
    allowed = sorted(os.sched_getaffinity(0))
    return sorted(allowed, key=lambda cpu: -_capacity(root, cpu))


def big_cores(root: Path = _ROOT) -> list[int]:
    """Returns one logical CPU for each big core that the affinity mask allows, fastest first."""
    cpus = usable_cpus(root)
    best = max(_capacity(root, cpu) for cpu in cpus)
    cores: dict[object, int] = {}
    for cpu in cpus:
        if _capacity(root, cpu) >= _BIG_SHARE * best:
            cores.setdefault(_core_id(root, cpu), cpu)
    return list(cores.values())


def default_threads(root: Path = _ROOT) -> int:
    """Returns how many threads an inference should use: one for each big core, within the cgroup's CPU quota."""
    quota = cpu_quota(root)
    cores = len(big_cores(root))
    return max(1, min(cores, math.ceil(quota) if quota is not None else cores))


def cpu_quota(root: Path = _ROOT) -> float | None:
    """Returns the CPUs' worth of time that the cgroup grants, None when there is no limit."""
    limits = []
    for folder in _cgroup_folders(root):
        words = (_text(folder / "cpu.max") or "").split()
        if len(words) != 2:
            words = [_text(folder / "cpu.cfs_quota_us") or "", _text(folder / "cpu.cfs_period_us") or ""]
        if all(word.isdigit() for word in words) and int(words[1]) > 0:  # "max" and -1 mean no limit
            limits.append(int(words[0]) / int(words[1]))
    return min(limits) if limits else None


def _cgroup_folders(root: Path) -> list[Path]:
    """All cgroup folders from the process's own up to the root, of both versions."""
    folders = []
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        hierarchy, controllers, path = [*line.split(":", 2), "", ""][:3]
        if hierarchy == "0":
            mount = root / "sys/fs/cgroup"
        elif "cpu" in controllers.split(","):
            mount = root / "sys/fs/cgroup/cpu"
        else:
            continue
        own = mount / path.strip("/")
        folders += [own, *(parent for parent in own.parents if parent.is_relative_to(mount))]
    return folders


def _capacity(root: Path, cpu: int) -> float:
    folder = root / f"sys/devices/system/cpu/cpu{cpu}"
    text = _text(folder / "cpu_capacity") or _text(folder / "cpufreq/cpuinfo_max_freq") or ""
    return float(text) if text.isdigit() else 0.0


def _core_id(root: Path, cpu: int) -> object:
    return _text(root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or cpu


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return None
