"""Benchmark results in Google Benchmark's JSON form, so that its compare tool reads them.

Format: google/benchmark, docs/user_guide.md and tools/compare.py. One row a repetition; our own fields sit under
"edgekit" of the context and of each row.
"""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

from edgekit.bench.roofline import LayerBound
from edgekit.bench.scenarios import Measurement
from edgekit.bench.statistics import summarize

Json = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One measurement with what it was measured on.

    Attributes:
        model: Name of the package's file.
        engine, isa: Engine and instruction set.
        threads: Threads within an inference.
        measurement: The numbers.
        stages_ms: Median milliseconds by stage, where a pipeline ran.
        memory_bytes: Bytes by kind.
    """

    model: str
    engine: str
    isa: str
    threads: int
    measurement: Measurement
    repetition: int = 0
    stages_ms: dict[str, float] = field(default_factory=dict)
    memory_bytes: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name as Google Benchmark writes it."""
        return f"{self.model}/{self.engine}/{self.measurement.scenario}/threads:{self.threads}"


def as_json(rows: Sequence[Row], repetitions: int) -> Json:
    """All rows with their context.

    Args:
        rows: The measurements.
        repetitions: How often each was repeated.

    Returns:
        A dictionary fit for JSON.
    """
    return {"context": _context(), "benchmarks": [_row(row, repetitions) for row in rows]}


def _row(row: Row, repetitions: int) -> Json:
    measured = row.measurement
    summary = summarize(measured.latencies_ms)
    wall_ms = measured.wall_s * 1e3 / summary.count
    latency_ns = {
        f"p{percentile:g}": None if value is None else round(value * 1e6)
        for percentile, value in summary.percentiles_ms.items()
    }
    return {
        "name": row.name,
        "run_name": row.name,
        "run_type": "iteration",
        "repetitions": repetitions,
        "repetition_index": row.repetition,
        "threads": row.threads,
        "iterations": summary.count,
        "real_time": wall_ms,
        "cpu_time": measured.cpu_s * 1e3 / summary.count,
        "time_unit": "ms",
        "items_per_second": measured.per_second,
        "edgekit": {
            "latency_ns": latency_ns | {"max": round(summary.max_ms * 1e6), "mad": round(summary.mad_ms * 1e6)},
            "scenario": measured.scenario,
            "engine": row.engine,
            "isa": row.isa,
            "sessions": measured.sessions,
            "warmup_inferences": measured.warmup_inferences,
            "warm": measured.warm,
            "stages": row.stages_ms,
            "memory": row.memory_bytes,
            **measured.extra,
        },
    }


def layer_rows(layers: Sequence[LayerBound]) -> list[Json]:
    """Layers against the roofline, in the order they run.

    Args:
        layers: The measurements.

    Returns:
        One dictionary a layer; times in microseconds.
    """
    return [
        {
            "name": entry.layer.name,
            "op": entry.layer.op,
            "kernel": entry.layer.kernel,
            "time_us": entry.layer.time_us,
            "macs": entry.layer.macs,
            "bytes_moved": entry.layer.bytes_moved,
            "compute_us": entry.compute_us,
            "memory_us": entry.memory_us,
            "roofline_share": entry.roofline_share,
            "bound": entry.bound,
        }
        for entry in layers
    ]


def _context() -> Json:
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "host_name": socket.gethostname(),
        "executable": "edgekit bench",
        "num_cpus": os.cpu_count() or 1,
        "mhz_per_cpu": _cpu_mhz(),
        "cpu_scaling_enabled": _governor() not in ("performance", "unknown"),
        "caches": [],
        "load_avg": list(os.getloadavg()),
        "library_build_type": "release",
        "edgekit": {
            "cpu_mask": sorted(os.sched_getaffinity(0)),
            "governor": _governor(),
            "kernel": platform.release(),
            "versions": _versions(),
        },
    }


def _cpu_mhz() -> int:
    """Clock of the first CPU in MHz; 0 where the kernel does not tell."""
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("cpu MHz"):
            return round(float(line.split(":")[1]))
    return 0


def _governor() -> str:
    path = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return path.read_text().strip() if path.exists() else "unknown"


def _versions() -> dict[str, str]:
    found = {}
    for name in ("edgekit", "numpy", "onnxruntime", "openvino"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
