"""One variant an engine, all from the same graph: the members of a package and their entries in the manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import onnx_ir as ir

from edgekit.converters.contracts import BucketModel, LayerPlan, LoweredModel
from edgekit.converters.emitters.onnx_qdq import emit_onnx, options_for
from edgekit.converters.emitters.openvino_ir import emit_openvino
from edgekit.converters.lowering import LowerOptions, lower
from edgekit.converters.passes.shapes import specialise
from edgekit.errors import MissingDependencyError, UnsupportedError
from edgekit.package.manifest import Part, Variant
from edgekit.target import Profile

VariantPrecision = Literal["fp32", "int8", "mixed"]
_ENGINE_OF = {"native": "native", "onnx": "onnxruntime", "openvino": "openvino"}
_ALL_INT8 = 0.999


@dataclass(frozen=True)
class EmittedVariant:
    """A variant and its files.

    Attributes:
        variant: Entry for the manifest.
        members: Member name to contents.
        lowered: Of a native variant.
    """

    variant: Variant
    members: Mapping[str, bytes]
    lowered: LoweredModel | None = None

    def size_bytes(self) -> int:
        """Bytes of all its members."""
        return sum(map(len, self.members.values()))


@dataclass(frozen=True)
class Graph:
    """What variants are made of.

    Attributes:
        model: Float or QDQ graph, symbolic where there are buckets.
        buckets: Sizes of the inputs' symbols.
        plan: The quantizer's; empty in float.
        quantized: Whether the graph is in QDQ form.
        figures: The quantizer's numbers for the report.
    """

    model: ir.Model
    buckets: tuple[Mapping[str, int], ...]
    plan: tuple[LayerPlan, ...]
    quantized: bool
    figures: Mapping[str, float] = field(default_factory=dict)


def lower_graph(graph: Graph, isa: str) -> LoweredModel:
    """Lowers every bucket of a graph for an instruction set.

    Raises:
        UnsupportedError: An operator that neither the core nor ONNX Runtime can run.
    """
    buckets = [BucketModel(bucket, specialise(graph.model, bucket)) for bucket in graph.buckets]
    return lower(buckets, isa, LowerOptions(plan=graph.plan))


def native_variant(lowered: LoweredModel, quantized: bool) -> EmittedVariant:
    """Makes the native variant of a lowered graph."""
    name = f"native-{lowered.isa}"
    members = {f"variants/{name}/{part.file_name}": part.data for part in lowered.parts}
    parts = tuple(Part(p.kind, f"variants/{name}/{p.file_name}", p.inputs, p.outputs) for p in lowered.parts)
    share = int8_share(lowered)
    variant = Variant(name, "native", lowered.isa, tuple(members), parts, precision_of(share, quantized), share)
    return EmittedVariant(variant, members, lowered)


def int8_share(lowered: LoweredModel) -> float:
    """Share of multiply-accumulates in INT8."""
    total = sum(layer.macs for layer in lowered.layers)
    return sum(layer.macs for layer in lowered.layers if layer.actual == "int8") / total if total else 0.0


def precision_of(share: float, quantized: bool) -> VariantPrecision:
    """Names a precision by its share of INT8."""
    if not quantized:
        return "fp32"
    return "int8" if share >= _ALL_INT8 else "mixed"


def library_variants(
    graph: Graph, profile: Profile, engines: Sequence[str], share: float, notes: list[str]
) -> list[EmittedVariant]:
    """Makes the variants for ONNX Runtime and OpenVINO.

    Args:
        graph: The graph.
        profile: The device.
        engines: Those wanted: onnx, openvino.
        share: Share of INT8 for the manifest.
        notes: Gets a line for each variant that is left out, with the reason.
    """
    wanted = [name for name in engines if name in ("onnx", "openvino")]
    if not wanted:
        return []
    onnx_bytes = emit_onnx(graph.model, options_for(profile.cpu.architecture, profile.cpu.isa))
    precision = precision_of(share, graph.quantized)
    emitted = []
    for name in wanted:
        reason = _why_not(name, graph.model, profile)
        if reason is None:
            try:
                files = {"model.onnx": onnx_bytes} if name == "onnx" else emit_openvino(onnx_bytes)
            except (UnsupportedError, MissingDependencyError) as error:
                reason = str(error)
            else:
                members = {f"variants/{name}/{file}": data for file, data in files.items()}
                engine: Literal["onnxruntime", "openvino"] = "onnxruntime" if name == "onnx" else "openvino"
                variant = Variant(name, engine, None, tuple(members), (), precision, share)
                emitted.append(EmittedVariant(variant, members))
        if reason is not None:
            notes.append(f"variant {name} was left out: {reason}")
    return emitted


def _why_not(name: str, model: ir.Model, profile: Profile) -> str | None:
    if _ENGINE_OF[name] not in profile.engines:
        return f"{profile.id} does not run {_ENGINE_OF[name]}"
    opset, limit = model.graph.opset_imports.get("", 0), profile.limits.opset
    if name == "onnx" and limit is not None and opset > limit:
        return f"the model needs opset {opset}, {profile.id} takes at most {limit}"
    return None


def in_order(emitted: Sequence[EmittedVariant], profile: Profile) -> list[EmittedVariant]:
    """Sorts variants by the profile's preference."""
    rank = {engine: position for position, engine in enumerate(profile.engines)}
    return sorted(emitted, key=lambda e: rank.get(e.variant.engine, len(rank)))
