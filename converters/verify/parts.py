"""Finds the parts of unlike meaning in each output: from the declared form, else from the graph's last Concat."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from edgekit.converters.passes.graph_edit import attribute, dim_of, producer, rank_of
from edgekit.converters.verify.accuracy import Part
from edgekit.package.specs import PostprocessSpec, TensorSpec

DFL_BINS = 16
"""Bins of each box side's distribution in raw YOLOv8 heads."""


def parts_of(model: ir.Model, outputs: Sequence[TensorSpec], postprocess: PostprocessSpec) -> list[Part]:
    """Cuts outputs into parts.

    Args:
        model: The float graph after all passes.
        outputs: As the package declares them.
        postprocess: Its form says what the outputs hold.

    Returns:
        At least one part an output, in order.
    """
    values = {str(v.name): v for v in model.graph.outputs}
    parts: list[Part] = []
    for spec in outputs:
        declared = _declared(spec, postprocess)
        parts.extend(declared or _from_concat(spec.name, values.get(spec.name)) or [Part(spec.name, spec.name)])
    return parts


def _declared(spec: TensorSpec, postprocess: PostprocessSpec) -> list[Part]:
    name, rank = spec.name, len(spec.shape)
    if postprocess.form == "yolov8" and rank == 3:
        return [Part(f"{name}/boxes", name, 1, 0, 4), Part(f"{name}/scores", name, 1, 4, _end(spec, 1))]
    if postprocess.form == "yolov5" and rank == 3:
        return [Part(f"{name}/boxes", name, 2, 0, 4), Part(f"{name}/scores", name, 2, 4, _end(spec, 2))]
    if postprocess.form == "yolov8-heads" and rank == 4:
        cut = 4 * DFL_BINS
        return [Part(f"{name}/distances", name, 1, 0, cut), Part(f"{name}/logits", name, 1, cut, _end(spec, 1))]
    return []


def _end(spec: TensorSpec, axis: int) -> int:
    size = spec.shape[axis]
    return size if isinstance(size, int) else 1 << 30


def _from_concat(name: str, value: ir.Value | None) -> list[Part]:
    node = producer(value, "Concat")
    rank = rank_of(value)
    if node is None or rank is None:
        return []
    axis = attribute(node, "axis", 0) % rank
    sizes = [dim_of(v, axis) for v in node.inputs]
    if any(size is None for size in sizes) or len(sizes) > 16:
        return []
    parts, start = [], 0
    for index, size in enumerate(sizes):
        stop = start + int(size or 0)
        parts.append(Part(f"{name}/{index}", name, axis, start, stop))
        start = stop
    return parts
