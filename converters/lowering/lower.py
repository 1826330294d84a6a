"""From a quantized or float model to the parts of a native variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from edgekit.converters.contracts import BucketModel, LayerAudit, LayerPlan, LoweredModel, LoweredPart
from edgekit.converters.lowering.audit import foreign_rows, native_rows
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.emission import close_constants, emit_plan
from edgekit.converters.lowering.native_graph import lower_graph, unsupported_nodes
from edgekit.converters.lowering.partition import Segment, extract, partition
from edgekit.converters.lowering.prepare import prepared
from edgekit.converters.lowering.registry import NotLowerableError
from edgekit.errors import InternalError, UnsupportedError
from edgekit.package.program import ConstantPool, Plan, Program
from edgekit.package.program_codec import write_program


@dataclass(frozen=True)
class LowerOptions:
    """How to lower.

    Attributes:
        plan: What the quantizer decided, to report planned against actual precision.
        allow_onnxruntime: Whether nodes without a native kernel may go to ONNX Runtime.
    """

    plan: tuple[LayerPlan, ...] = ()
    allow_onnxruntime: bool = True


@dataclass
class _Result:
    """Parts and figures as they grow."""

    parts: list[LoweredPart] = field(default_factory=list)
    layers: list[LayerAudit] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def raise_figure(self, name: str, number: float) -> None:
        """Keeps the largest: parts run one after the other."""
        self.figures[name] = max(self.figures.get(name, 0.0), number)


def lower(buckets: Sequence[BucketModel], isa: str, options: LowerOptions | None = None) -> LoweredModel:
    """Lowers a model for one instruction set.

    Args:
        buckets: The same graph for each set of fixed shapes, smallest first; plan i of every program is bucket i.
        isa: Name in enums.isa of program_schema.toml.
        options: See LowerOptions.

    Returns:
        Parts in order, the audit of the largest bucket, and figures: arena_bytes, arena_lower_bound_bytes,
        constants_bytes, native_ops.

    Raises:
        UnsupportedError: An operator runs neither natively nor in ONNX Runtime, or only natively was allowed.
    """
    options = options or LowerOptions()
    models = [prepared(bucket.model) for bucket in buckets]
    reasons: dict[str, str] = {}
    for model in models:
        reasons.update({node.name or "": why for node, why in unsupported_nodes(model.graph, isa).items()})
    if reasons and not options.allow_onnxruntime:
        name, why = next(iter(reasons.items()))
        raise UnsupportedError("operators without a native kernel", where=name, got=why)
    plan = {layer.name: layer for layer in options.plan}
    result = _Result()
    if not reasons:
        _add_native(result, [model.graph for model in models], isa, plan)
    else:
        _add_segments(result, models, (isa, reasons, plan))
    return LoweredModel(isa, tuple(result.parts), tuple(result.layers), result.figures)


def _add_segments(
    result: _Result, models: list[ir.Model], how: tuple[str, Mapping[str, str], Mapping[str, LayerPlan]]
) -> None:
    isa, reasons, plan = how
    cuts = [partition(model.graph, frozenset(reasons)) for model in models]
    if len({tuple((s.kind, _names(s.inputs), _names(s.outputs)) for s in cut) for cut in cuts}) != 1:
        raise UnsupportedError(
            "shape buckets differ in what ONNX Runtime must run", where=next(iter(reasons)), hint="convert one shape"
        )
    for position, segment in enumerate(cuts[-1]):
        parts = [extract(model, cut[position]) for model, cut in zip(models, cuts, strict=True)]
        if segment.kind == "native":
            _add_native(result, [part.graph for part in parts], isa, plan)
        else:
            result.layers += foreign_rows(segment.nodes, reasons, plan)
            result.parts.append(_onnx_part(parts, segment, f"part{position}.onnx"))


def _names(values: Sequence[ir.Value]) -> tuple[str, ...]:
    return tuple(value.name or "" for value in values)


def _onnx_part(parts: list[ir.Model], segment: Segment, file_name: str) -> LoweredPart:
    """The ONNX model of a step; with several buckets its shapes are left open."""
    if len(parts) > 1:
        for part in parts:
            for value in (*part.graph.inputs, *part.graph.outputs):
                value.shape = None if value.shape is None else ir.Shape([None] * len(value.shape))
            for node in part.graph:
                for output in node.outputs:
                    output.shape = None
    files = {ir.to_proto(part).SerializeToString(deterministic=True) for part in parts}
    if len(files) != 1:
        raise UnsupportedError(
            "a step of ONNX Runtime differs between shape buckets",
            where=segment.nodes[0].name,
            hint="convert one shape",
        )
    return LoweredPart("onnxruntime", file_name, files.pop(), _names(segment.inputs), _names(segment.outputs))


def _add_native(result: _Result, graphs: list[ir.Graph], isa: str, plan: Mapping[str, LayerPlan]) -> None:
    pool = ConstantPool()
    plans: list[Plan] = []
    build: PlanBuilder | None = None
    for source in graphs:
        try:
            build = lower_graph(source, isa)
            emitted, memory = emit_plan(build, pool)
        except NotLowerableError as error:
            raise InternalError("a node that was found native is not", where=source.name, got=error) from error
        plans.append(emitted)
        result.raise_figure("arena_bytes", memory.arena_bytes)
        result.raise_figure("arena_lower_bound_bytes", memory.lower_bound_bytes)
    assert build is not None
    section = close_constants(plans, pool)
    natives = sum(part.kind == "native" for part in result.parts)
    name = "program.ekn" if natives == 0 else f"program{natives}.ekn"
    inputs, outputs = _names(graphs[-1].inputs), _names(graphs[-1].outputs)
    result.parts.append(LoweredPart("native", name, write_program(Program(isa, plans, section)), inputs, outputs))
    result.layers += native_rows(build, plan)
    result.figures["constants_bytes"] = result.figures.get("constants_bytes", 0.0) + len(section)
    result.figures["native_ops"] = result.figures.get("native_ops", 0.0) + len(plans[-1].ops)
