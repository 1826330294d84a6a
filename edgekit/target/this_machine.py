"""The profile this-machine: detected on every call, with the figures of the last `edgekit devices measure` added."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Literal

from edgekit.errors import ProfileError
from edgekit.target.isa import activation_dtype, native_isa
from edgekit.target.loading import THIS_MACHINE, load_profile, user_profiles_folder
from edgekit.target.machine import Machine, read_machine
from edgekit.target.profile import SCHEMA_VERSION, Cluster, Cpu, Figure, Measured, Memory, Profile, QuantScheme

_DETECTED = "detected on this machine"


def detect_profile(machine: Machine | None = None) -> Profile:
    """Describes this machine as a profile.

    Args:
        machine: What was read; by default it is read now.

    Raises:
        ProfileError: An architecture that edgekit does not run on, or a damaged file of measured figures.
    """
    found = read_machine() if machine is None else machine
    saved = _saved_measurements(found)
    capacity = found.memory_bytes and round(found.memory_bytes / 2**30, 2)
    return Profile(
        schema=SCHEMA_VERSION,
        id=THIS_MACHINE,
        name=found.board or platform.node() or THIS_MACHINE,
        cpu=detected_cpu(found),
        engines=("native", "onnxruntime", "openvino"),
        memory=Memory(
            capacity_gib=_detected(capacity), measured_gb_s=saved.memory.measured_gb_s if saved is not None else None
        ),
        quant=QuantScheme(activation="s8" if activation_dtype(native_isa(found.features)) == "s8" else "u8"),
        measured=saved.measured if saved is not None else None,
    )


def detected_cpu(machine: Machine) -> Cpu:
    """Turns what was read of the processor into its part of a profile.

    Raises:
        ProfileError: An architecture that edgekit does not run on.
    """
    clusters = tuple(
        Cluster(group.core, len(group.cpus), _DETECTED, _detected(group.max_ghz)) for group in machine.groups
    )
    return Cpu(
        architecture=_architecture(machine),
        isa=tuple(sorted(machine.features)),
        isa_source=_DETECTED,
        clusters=clusters,
        l2_kib=_detected(machine.l2_kib),
        l3_kib=_detected(machine.l3_kib),
    )


def measured_file() -> Path:
    """Returns where the figures of the last `edgekit devices measure` are kept."""
    return user_profiles_folder().parent / "measured.toml"


def fingerprint(machine: Machine) -> str:
    """Names the machine for which a measurement holds: cores and features, in one line."""
    cores = ", ".join(f"{len(group.cpus)}x {group.core}" for group in machine.groups)
    return f"{cores}; {native_isa(machine.features)}"


def measured_profile(machine: Machine, measured: Measured, read_gb_s: Figure) -> Profile:
    """Makes the profile that `edgekit devices measure` stores, so that detect_profile() finds the figures again."""
    base = detect_profile(machine)
    return Profile(
        schema=SCHEMA_VERSION,
        id="measured",
        name=base.name,
        cpu=base.cpu,
        engines=base.engines,
        memory=Memory(capacity_gib=base.memory.capacity_gib, measured_gb_s=read_gb_s),
        quant=base.quant,
        measured=measured,
        notes=(fingerprint(machine),),
    )


def _saved_measurements(machine: Machine) -> Profile | None:
    path = measured_file()
    if not path.is_file():
        return None
    try:
        saved = load_profile(path)
    except ProfileError as error:
        raise ProfileError(str(error), hint="delete the file, then run: edgekit devices measure") from error
    return saved if fingerprint(machine) in saved.notes else None  # a home folder may move to another machine


def _architecture(machine: Machine) -> Literal["aarch64", "x86_64"]:
    name = machine.architecture.lower()
    if name in ("aarch64", "arm64"):
        return "aarch64"
    if name in ("x86_64", "amd64"):
        return "x86_64"
    raise ProfileError("architecture is not supported", got=name, expected="aarch64 or x86_64")


def _detected(value: float | None) -> Figure | None:
    return Figure(float(value), _DETECTED) if value else None
