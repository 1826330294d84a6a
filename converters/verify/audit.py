"""Coverage: what share of the work runs in INT8, and where that differs from the plan, and why."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgekit.converters.contracts import LayerAudit, LayerPlan
from edgekit.errors import InternalError


class LayerRow(msgspec.Struct, frozen=True):
    """One row of the report; see contracts.LayerAudit."""

    name: str
    op: str
    macs: int
    planned: str
    actual: str
    engine: str
    reason: str


class Coverage(msgspec.Struct, frozen=True):
    """What runs how.

    Attributes:
        macs: Multiply-accumulates of one inference at the largest bucket.
        int8_macs_share: Share of them in INT8, 0..1.
        native_macs_share: Share of them in the native core, 0..1.
        onnxruntime_layers: Names of the layers that ONNX Runtime runs.
        differing: Layers whose precision is not the planned one, with the reason.
        layers: All.
    """

    macs: int
    int8_macs_share: float
    native_macs_share: float
    onnxruntime_layers: tuple[str, ...]
    differing: tuple[LayerRow, ...]
    layers: tuple[LayerRow, ...]


def audit(layers: Sequence[LayerAudit]) -> Coverage:
    """Adds up the layers of a lowered model."""
    rows = tuple(LayerRow(r.name, r.op, r.macs, r.planned, r.actual, r.engine, r.reason) for r in layers)
    total = sum(row.macs for row in rows)
    int8 = sum(row.macs for row in rows if row.actual == "int8")
    native = sum(row.macs for row in rows if row.engine == "native")
    return Coverage(
        macs=total,
        int8_macs_share=int8 / total if total else 0.0,
        native_macs_share=native / total if total else 1.0,
        onnxruntime_layers=tuple(row.name for row in rows if row.engine == "onnxruntime"),
        differing=tuple(row for row in rows if row.planned != row.actual and "int" not in (row.planned, row.actual)),
        layers=rows,
    )


def check_overrides(layers: Sequence[LayerAudit], plan: Sequence[LayerPlan], keep_float: Sequence[str]) -> None:
    """Verifies that every layer the user asked to stay float does (a fault of other toolchains: silently ignored).

    Raises:
        InternalError: One runs in INT8.
    """
    wanted = set(keep_float)
    planned = {row.name: row.planned for row in plan}
    for name in wanted:
        if planned.get(name) == "int8":
            raise InternalError("a layer asked to stay float was planned in INT8", where=name)
    for row in layers:
        if row.actual == "int8" and wanted & {row.name, *row.name.split("+")}:
            raise InternalError("a layer asked to stay float runs in INT8", where=row.name)
