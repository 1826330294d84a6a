"""The first half of the arrow: read the model, fix its shapes, open the samples, run the passes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from edgekit.converters.calibration_data import CalibrationData, CalibrationInputs, open_calibration
from edgekit.converters.contracts import Array
from edgekit.converters.float_reference import FloatReference
from edgekit.converters.importers import ImportedModel, import_model
from edgekit.converters.options import ConvertOptions
from edgekit.converters.passes._pass import NumericGate, PassContext, PassRecord, check_skippable, run_passes
from edgekit.converters.passes.graph_edit import all_nodes, is_op
from edgekit.converters.passes.order import NORMALISE, OPTIMISE
from edgekit.converters.passes.shapes import (
    ShapePlan,
    check_value_sizes,
    fix_inputs,
    infer_shapes,
    plan_shapes,
    specialise,
)
from edgekit.converters.preprocessing import resolve_preprocess
from edgekit.converters.verify.signal import most_telling_sample, refuse_flat
from edgekit.errors import ModelError, UnsupportedError
from edgekit.package.specs import Layout, PreprocessSpec, TensorSpec

HELD_OUT_SHARE = 0.2
MAX_HELD_OUT = 64
RANDOM_SAMPLES = 4
FEW_HELD_OUT = 8
_GATE_SAMPLES = 2
_NUMPY_NAMES = {"FLOAT": "float32", "DOUBLE": "float64"}
_DTYPES = ("float32", "uint8", "int8", "int32", "int64", "bool")


@dataclass(frozen=True)
class Prepared:
    """A float graph ready to be quantized and lowered.

    Attributes:
        imported: The model as read; its graph has been rewritten and is `model`.
        model: After all passes; symbolic where there are buckets.
        reference: The float model as read, in ONNX Runtime.
        input_buckets: Sizes of the inputs' symbols, one entry a bucket, as specialise() takes them.
        inputs, outputs: As run() takes and gives them.
        buckets: Sizes of all symbols, outputs' included, for the manifest.
        preprocess: For pictures.
        calibration: Samples to calibrate with; None in float.
        held_out: Samples to verify with: held out from calibration, or random.
        random_samples: Whether held_out are random numbers.
        golden: Which of held_out serves the package's self-test.
        records: What each pass did.
        notes: Lines for the user.
    """

    imported: ImportedModel
    model: ir.Model
    reference: FloatReference
    input_buckets: tuple[Mapping[str, int], ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    buckets: tuple[dict[str, int], ...]
    preprocess: PreprocessSpec | None
    calibration: CalibrationData | None
    held_out: CalibrationData
    random_samples: bool
    golden: int
    records: tuple[PassRecord, ...]
    notes: list[str] = field(default_factory=list)


def prepare(options: ConvertOptions) -> Prepared:
    """Reads the model and runs the passes.

    Raises:
        ModelError: The model can't be read or run.
        UsageError: An option does not fit the model.
        CalibrationError: The samples don't.
        InternalError: A pass changed the results.
    """
    check_skippable((*NORMALISE, *OPTIMISE), options.skip_passes)
    preprocess = resolve_preprocess(options.preprocess, options.preprocess_overrides)
    imported = import_model(options.model)
    model = imported.model
    if not model.graph.outputs:
        raise ModelError("the model has no outputs", where=options.model)
    context = PassContext()
    # A QDQ model is read plainly: fused INT8 kernels of ONNX Runtime may saturate on this CPU.
    reference = FloatReference(model, optimised=not is_quantized(model))
    plain = FloatReference(model)
    _drop_overridable_inputs(model)
    plan = plan_shapes(model, options.shapes, context.notes)
    check_value_sizes(model, plan)
    inputs = _input_specs(model, plan, preprocess)
    calibration, held_out = _samples(options, inputs, plan, preprocess)
    random_samples = calibration is None
    if calibration is not None:
        context.notes.extend(calibration.notes)
        if len(calibration) == 1:
            context.notes.append("one sample serves both calibration and verification: the figures are too kind")
    _note_quantized(model, context.notes)
    gate = NumericGate(plain, [held_out.load(i) for i in held_out.indices[:_GATE_SAMPLES]])
    if not gate.finite:
        context.notes.append("the float model itself gives NaN or infinity on a sample; engines are held to the same")
    golden = _golden(reference, held_out, random_samples, context.notes)
    records = run_passes(model, NORMALISE, gate, context, _in(NORMALISE, options.skip_passes), options.progress)
    fix_inputs(model, plan)
    records += run_passes(model, OPTIMISE, gate, context, _in(OPTIMISE, options.skip_passes), options.progress)
    infer_shapes(model)
    outputs, buckets = _output_specs(model, plan)
    return Prepared(
        imported,
        model,
        reference,
        plan.buckets,
        inputs,
        outputs,
        buckets,
        preprocess,
        calibration,
        held_out,
        random_samples,
        golden,
        tuple(records),
        context.notes,
    )


def _golden(reference: FloatReference, held_out: CalibrationData, random: bool, notes: list[str]) -> int:
    golden, telling = most_telling_sample(reference.run, held_out)
    if not telling and not random:
        raise refuse_flat()
    if not telling:
        notes.append("random numbers move no output of the model: its accuracy was not tested; give --calib")
    if not random and len(held_out) < FEW_HELD_OUT:
        enough = round(FEW_HELD_OUT / HELD_OUT_SHARE)
        notes.append(f"accuracy rests on {len(held_out)} held-out samples; give {enough} in all for surer figures")
    return golden


def is_quantized(model: ir.Model) -> bool:
    """Tells whether a model came in QDQ form already."""
    return any(is_op(node, "QuantizeLinear") for node in all_nodes(model))


def _note_quantized(model: ir.Model, notes: list[str]) -> None:
    if is_quantized(model):
        notes.append("the model came with QuantizeLinear nodes: it is converted as it is, not quantized again")


def _in(passes: Sequence[object], names: Sequence[str]) -> list[str]:
    known = {getattr(p, "name", "") for p in passes}
    return [name for name in names if name in known]


def _drop_overridable_inputs(model: ir.Model) -> None:
    """Initializers that are also inputs keep their value: callers never feed weights."""
    for value in [v for v in model.graph.inputs if v.is_initializer()]:
        model.graph.inputs.remove(value)


def _input_specs(model: ir.Model, plan: ShapePlan, preprocess: PreprocessSpec | None) -> tuple[TensorSpec, ...]:
    specs = []
    for value in model.graph.inputs:
        name = str(value.name)
        shape = tuple(plan.symbols.get((name, axis), size) for axis, size in enumerate(plan.shapes[0][name]))
        specs.append(TensorSpec(name, _dtype(value), shape, _layout(shape, preprocess)))
    return tuple(specs)


def _layout(shape: tuple[int | str, ...], preprocess: PreprocessSpec | None) -> Layout:
    """A picture input is known by its channels; without a preprocessing there are no pictures."""
    if preprocess is None or len(shape) != 4:
        return "plain"
    channels = 1 if preprocess.color == "gray" else 3
    if shape[1] == channels:
        return "nchw"
    return "nhwc" if shape[3] == channels else "plain"


def _dtype(value: ir.Value) -> str:
    name = "unknown" if value.dtype is None else _NUMPY_NAMES.get(value.dtype.name, value.dtype.name.lower())
    if name not in _DTYPES:
        raise UnsupportedError(
            "this dtype can't cross run()",
            where=value.name,
            got=name,
            expected=", ".join(_DTYPES),
            hint="export the model in float32",
        )
    return name


def _samples(
    options: ConvertOptions, inputs: tuple[TensorSpec, ...], plan: ShapePlan, preprocess: PreprocessSpec | None
) -> tuple[CalibrationData | None, CalibrationData]:
    if options.calibration is None:
        return None, random_samples(inputs, plan.shapes, options.seed)
    wanted = CalibrationInputs(inputs, plan.buckets if plan.symbols else (), preprocess)
    data = open_calibration(options.calibration, wanted, options.max_samples, options.seed)
    return data.split(HELD_OUT_SHARE, MAX_HELD_OUT, options.seed)


def random_samples(
    inputs: Sequence[TensorSpec], shapes: Sequence[Mapping[str, tuple[int, ...]]], seed: int
) -> CalibrationData:
    """Makes samples of uniform numbers in 0..1 (integers: 0 or 1), by turns in the shape of each bucket.

    They check that an engine computes what the float model does; nothing is ever calibrated with them.
    """

    def load(index: int) -> dict[str, Array]:
        random = np.random.default_rng([seed, index])
        feeds: dict[str, Array] = {}
        for spec in inputs:
            shape = shapes[index % len(shapes)][spec.name]
            values = random.random(shape) if spec.dtype == "float32" else random.integers(0, 2, shape)
            feeds[spec.name] = values.astype(spec.dtype)
        return feeds

    count = max(RANDOM_SAMPLES, len(shapes))
    return CalibrationData(load, tuple(f"random {i}" for i in range(count)), (), tuple(range(count)))


def _output_specs(model: ir.Model, plan: ShapePlan) -> tuple[tuple[TensorSpec, ...], tuple[dict[str, int], ...]]:
    """Shapes of the outputs in every bucket; dims that differ get symbols of their own."""
    statics = [specialise(model, bucket) for bucket in plan.buckets]
    buckets = [dict(bucket) for bucket in plan.buckets]
    specs = []
    for position, value in enumerate(model.graph.outputs):
        shapes = [_static(static.graph.outputs[position]) for static in statics]
        dims: list[int | str] = list(shapes[0])
        for axis in range(len(dims)):
            if len({shape[axis] for shape in shapes}) > 1:
                symbol = re.sub(r"[^A-Za-z0-9_]", "_", f"out_{value.name}_dim{axis}")
                dims[axis] = symbol
                for bucket, shape in zip(buckets, shapes, strict=True):
                    bucket[symbol] = shape[axis]
        specs.append(TensorSpec(str(value.name), _dtype(value), tuple(dims)))
    return tuple(specs), tuple(buckets) if plan.symbols else ()


def _static(value: ir.Value) -> tuple[int, ...]:
    if value.shape is None or not value.shape.is_static():
        raise UnsupportedError(
            "the size of an output depends on the data",
            where=value.name,
            got=value.shape,
            hint="cut the model before it, such as before its non-maximum suppression",
        )
    return tuple(int(d) for d in value.shape.numpy())
