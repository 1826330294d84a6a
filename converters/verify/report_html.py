"""report.html: the report for people, one file without scripts or anything from elsewhere."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from edgekit.converters.verify.accuracy import PartAccuracy
from edgekit.converters.verify.report import EngineReport, Report

_STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;
color:#1c1e21;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:100%;margin:.5rem 0}
th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid #dde1e6}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.bad{color:#b3261e;font-weight:600}
.note{background:#fff7e0;padding:.4rem .7rem;margin:.3rem 0;border-left:3px solid #e0a800}
.bar{background:#e8ebef;height:.6rem}.bar div{background:#2f6f4f;height:100%}
@media(prefers-color-scheme:dark){body{background:#16181b;color:#e3e5e8}th,td{border-color:#33373d}
.note{background:#3a3320}.bar{background:#33373d}}
"""
_TOP_LAYERS = 400


def report_html(report: Report) -> bytes:
    """Renders a report."""
    sections = [
        _summary(report),
        *(f'<p class="note">{html.escape(note)}</p>' for note in report.notes),
        "<h2>Engines against the float model</h2>",
        _engines(report.engines),
        *(_parts(engine) for engine in report.engines),
        _coverage(report),
        "<h2>Plan</h2>" + _table(("layer", "operator", "planned", "reason"), _plan_rows(report)) if report.plan else "",
        "<h2>Passes</h2>",
        _table(("pass", "changes", "nodes", "largest error", "s"), _pass_rows(report), numbers=(1, 2, 3, 4)),
    ]
    title = html.escape(f"{report.source_name} for {report.profile}")
    head = f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    head += f"<style>{_STYLE}</style></head>"
    return f"{head}<body><h1>{title}</h1>{''.join(sections)}</body></html>\n".encode()


def _summary(report: Report) -> str:
    facts = [
        ("precision", report.precision),
        ("instruction set", report.isa),
        ("calibration samples", str(report.calibration_samples)),
        ("held-out samples", str(report.held_out_samples)),
        ("float model in ONNX Runtime", f"{report.float_latency_ms:.2f} ms"),
        ("source SHA-256", report.source_sha256),
        ("edgekit", report.converter_version),
    ]
    return _table(("", ""), facts)


def _engines(engines: Iterable[EngineReport]) -> str:
    rows = [
        (
            e.variant,
            e.measured_on,
            str(e.samples),
            "" if e.agreement is None else f"{e.agreement:.2f}",
            f"{e.latency_ms:.2f}",
            f"{e.size_bytes / 2**20:.2f}",
            e.missed or "passes",
        )
        for e in engines
    ]
    names = ("variant", "measured on", "samples", "agreement / 100", "median ms", "MiB", "gate")
    return _table(names, rows, numbers=(2, 3, 4, 5))


def _parts(engine: EngineReport) -> str:
    names = ("output", "SQNR dB", "cosine", "largest error", "range", "worst sample", "worst dB", "P99 dB")
    rows = [_part_row(part) for part in engine.parts]
    return f"<h2>Outputs: {html.escape(engine.variant)}</h2>" + _table(names, rows, numbers=(1, 2, 3, 6, 7))


def _part_row(part: PartAccuracy) -> tuple[str, ...]:
    return (
        part.name,
        f"{part.sqnr_db:.1f}",
        f"{part.cosine:.5f}",
        f"{part.max_abs:.4g}",
        f"{part.reference_min:.4g} to {part.reference_max:.4g}",
        part.worst_sample,
        f"{part.worst_sqnr_db:.1f}",
        f"{part.p99_sqnr_db:.1f}",
    )


def _coverage(report: Report) -> str:
    coverage = report.coverage
    if coverage is None:
        return ""
    share = coverage.int8_macs_share
    heading = f"<h2>Coverage: {share:.1%} of {coverage.macs / 1e6:.1f} million MACs in INT8</h2>"
    bar = f'<div class="bar"><div style="width:{share * 100:.1f}%"></div></div>'
    outside = ", ".join(coverage.onnxruntime_layers) or "none"
    rows = [
        (row.name, row.op, f"{row.macs / 1e6:.2f}", row.planned, row.actual, row.engine, row.reason)
        for row in coverage.layers[:_TOP_LAYERS]
    ]
    names = ("layer", "operator", "million MACs", "planned", "actual", "engine", "reason")
    left_out = len(coverage.layers) - len(rows)
    more = f"<p>{left_out} further layers are in report.json.</p>" if left_out > 0 else ""
    return f"{heading}{bar}<p>Run by ONNX Runtime: {html.escape(outside)}</p>{_table(names, rows, numbers=(2,))}{more}"


def _plan_rows(report: Report) -> list[tuple[str, ...]]:
    return [(row.name, row.op, row.planned, row.reason) for row in report.plan[:_TOP_LAYERS]]


def _pass_rows(report: Report) -> list[tuple[str, ...]]:
    return [
        (
            row.name + (" (skipped)" if row.skipped else ""),
            str(row.changes),
            f"{row.nodes_before} → {row.nodes_after}",
            "" if row.max_error is None else f"{row.max_error:.1e}",
            f"{row.seconds:.2f}",
        )
        for row in report.passes
    ]


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    def cells(tag: str, values: Sequence[str]) -> str:
        marks = (' class="n"' if i in numbers else "" for i in range(len(values)))
        return "".join(f"<{tag}{m}>{html.escape(v)}</{tag}>" for m, v in zip(marks, values, strict=True))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><tr>{cells('th', names)}</tr>{body}</table>"
