"""The values that the stages of a conversion hand to each other. pipeline.py draws the arrow between them.

The graph between the importer and the lowering is an onnx_ir.Model of opset 21 or newer. Two operators that ONNX has
not (or not at that opset) live in the domain "edgekit", each with a model-local function (passes/edgekit_ops.py), so
that the model stays a valid ONNX model at any step: Silu and RMSNormalization.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

Array = NDArray[np.generic]
Feeds = Mapping[str, Array]
Precision = Literal["int8", "fp32", "int"]
Progress = Callable[[str, float], None]
"""progress(stage, share): share of that stage that is done, 0..1."""


class CalibrationSet(Protocol):
    """Samples, one at a time; may be iterated again and again and gives the same samples each time."""

    def __len__(self) -> int:
        """Number of samples."""
        ...

    def __iter__(self) -> Iterator[dict[str, Array]]:
        """Yields feeds: input name to an array as the source model takes it, batch included."""
        ...


@dataclass(frozen=True)
class BucketModel:
    """The model for one set of fixed shapes.

    Attributes:
        dims: Symbolic dim to its size in this bucket; empty when all shapes were fixed.
        model: Static shapes and dtypes on every value.
    """

    dims: Mapping[str, int]
    model: ir.Model


@dataclass(frozen=True)
class LayerPlan:
    """What the quantizer decided for one node.

    Attributes:
        name: Node name.
        op: Operator.
        planned: int8, fp32, or int for nodes without arithmetic on activations (shape arithmetic, copies).
        reason: Why it is not int8; empty when it is.
    """

    name: str
    op: str
    planned: Precision
    reason: str = ""


@dataclass(frozen=True)
class QuantizedModel:
    """A model in QDQ form.

    Attributes:
        model: The graph with QuantizeLinear and DequantizeLinear.
        plan: One row a node of the float graph.
        notes: Lines for the user, such as too few samples.
        figures: Numbers for the report, name to value.
    """

    model: ir.Model
    plan: tuple[LayerPlan, ...]
    notes: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LayerAudit:
    """What became of one node (or several fused ones) after lowering.

    Attributes:
        name: Node names, joined by "+".
        op: Operator of the native program, or of the model where ONNX Runtime runs it.
        macs: Multiply-accumulates at the largest bucket.
        planned: As the quantizer decided.
        actual: As it runs.
        engine: native or onnxruntime.
        reason: Why actual differs from planned, or why it is not native; empty otherwise.
    """

    name: str
    op: str
    macs: int
    planned: Precision
    actual: Precision
    engine: Literal["native", "onnxruntime"] = "native"
    reason: str = ""


@dataclass(frozen=True)
class LoweredPart:
    """One step of a native variant, in order; see edgekit.package.manifest.Part.

    Attributes:
        kind: native or onnxruntime.
        file_name: Name inside the variant's folder, such as program.ekn.
        data: The file.
        inputs: Names of values read.
        outputs: Names of values given.
    """

    kind: Literal["native", "onnxruntime"]
    file_name: str
    data: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class LoweredModel:
    """A native variant.

    Attributes:
        isa: Name in enums.isa of program_schema.toml.
        parts: Steps in order.
        layers: The coverage audit.
        figures: Numbers for the report, such as arena_bytes and constants_bytes.
    """

    isa: str
    parts: tuple[LoweredPart, ...]
    layers: tuple[LayerAudit, ...]
    figures: Mapping[str, float] = field(default_factory=dict)
