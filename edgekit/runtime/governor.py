"""How many threads this process should use. The native core knows the cores; every engine is told the same number."""

from __future__ import annotations

from edgekit import _native


def default_threads() -> int:
    """Returns how many threads an inference should use: one a big core, within affinity mask and cgroup quota."""
    return _native.usable_cpus()
