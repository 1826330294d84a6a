"""Input shapes: fixed by the user, or several (buckets) that share one graph; then shape inference.

A bucket graph keeps a symbol for each dim that differs between buckets. specialise() turns it into the static graph of
one bucket, at any stage of the conversion.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
import onnx_ir as ir

from edgekit.converters.float_reference import model_bytes
from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.dead_nodes import DEAD_NODES
from edgekit.converters.passes.fold_constants import fold_constants
from edgekit.converters.passes.graph_edit import all_nodes, forget_names, static_shape
from edgekit.errors import ModelError, UnsupportedError, UsageError

_MAX_DIM = 1 << 24
_MAX_BUCKETS = 64
_MAX_VALUE_BYTES = 1 << 30


@dataclass(frozen=True)
class ShapePlan:
    """The shapes that a conversion serves.

    Attributes:
        symbols: (input name, axis) to the symbol of a dim that differs between buckets.
        buckets: Symbol to size, one entry a bucket, smallest first; one empty entry when all is fixed.
        shapes: Input name to shape, one entry a bucket, in the order of buckets.
    """

    symbols: Mapping[tuple[str, int], str]
    buckets: tuple[Mapping[str, int], ...]
    shapes: tuple[Mapping[str, tuple[int, ...]], ...]


def plan_shapes(model: ir.Model, requested: Sequence[str], notes: list[str]) -> ShapePlan:
    """Decides all input shapes from the model and from --shape.

    Args:
        model: Before its shapes are fixed.
        requested: "name=1x3x48x320", the name left out where the model has one input; several entries for one input
            are buckets; inputs not named keep their own shapes.
        notes: Gets a line where a batch dim was set to 1.

    Raises:
        UsageError: An entry can't be read, names no input, or contradicts the model.
        ModelError: Symbolic dims remain; they are listed.
        UnsupportedError: The model has no inputs.
    """
    if not model.graph.inputs:
        raise UnsupportedError("the model has no inputs", hint="there is nothing to run it on")
    wanted = _parse(model, requested)
    options: dict[str, list[tuple[int, ...]]] = {}
    missing: list[str] = []
    for value in model.graph.inputs:
        name = str(value.name)
        own = _own_shape(value)
        options[name] = wanted.get(name) or [_default_batch(name, own, missing, notes)]
    if missing:
        raise ModelError(
            "the model leaves dims open",
            got=", ".join(missing),
            hint="give every input's shape, such as --shape " + " ".join(_example(v) for v in model.graph.inputs),
        )
    return _buckets(model, options)


def _own_shape(value: ir.Value) -> list[int | str]:
    if value.shape is None:
        raise ModelError("an input has no shape, not even a rank", where=value.name, hint="export it with shapes")
    own: list[int | str] = []
    for dim in value.shape:
        fixed = isinstance(dim, int) and dim > 0
        own.append(int(dim) if fixed else (dim.value or "?") if isinstance(dim, ir.SymbolicDim) else "?")  # type: ignore[arg-type]
    return own


def _default_batch(name: str, own: list[int | str], missing: list[str], notes: list[str]) -> tuple[int, ...]:
    symbolic = [axis for axis, dim in enumerate(own) if isinstance(dim, str)]
    if symbolic == [0] and len(own) > 1:
        notes.append(f"input {name}: open batch dim {own[0]} set to 1; choose another with --shape")
        own = [1, *own[1:]]
        symbolic = []
    missing.extend(f"{name}[{axis}] = {own[axis]}" for axis in symbolic)
    return tuple(dim if isinstance(dim, int) else 1 for dim in own)


def _example(value: ir.Value) -> str:
    return f"{value.name}=" + "x".join(str(d) if isinstance(d, int) else "N" for d in _own_shape(value))


def _parse(model: ir.Model, requested: Sequence[str]) -> dict[str, list[tuple[int, ...]]]:
    inputs = {str(v.name): v for v in model.graph.inputs}
    wanted: dict[str, list[tuple[int, ...]]] = {}
    for entry in (part for text in requested for part in text.split(",")):
        name, equals, dims = entry.strip().rpartition("=")
        if not equals and len(inputs) == 1:
            name = next(iter(inputs))
        if name not in inputs:
            raise UsageError(
                "no such input", where=f"--shape {entry}", got=name or "no name", expected=", ".join(inputs)
            )
        if not re.fullmatch(r"\d{1,8}(x\d{1,8})*", dims):
            raise UsageError(
                "not a shape", where=f"--shape {entry}", got=dims, expected="numbers joined by x: 1x3x48x320"
            )
        shape = tuple(int(d) for d in dims.split("x"))
        _check_against(inputs[name], shape, entry)
        if shape not in wanted.setdefault(name, []):
            wanted[name].append(shape)
    return wanted


def _check_against(value: ir.Value, shape: tuple[int, ...], entry: str) -> None:
    own = _own_shape(value)
    if len(own) != len(shape) or any(isinstance(a, int) and a != b for a, b in zip(own, shape, strict=False)):
        raise UsageError(
            "contradicts the model",
            where=f"--shape {entry}",
            got="x".join(map(str, shape)),
            expected="x".join(map(str, own)),
        )
    if any(not 1 <= d <= _MAX_DIM for d in shape):
        raise UsageError("a dim is out of bounds", where=f"--shape {entry}", expected=f"1 to {_MAX_DIM}")


def _buckets(model: ir.Model, options: dict[str, list[tuple[int, ...]]]) -> ShapePlan:
    count = max(len(shapes) for shapes in options.values())
    for name, shapes in options.items():
        if len(shapes) not in (1, count):
            raise UsageError(
                "inputs differ in their number of shapes", where=f"--shape {name}", got=len(shapes), expected=count
            )
    if count > _MAX_BUCKETS:
        raise UsageError("too many shapes", where="--shape", got=count, expected=f"at most {_MAX_BUCKETS}")
    rows = [{name: shapes[i % len(shapes)] for name, shapes in options.items()} for i in range(count)]
    rows.sort(key=lambda row: sum(_volume(shape) for shape in row.values()))
    symbols: dict[tuple[str, int], str] = {}
    for value in model.graph.inputs:
        name = str(value.name)
        for axis in range(len(rows[0][name])):
            if len({row[name][axis] for row in rows}) > 1:
                symbols[name, axis] = _symbol(value, axis)
    buckets = tuple({symbol: row[name][axis] for (name, axis), symbol in symbols.items()} for row in rows)
    for row, bucket in zip(rows, buckets, strict=True):
        if any(row[name][axis] != bucket[symbol] for (name, axis), symbol in symbols.items()):
            raise UsageError("one symbol would need two sizes", where="--shape", got=row)
    return ShapePlan(symbols, buckets, tuple(rows))


def _volume(shape: tuple[int, ...]) -> int:
    total = 1
    for dim in shape:
        total *= dim
    return total


def _symbol(value: ir.Value, axis: int) -> str:
    own = _own_shape(value)[axis]
    return own if isinstance(own, str) and own.isidentifier() else f"{value.name}_dim{axis}"


def check_value_sizes(model: ir.Model, plan: ShapePlan, limit_bytes: int = _MAX_VALUE_BYTES) -> None:
    """Refuses a model that would fill the memory, before anything runs it.

    Args:
        model: Before the passes; not changed.
        plan: Its largest bucket is looked at.
        limit_bytes: Most bytes of one value.

    Raises:
        ModelError: A value is larger; the message names its node.
    """
    trial = model.clone()
    for value in trial.graph.inputs:
        value.shape = ir.Shape(plan.shapes[-1][str(value.name)])
    infer_shapes(trial)
    for node in all_nodes(trial):
        for value in node.outputs:
            shape = static_shape(value)
            if shape is None or value.dtype is None or value.dtype == ir.DataType.STRING:
                continue
            size = math.prod(shape) * value.dtype.itemsize
            if size > limit_bytes:
                raise ModelError(
                    "a value would be too large",
                    where=f"{node.op_type} {node.name}",
                    got=f"{'x'.join(map(str, shape))}, {size / 2**30:.1f} GiB",
                    expected=f"at most {limit_bytes / 2**30:g} GiB",
                )


def fix_inputs(model: ir.Model, plan: ShapePlan) -> None:
    """Writes the plan's shapes into the inputs, in place, and infers all others."""
    for value in model.graph.inputs:
        name = str(value.name)
        dims = [plan.symbols.get((name, axis), size) for axis, size in enumerate(plan.shapes[0][name])]
        value.shape = ir.Shape(dims)
    infer_shapes(model)


def infer_shapes(model: ir.Model) -> None:
    """Infers the shapes and types of all values anew, in place.

    Raises:
        ModelError: The shapes contradict each other; the message names the node.
    """
    for node in all_nodes(model):
        for value in node.outputs:
            value.shape = None
    try:
        inferred = onnx.shape_inference.infer_shapes(
            model_bytes(model), check_type=True, strict_mode=True, data_prop=True
        )
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        line = str(error).strip().splitlines()[0][:300]
        raise ModelError("shapes contradict each other", got=line, hint="try another --shape") from error
    _read_types(model.graph, inferred.graph)


def _read_types(graph: ir.Graph, proto: onnx.GraphProto) -> None:
    known = {info.name: info for info in (*proto.value_info, *proto.output)}
    for node, node_proto in zip(graph, proto.node, strict=True):
        for value in node.outputs:
            info = known.get(str(value.name))
            if info is not None and info.type.HasField("tensor_type"):
                value.type = ir.serde.deserialize_type_proto_for_type(info.type) or value.type
                value.shape = ir.serde.deserialize_type_proto_for_shape(info.type)
        for attr in node_proto.attribute:
            if attr.type == onnx.AttributeProto.GRAPH:
                _read_types(node.attributes[attr.name].as_graph(), attr.g)


def specialise(model: ir.Model, dims: Mapping[str, int], fold_limit_bytes: int = 1 << 20) -> ir.Model:
    """Makes the static graph of one bucket.

    Args:
        model: Float or QDQ graph; not changed.
        dims: Symbol to size.
        fold_limit_bytes: See fold_constants.

    Returns:
        A copy with static inputs, shapes inferred, shape arithmetic folded.

    Raises:
        ModelError: The shapes contradict each other.
    """
    result = model.clone()
    forget_names(result)
    for value in result.graph.inputs:
        if value.shape is not None:
            value.shape = value.shape.evaluate(dims)
    settle_shapes(result, PassContext(fold_limit_bytes))
    DEAD_NODES.apply(result, PassContext())
    return result


def settle_shapes(model: ir.Model, context: PassContext) -> int:
    """Infers shapes and folds shape arithmetic until nothing changes, in place; returns the number of nodes folded."""
    total = 0
    while True:
        infer_shapes(model)
        folded = fold_constants(model, context.fold_limit_bytes)
        total += folded
        if not folded:
            return total


INFER_SHAPES = Pass("infer-shapes", "Shapes inferred, shape arithmetic folded away", settle_shapes, required=True)
