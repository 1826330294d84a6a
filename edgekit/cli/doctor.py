"""`edgekit doctor`: what is installed here, what can run, and what would make it run better."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import sys
from collections.abc import Iterator
from typing import Annotated, Any

from cyclopts import Parameter

from edgekit.cli.output import human_bytes, print_json, print_table

Flag = Annotated[bool, Parameter(negative=())]

# Import name, distribution, what for, extra.
_LIBRARIES = (
    ("onnxruntime", ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino"), "engine onnxruntime", "onnxruntime"),
    ("openvino", ("openvino",), "engine openvino", "openvino"),
    ("onnx_ir", ("onnx-ir",), "edgekit convert", "convert"),
    ("PIL", ("pillow",), "pictures", "camera"),
    ("av", ("av",), "video files and streams", "camera"),
    ("cv2", ("opencv-python-headless", "opencv-python"), "cameras", "camera"),
)


def doctor_command(*, json: Flag = False) -> None:
    """Checks this machine and installation, and gives tips.

    Args:
        json: Print JSON.
    """
    report: dict[str, Any] = {"machine": _machine(), "engines": _engines(), "libraries": _libraries()}
    report["tips"] = list(_tips(report))
    if json:
        print_json(report)
        return
    print_table("this machine", ("", ""), [(key.replace("_", " "), _cell(value)) for key, value in _flat(report)])
    engines = [
        (name, each["version"], each["state"], ", ".join(each["devices"])) for name, each in report["engines"].items()
    ]
    print_table("engines", ("engine", "version", "state", "devices"), engines)
    libraries = [(each["name"], each["version"] or "not installed", each["purpose"]) for each in report["libraries"]]
    print_table("libraries", ("library", "version", "for"), libraries)
    for tip in report["tips"]:
        print(f"tip: {tip}")


def _machine() -> dict[str, Any]:
    import edgekit
    from edgekit import _native
    from edgekit.target.machine import read_machine

    found = read_machine()
    return {
        "edgekit": edgekit.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "board": found.board,
        "architecture": found.architecture,
        "cores": [f"{len(group.cpus)}x {group.core}" for group in found.groups],
        "threads": _native.usable_cpus(),
        "features": sorted(found.features),
        "best_isa": _native.best_isa(),
        "active_isa": _native.active_isa(),
        "memory_bytes": found.memory_bytes,
        "l2_kib": found.l2_kib,
        "l3_kib": found.l3_kib,
        "governor": found.governor,
    }


def _engines() -> dict[str, Any]:
    from edgekit.engines.registry import engine_names, get_engine

    report = {}
    for name in engine_names():
        found = get_engine(name).capabilities()
        state = "available" if found.available else found.reason
        report[name] = {
            "available": found.available,
            "version": found.version,
            "state": state,
            "devices": list(found.devices),
        }
    return report


def _libraries() -> list[dict[str, Any]]:
    report = []
    for module, distributions, purpose, extra in _LIBRARIES:
        present = importlib.util.find_spec(module) is not None
        version = next(filter(None, map(_version, distributions)), "unknown") if present else None
        report.append({"name": module, "version": version, "purpose": purpose, "extra": extra})
    return report


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _tips(report: dict[str, Any]) -> Iterator[str]:
    machine = report["machine"]
    missing = sorted({each["extra"] for each in report["libraries"] if each["version"] is None})
    if missing:
        yield f'pip install "edgekit[{",".join(missing)}]" adds what is not installed'
    if machine["active_isa"] == "scalar":
        yield "native kernels run without SIMD here: expect a tenth of the speed"
    elif machine["active_isa"] != machine["best_isa"]:
        yield f"EDGEKIT_ISA holds the native kernels at {machine['active_isa']}; this CPU can do {machine['best_isa']}"
    if machine["governor"] not in (None, "performance"):
        yield f"the frequency governor is {machine['governor']}; performance gives steadier latency"
    if sys.maxsize < 2**32:
        yield "this Python is 32-bit: packages over about 1 GiB can't be mapped"
    from edgekit.target import load_profile

    if load_profile("this-machine").measured is None:
        yield "edgekit devices measure lets the benchmark tell compute from memory limits"


def _flat(report: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in report["machine"].items():
        if value is not None:
            yield (key.removesuffix("_bytes"), human_bytes(value)) if key.endswith("_bytes") else (key, value)


def _cell(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
