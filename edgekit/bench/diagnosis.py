"""Says why a model is not faster, and what to try next, cheapest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgekit.bench.roofline import Bound, LayerBound, is_float, short_name

STAGE_SHARE = 0.25  # a stage outside inference with more of the frame's time than this is worth a word
FLOAT_SHARE = 0.20
TOP_LAYERS = 3


@dataclass(frozen=True)
class Finding:
    """One cause of lost time.

    Attributes:
        cause: compute, memory, overhead, preprocess, postprocess, capture, queue or precision.
        share: Share of the time it explains, 0..1.
        text: One sentence with numbers.
        advice: What to try, one sentence.
    """

    cause: str
    share: float
    text: str
    advice: str


_ADVICE = {
    "compute": "more threads, or a smaller input or network",
    "memory": "fuse or shrink activations; more threads help little",
    "overhead": "small layers: batch or merge them, or use fewer threads",
    "unknown": "the engine does not tell its layers' arithmetic; try --engine native",
}


def diagnose(layers: Sequence[LayerBound], stages_ms: Mapping[str, float]) -> list[Finding]:
    """Finds where the time goes.

    Args:
        layers: Layers against the roofline; may be empty.
        stages_ms: Milliseconds a frame by stage; stages that run beside inference count too.

    Returns:
        Findings, the greatest share first.
    """
    findings = _layer_findings(layers) + _stage_findings(stages_ms)
    return sorted(findings, key=lambda finding: -finding.share)


def _layer_findings(layers: Sequence[LayerBound]) -> list[Finding]:
    total_us = sum(entry.layer.time_us for entry in layers)
    if total_us <= 0:
        return []
    findings = []
    bounds: tuple[Bound, ...] = ("compute", "memory", "overhead", "unknown")
    for bound in bounds:
        rows = sorted((e for e in layers if e.bound == bound), key=lambda e: -e.layer.time_us)
        spent_us = sum(entry.layer.time_us for entry in rows)
        if not rows or spent_us / total_us < 0.05:
            continue
        reached = sum(max(e.compute_us, e.memory_us) for e in rows) / spent_us
        names = ", ".join(short_name(entry.layer.name) for entry in rows[:TOP_LAYERS])
        text = f"{spent_us / total_us:.0%} of inference in {len(rows)} layers bound by {bound}"
        text += f", at {reached:.0%} of the roofline; longest: {names}"
        findings.append(Finding(bound, spent_us / total_us, text, _still_float(bound, rows) + _ADVICE[bound]))
    float_us = sum(e.layer.time_us for e in layers if is_float(e.layer) and e.layer.macs > 0)
    if float_us / total_us > FLOAT_SHARE:
        text = f"{float_us / total_us:.0%} of inference in float32 products"
        findings.append(
            Finding("precision", float_us / total_us, text, "convert with --precision int8 or auto and --calib")
        )
    return findings


def _still_float(bound: Bound, rows: Sequence[LayerBound]) -> str:
    """The advice that comes first where it is of use: the longest layers that INT8 would speed up."""
    found = [short_name(entry.layer.name) for entry in rows if is_float(entry.layer)]
    if not found or bound not in ("compute", "memory"):
        return ""
    gain = " (a quarter of the traffic)" if bound == "memory" else ""
    names = "" if len(found) == len(rows) else f" what is still float: {', '.join(found[:TOP_LAYERS])};"
    return f"quantize to INT8{gain}{names or ','} then "


def _stage_findings(stages_ms: Mapping[str, float]) -> list[Finding]:
    total_ms = sum(stages_ms.values())
    if total_ms <= 0:
        return []
    advice = {
        "capture": "the source is the limit: lower the camera's resolution or use hardware decoding",
        "preprocess": "let the camera deliver a size nearer to the network's, or NV12 frames",
        "queue": "frames wait: use live mode, or a faster engine",
        "postprocess": "raise the score threshold, so that fewer boxes are kept",
    }
    return [
        Finding(stage, ms / total_ms, f"{stage} takes {ms:.2f} ms of {total_ms:.2f} ms a frame", advice[stage])
        for stage, ms in stages_ms.items()
        if stage in advice and ms / total_ms > STAGE_SHARE
    ]
