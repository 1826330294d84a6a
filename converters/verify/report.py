"""report.json: everything that a conversion did and measured, as typed values. report_html.py shows it to people."""

from __future__ import annotations

from typing import Any

import msgspec

from edgekit.converters.verify.accuracy import PartAccuracy
from edgekit.converters.verify.audit import Coverage

REPORT_FORMAT = 1


class PassRow(msgspec.Struct, frozen=True):
    """One pass; see passes._pass.PassRecord."""

    name: str
    changes: int
    nodes_before: int
    nodes_after: int
    max_error: float | None
    seconds: float
    skipped: bool


class PlanRow(msgspec.Struct, frozen=True):
    """What the quantizer decided for one layer."""

    name: str
    op: str
    planned: str
    reason: str


class EngineReport(msgspec.Struct, frozen=True):
    """One variant, run on this host against the float model.

    Attributes:
        variant: Its name in the package.
        engine: Engine that ran it.
        measured_on: ISA or device that ran it; for a native variant of another ISA, this host's program of the same
            graph, which computes the same bit for bit.
        samples: Held-out samples.
        parts: Figures of each part of the outputs.
        agreement: Task agreement with the float model, 0..100 (see agreement.py); null without one.
        latency_ms: Median over the samples on this host, with `threads` threads.
        threads: Threads within an inference.
        size_bytes: Of the variant's members.
        memory_bytes: As the engine tells, by kind.
        missed: Why it misses the gate; empty when it passes.
    """

    variant: str
    engine: str
    measured_on: str
    samples: int
    parts: tuple[PartAccuracy, ...]
    agreement: float | None
    latency_ms: float
    threads: int
    size_bytes: int
    memory_bytes: dict[str, int] = {}
    missed: str = ""


class Report(msgspec.Struct, frozen=True):
    """All of report.json.

    Attributes:
        format: Version of this form.
        converter_version: edgekit that wrote it.
        source_name, source_sha256: The float model.
        profile, isa: Device.
        precision: fp32, int8 or mixed: what the package holds.
        calibration_samples: Samples that ranges rest on; 0 in float.
        held_out_samples: Samples that the figures rest on.
        float_latency_ms: Median of the float model in ONNX Runtime on this host.
        passes: In order.
        plan: The quantizer's decision for each layer; empty in float.
        coverage: What runs how in the native variant; null without one.
        engines: One entry a variant, those left out included.
        figures: Further numbers by name.
        notes: Lines that were shown to the user.
    """

    format: int
    converter_version: str
    source_name: str
    source_sha256: str
    profile: str
    isa: str
    precision: str
    calibration_samples: int
    held_out_samples: int
    float_latency_ms: float
    passes: tuple[PassRow, ...]
    plan: tuple[PlanRow, ...]
    coverage: Coverage | None
    engines: tuple[EngineReport, ...]
    figures: dict[str, float]
    notes: tuple[str, ...]


def report_json(report: Report) -> bytes:
    """Encodes a report, indented."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def parse_report(data: bytes) -> Report:
    """Decodes a report.

    Raises:
        msgspec.ValidationError: It is of another form.
    """
    return msgspec.json.decode(data, type=Report)


def as_builtins(report: Report) -> Any:
    """The report as plain dictionaries and lists."""
    return msgspec.to_builtins(report)
