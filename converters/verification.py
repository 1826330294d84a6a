"""Measures every variant on this host before anything is written, and decides which of them the package keeps."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from edgekit.converters.contracts import Array, LoweredModel
from edgekit.converters.options import ConvertOptions
from edgekit.converters.prepare import Prepared
from edgekit.converters.variants import EmittedVariant, Graph, lower_graph, native_variant
from edgekit.converters.verify.accuracy import sqnr_of
from edgekit.converters.verify.foreign_program import check_foreign_program
from edgekit.converters.verify.gate import refuse
from edgekit.converters.verify.measure import (
    Measured,
    RememberedReference,
    Yardstick,
    measure_variant,
    report_progress,
    why_not_here,
)
from edgekit.converters.verify.parts import parts_of
from edgekit.converters.verify.report import EngineReport
from edgekit.errors import EngineError, PackageError, UnsupportedError
from edgekit.package.golden import DEFAULT_MIN_SQNR_DB, GoldenSample, golden_members
from edgekit.package.manifest import Manifest
from edgekit.package.writer import write_package
from edgekit.records import replace
from edgekit.target import load_profile

_GOLDEN_MARGIN_DB = 3.0
_LEAST_GOLDEN_DB = 1.0


@dataclass
class Verified:
    """The variants that passed, and what was measured.

    Attributes:
        golden: Sample for the self-test; its outputs are the first variant's.
        kept: Variants that the package holds.
        engines: Figures of all that were run.
        golden_floor_db: Output to the tolerance of the self-test: what every kept variant reaches, less a margin.
        float_latency_ms: Median of the float model on this host.
        coverage_source: The lowered model, where there is a native variant.
        foreign_sqnr_db: How close the packed program for another instruction set, run in scalar kernels, is to this
            host's; None where the program runs here as it is.
    """

    golden: GoldenSample
    kept: list[EmittedVariant] = field(default_factory=list)
    engines: list[EngineReport] = field(default_factory=list)
    golden_floor_db: dict[str, float] = field(default_factory=dict)
    float_latency_ms: float = 0.0
    coverage_source: LoweredModel | None = None
    foreign_sqnr_db: float | None = None

    def keep(self, emitted: EmittedVariant, outputs: Mapping[str, Array] | None) -> None:
        """Keeps a variant; outputs are its own on the golden sample, where it ran."""
        self.kept.append(emitted)
        if emitted.lowered is not None:
            self.coverage_source = emitted.lowered
        if outputs is None:
            return
        if not self.golden.outputs:
            self.golden = GoldenSample(self.golden.inputs, dict(outputs))
        for name, expected in self.golden.outputs.items():
            reached = sqnr_of(expected, outputs[name]) - _GOLDEN_MARGIN_DB
            floor = min(self.golden_floor_db.get(name, DEFAULT_MIN_SQNR_DB), reached)
            self.golden_floor_db[name] = max(floor, _LEAST_GOLDEN_DB)


def verify(
    options: ConvertOptions, graph: Graph, prepared: Prepared, draft: Manifest, emitted: Sequence[EmittedVariant]
) -> Verified:
    """Runs the variants on the held-out samples.

    Args:
        options: Of the conversion.
        graph: What the variants were made of.
        prepared: Samples, the float model, and notes, to which lines are added.
        draft: Manifest without figures.
        emitted: In order of preference. The first that runs here must pass; a later one that misses is left out.

    Raises:
        GateError: The first misses its gate.
        UnsupportedError: None can run on this host.
    """
    progress = report_progress(options.progress, "verify")
    remembered = RememberedReference(prepared.reference.run, prepared.held_out)
    parts = parts_of(prepared.model, prepared.outputs, draft.postprocess)
    precision = "int8" if graph.quantized else "fp32"
    yardstick = Yardstick(
        remembered, prepared.held_out, parts, draft.postprocess, precision, options.max_drop, prepared.golden
    )
    verified = Verified(GoldenSample(prepared.held_out.load(prepared.held_out.indices[prepared.golden]), {}))
    with tempfile.TemporaryDirectory(prefix="edgekit-convert-") as folder:
        for index, one in enumerate(emitted):
            _verify_one(one, graph, draft, yardstick, Path(folder, f"{index}.ekpkg"), (prepared, verified))
            progress((index + 1) / len(emitted))
    if not verified.golden.outputs:
        raise UnsupportedError("no variant can run on this host to be verified", got="; ".join(prepared.notes))
    verified.float_latency_ms = remembered.median_ms()
    return verified


def _verify_one(
    one: EmittedVariant,
    graph: Graph,
    draft: Manifest,
    yardstick: Yardstick,
    path: Path,
    state: tuple[Prepared, Verified],
) -> None:
    prepared, verified = state
    here = _runnable_here(one, graph)
    if (reason := why_not_here(here.variant)) is not None:
        prepared.notes.append(f"variant {one.variant.name} was not measured here: {reason}")
        verified.keep(one, None)
        return
    try:
        measured = _measure(here, one, draft, yardstick, path)
    except (PackageError, EngineError) as error:
        if not verified.golden.outputs:
            raise
        prepared.notes.append(f"variant {one.variant.name} was left out: {error}")
        return
    verified.engines.append(measured.report)
    if not measured.report.missed:
        verified.keep(one, measured.golden_outputs)
        if here is not one:
            verified.foreign_sqnr_db = _check_foreign(
                one, draft, GoldenSample(verified.golden.inputs, measured.golden_outputs), path
            )
    elif verified.golden.outputs:
        prepared.notes.append(f"variant {one.variant.name} was left out: {measured.report.missed}")
    else:
        raise refuse(measured.report.missed)


def _measure(here: EmittedVariant, one: EmittedVariant, draft: Manifest, yardstick: Yardstick, path: Path) -> Measured:
    write_package(path, replace(draft, variants=(here.variant,)), here.members)
    measured = measure_variant(path, here.variant, one.size_bytes(), yardstick)
    path.unlink()
    return Measured(msgspec.structs.replace(measured.report, variant=one.variant.name), measured.golden_outputs)


def _check_foreign(one: EmittedVariant, draft: Manifest, golden: GoldenSample, path: Path) -> float:
    """Runs the packed program for another instruction set against the outputs of this host's."""
    manifest = replace(draft, variants=(one.variant,))
    write_package(path, manifest, {**one.members, **golden_members(manifest, [golden])})
    reached = check_foreign_program(path)
    path.unlink()
    return reached


def _runnable_here(emitted: EmittedVariant, graph: Graph) -> EmittedVariant:
    """Gives this host's program of the same graph in the place of one for another instruction set."""
    if emitted.lowered is None or why_not_here(emitted.variant) is None:
        return emitted
    return native_variant(lower_graph(graph, load_profile("this-machine").isa), graph.quantized)
