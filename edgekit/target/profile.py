"""What a device profile holds. One TOML file each under devices/; _template.toml there explains every field.

Every figure carries its source; a figure nobody published or measured is left out, never guessed.
"""

from __future__ import annotations

import hashlib
import json
from typing import Literal

import msgspec

SCHEMA_VERSION = 1


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number and where it comes from: a public document, or a measurement with its tool and date."""

    value: float
    source: str


class Cluster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cores of one kind.

    Attributes:
        core: Name of the core, such as Cortex-A76.
        count: How many.
        source: Where core and count come from.
        max_ghz: Highest clock.
    """

    core: str
    count: int
    source: str
    max_ghz: Figure | None = None


class Cpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The processor.

    Attributes:
        architecture: aarch64 or x86_64.
        clusters: Fastest cores first; empty for generic profiles.
        isa: Features as Linux names them in /proc/cpuinfo; those that matter here.
        isa_source: Where isa comes from.
        l2_kib: L2 cache of one core of the fastest cluster, KiB.
        l3_kib: L3 cache shared by all, KiB.
    """

    architecture: Literal["aarch64", "x86_64"]
    isa: tuple[str, ...]
    isa_source: str
    clusters: tuple[Cluster, ...] = ()
    l2_kib: Figure | None = None
    l3_kib: Figure | None = None


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Main memory: capacity in GiB, bandwidths in 1e9 bytes/s; measured is reading with all big cores."""

    capacity_gib: Figure | None = None
    peak_gb_s: Figure | None = None
    measured_gb_s: Figure | None = None


class Accelerator(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A GPU, NPU or TPU.

    Attributes:
        kind: gpu, npu, tpu or dsp.
        name: Its name.
        source: Where everything here without a source of its own comes from.
        int8_tops: Peak, 1e12 operations/s, two a multiply-accumulate.
        dtypes: What it computes in.
        compiler: The vendor compiler that makes its programs.
        static_shapes_only: True when it can't take symbolic dims.
        max_rank: Most dims of a tensor.
        parameter_cache_kib: On-chip memory for weights, KiB.
    """

    kind: Literal["gpu", "npu", "tpu", "dsp"]
    name: str
    source: str
    int8_tops: Figure | None = None
    dtypes: tuple[str, ...] = ()
    compiler: str | None = None
    static_shapes_only: bool = False
    max_rank: int | None = None
    parameter_cache_kib: Figure | None = None


class QuantScheme(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How tensors are stored on the device: conversion.md ("Scheme per target").

    Attributes:
        activation: u8 or s8, with a zero point; the converter works in s8 and shifts exactly.
        weight: s8 is symmetric, -127..127; u8 has a zero point.
        granularity: Of weight scales.
        ranges: asymmetric or symmetric activations.
    """

    activation: Literal["u8", "s8"] = "s8"
    weight: Literal["s8", "u8"] = "s8"
    granularity: Literal["channel", "tensor"] = "channel"
    ranges: Literal["asymmetric", "symmetric"] = "asymmetric"


class OpRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the device asks of single operators, by ONNX name.

    Attributes:
        float_only: Operators to keep in float.
        inherit: Operators whose output takes the scale of their input.
        fixed_scale: Operator to the [scale, zero point] that its output must have.
        unify: Operators whose inputs and output must share one scale.
    """

    float_only: tuple[str, ...] = ()
    inherit: tuple[str, ...] = ()
    fixed_scale: dict[str, tuple[float, int]] = {}
    unify: tuple[str, ...] = ()


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model for the device must not exceed.

    Attributes:
        opset: Highest ONNX opset that its ONNX engines take.
        ir_version: Highest ONNX IR version.
        package_mib: Largest package.
        arena_mib: Most memory for activations.
    """

    opset: int | None = None
    ir_version: int | None = None
    package_mib: int | None = None
    arena_mib: int | None = None


class Measured(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Peaks that `edgekit devices measure` found, for the roofline: 1e9 multiply-accumulates/s."""

    threads: int
    int8_gmac_s: Figure
    fp32_gmac_s: Figure


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device.

    Attributes:
        schema: Version of this form.
        id: Unique; the file's name without .toml.
        name: For people.
        cpu, memory, accelerators, quant, ops, limits: See there.
        engines: In order of preference: native, onnxruntime, openvino.
        layout: Order of activations in memory.
        measured: Only in profiles made by measuring.
        notes: One line each, for people.
        parents: Profiles it extends, nearest first; filled in while loading.
    """

    schema: int
    id: str
    name: str
    cpu: Cpu
    engines: tuple[str, ...]
    memory: Memory = Memory()
    accelerators: tuple[Accelerator, ...] = ()
    quant: QuantScheme = QuantScheme()
    ops: OpRules = OpRules()
    limits: Limits = Limits()
    layout: Literal["nhwc", "nchw"] = "nhwc"
    measured: Measured | None = None
    notes: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()

    @property
    def isa(self) -> str:
        """Instruction set of native programs for this device, as in program_schema.toml (enums.isa)."""
        from edgekit.target.isa import native_isa

        return native_isa(self.cpu.isa)

    @property
    def sha256(self) -> str:
        """Hash of the resolved profile, 64 hex digits."""
        text = json.dumps(msgspec.to_builtins(self), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def core_count(self) -> int:
        """Cores of all clusters; 0 when unknown."""
        return sum(cluster.count for cluster in self.cpu.clusters)
