"""Peak memory of this process. A module of its own, and a small one, so that measuring it adds nothing to it."""

from __future__ import annotations


def peak_rss_bytes() -> int:
    """Greatest resident memory of this process so far."""
    try:
        # Not getrusage: after fork and exec its figure is at least the parent's.
        with open("/proc/self/status", "rb") as status:  # noqa: PTH123 - pathlib would be part of what is measured
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
