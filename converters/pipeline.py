"""The one arrow of a conversion: load -> passes -> quantize -> lower -> emit -> verify -> package.

Nothing is written at the output's path before all of it has succeeded; the package then appears there whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgekit import __version__
from edgekit.converters.labels import LABELLED_TASKS, check_label_count, given_labels, metadata_labels
from edgekit.converters.options import ConvertOptions, recipe_toml
from edgekit.converters.prepare import Prepared, is_quantized, prepare
from edgekit.converters.preprocessing import resolve_postprocess
from edgekit.converters.quantization import QuantizeOptions, quantize
from edgekit.converters.task_outputs import check_task_outputs
from edgekit.converters.variants import (
    EmittedVariant,
    Graph,
    in_order,
    int8_share,
    library_variants,
    lower_graph,
    native_variant,
)
from edgekit.converters.verification import Verified, verify
from edgekit.converters.verify.audit import audit, check_overrides
from edgekit.converters.verify.gate import is_flat
from edgekit.converters.verify.measure import report_progress
from edgekit.converters.verify.report import REPORT_FORMAT, PassRow, PlanRow, Report, report_json
from edgekit.converters.verify.report_html import report_html
from edgekit.errors import UnsupportedError, UsageError
from edgekit.package.golden import golden_members
from edgekit.package.manifest import FORMAT_MAJOR, FORMAT_MINOR, Manifest
from edgekit.package.specs import PostprocessSpec
from edgekit.package.storage import check_output
from edgekit.package.writer import write_package
from edgekit.records import replace
from edgekit.target import Profile, load_profile

__all__ = ["ConvertOptions", "ConvertResult", "convert"]


@dataclass(frozen=True)
class ConvertResult:
    """What a conversion gave.

    Attributes:
        output: The package.
        manifest: As written.
        report: As in report.json.
        notes: Lines for the user.
    """

    output: Path
    manifest: Manifest
    report: Report
    notes: tuple[str, ...]


def convert(options: ConvertOptions) -> ConvertResult:
    """Converts a model for a device.

    Raises:
        InputError: A model, option or sample is wrong (exit code 2).
        GateError: The package would miss its accuracy gate (3); nothing is written.
        EnvironmentFaultError: A library, device or disk space is missing (4).
    """
    _check_output(options)
    postprocess = resolve_postprocess(options.preprocess, options.task, options.form)
    given = given_labels(options.labels, postprocess)
    profile = load_profile(options.device)
    report_progress(options.progress, "import")(0.0)
    prepared = prepare(options)
    labels = _labels(given, prepared, postprocess)
    graph = _graph(options, prepared)
    emitted = _emit(options, profile, graph, prepared)
    manifest = replace(_manifest(profile, prepared, emitted), postprocess=postprocess, labels=labels)
    verified = verify(options, graph, prepared, manifest, emitted)
    report = _report(options, profile, graph, prepared, verified)
    return _package(options, profile, prepared, manifest, verified, report)


def _check_output(options: ConvertOptions) -> None:
    named = (options.model, options.calibration, options.labels, options.preprocess, options.device)
    check_output(options.output, [Path(each) for each in named if isinstance(each, (str, Path))])


def _labels(given: tuple[str, ...] | None, prepared: Prepared, postprocess: PostprocessSpec) -> tuple[str, ...]:
    """Labels that fit the model, of those given or else of its metadata."""
    classes = check_task_outputs(postprocess, prepared.outputs)
    if given is not None:
        check_label_count(given, classes, postprocess)
        if given and postprocess.task not in LABELLED_TASKS:
            note = f"--labels is of no use to task {postprocess.task}, whose results name no class"
            prepared.notes.append(f"{note}; give --task {' or '.join(LABELLED_TASKS)} if the model finds classes")
        return given
    found = metadata_labels(prepared.imported.metadata, postprocess)
    try:
        check_label_count(found, classes, postprocess)
    except UsageError as error:
        prepared.notes.append(f"the labels in the model's metadata were left out: {error}")
        return ()
    return found


def _graph(options: ConvertOptions, prepared: Prepared) -> Graph:
    """Quantizes, or leaves the graph in float."""
    if is_quantized(prepared.model):
        return Graph(prepared.model, prepared.input_buckets, (), quantized=True)
    if options.precision != "fp32" and prepared.calibration is not None:
        chosen = QuantizeOptions(
            seed=options.seed,
            precision="int8" if options.precision == "int8" else "auto",
            method=options.method,
            keep_float=options.keep_float,
            progress=options.progress,
        )
        quantized = quantize(prepared.model, prepared.calibration, chosen)
        prepared.notes.extend(quantized.notes)
        return Graph(
            quantized.model, prepared.input_buckets, quantized.plan, quantized=True, figures=dict(quantized.figures)
        )
    if options.precision == "auto":
        prepared.notes.append("no calibration data: the package is in float; give --calib for INT8")
    return Graph(prepared.model, prepared.input_buckets, (), quantized=False)


def _emit(options: ConvertOptions, profile: Profile, graph: Graph, prepared: Prepared) -> list[EmittedVariant]:
    report = report_progress(options.progress, "emit")
    emitted: list[EmittedVariant] = []
    share = float(graph.quantized)
    if "native" in options.engines:
        lowered = lower_graph(graph, profile.isa)
        check_overrides(lowered.layers, graph.plan, options.keep_float)
        _check_arena(profile, lowered.figures.get("arena_bytes", 0.0))
        share = int8_share(lowered)
        emitted.append(native_variant(lowered, graph.quantized))
    report(0.5)
    emitted.extend(library_variants(graph, profile, options.engines, share, prepared.notes))
    report(1.0)
    if not emitted:
        raise UnsupportedError("no variant can be made", where=options.model, got="; ".join(prepared.notes))
    return in_order(emitted, profile)


def _check_arena(profile: Profile, arena_bytes: float) -> None:
    limit = profile.limits.arena_mib
    if limit is not None and arena_bytes > limit * 2**20:
        raise UnsupportedError(
            "the model needs more memory for activations than the device has",
            where=profile.id,
            got=f"{arena_bytes / 2**20:.1f} MiB",
            expected=f"at most {limit} MiB",
            hint="convert it for smaller inputs with --shape",
        )


def _manifest(profile: Profile, prepared: Prepared, emitted: Sequence[EmittedVariant]) -> Manifest:
    return Manifest(
        format_major=FORMAT_MAJOR,
        format_minor=FORMAT_MINOR,
        converter_version=__version__,
        source_sha256=prepared.imported.source_sha256,
        source_name=prepared.imported.source_name,
        profile=profile.id,
        profile_sha256=profile.sha256,
        inputs=prepared.inputs,
        outputs=prepared.outputs,
        variants=tuple(e.variant for e in emitted),
        members={},
        buckets=prepared.buckets,
        preprocess=prepared.preprocess,
    )


def _report(options: ConvertOptions, profile: Profile, graph: Graph, prepared: Prepared, verified: Verified) -> Report:
    figures = {**graph.figures}
    if verified.coverage_source is not None:
        figures |= verified.coverage_source.figures
    if verified.foreign_sqnr_db is not None:
        figures["foreign_program_sqnr_db"] = verified.foreign_sqnr_db
    return Report(
        format=REPORT_FORMAT,
        converter_version=__version__,
        source_name=prepared.imported.source_name,
        source_sha256=prepared.imported.source_sha256,
        profile=profile.id,
        isa=profile.isa,
        precision=verified.kept[0].variant.precision,
        calibration_samples=len(prepared.calibration) if graph.quantized and prepared.calibration else 0,
        held_out_samples=len(prepared.held_out),
        float_latency_ms=verified.float_latency_ms,
        passes=tuple(PassRow(**vars(record)) for record in prepared.records),
        plan=tuple(PlanRow(row.name, row.op, row.planned, row.reason) for row in graph.plan),
        coverage=audit(verified.coverage_source.layers) if verified.coverage_source is not None else None,
        engines=tuple(verified.engines),
        figures=figures,
        notes=tuple(prepared.notes),
    )


def _metrics(report: Report) -> dict[str, float]:
    """Numbers for the manifest: the worst part of each engine's outputs, agreement, latency."""
    metrics = {
        "held_out_samples": float(report.held_out_samples),
        "calibration_samples": float(report.calibration_samples),
    }
    for engine in report.engines:
        if engine.missed:
            continue
        judged = [part.sqnr_db for part in engine.parts if not is_flat(part)]
        if judged:
            metrics[f"{engine.variant}.min_sqnr_db"] = min(judged)
        metrics[f"{engine.variant}.host_latency_ms"] = engine.latency_ms
        if engine.agreement is not None:
            metrics[f"{engine.variant}.agreement"] = engine.agreement
    if report.coverage is not None:
        metrics["int8_macs_share"] = report.coverage.int8_macs_share
    return metrics


def _package(
    options: ConvertOptions, profile: Profile, prepared: Prepared, draft: Manifest, verified: Verified, report: Report
) -> ConvertResult:
    manifest = replace(draft, variants=tuple(e.variant for e in verified.kept), metrics=_metrics(report))
    members: dict[str, bytes | Path] = {name: data for e in verified.kept for name, data in e.members.items()}
    members |= golden_members(manifest, [verified.golden], verified.golden_floor_db)
    members["report.json"] = report_json(report)
    members["report.html"] = report_html(report)
    members["recipe.toml"] = recipe_toml(options, prepared.imported.source_sha256, __version__)
    limit, size = profile.limits.package_mib, sum(len(m) for m in members.values() if isinstance(m, bytes))
    if limit is not None and size > limit * 2**20:
        raise UnsupportedError(
            "the package is larger than the device takes",
            where=profile.id,
            got=f"{size / 2**20:.1f} MiB",
            expected=f"at most {limit} MiB",
            hint="write fewer variants with --engine",
        )
    written = write_package(options.output, manifest, members)
    report_progress(options.progress, "package")(1.0)
    return ConvertResult(options.output, written, report, tuple(prepared.notes))
