"""Operators of one and of two variables, element by element."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.activations import UNARY_OPS, Activation, activation_of
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.quantized_tail import QuantizedEnd, match_quantized_end, scale_ratio
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.tables import function_table, is_function
from edgekit.converters.lowering.views import View, Want
from edgekit.package.program_schema import program_schema

_KINDS = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Pow": "pow", "Min": "min", "Max": "max", "PRelu": "prelu",
    "Equal": "equal", "Less": "less", "Greater": "greater", "LessOrEqual": "less_equal",
    "GreaterOrEqual": "greater_equal", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "Mod": "mod",
    "Sum": "add",
}  # fmt: skip
_COMPARISONS = frozenset(("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"))
_ARITHMETIC_DTYPES = {"f32", "i32", "i64", "u8", "s8"}
_INTEGER_UNARY = frozenset(("abs", "neg", "sign"))


def try_table(build: PlanBuilder, node: ir.Node) -> bool:
    """Lowers the whole table region that a node is inside of, where its variable is quantized."""
    region = build.regions.holding(node)
    if region is None:
        return False
    source, target = build.quantized(region.source), graph.quant_parameters(region.quantizer, build.packing.act)
    if source is None or source.quant is None or target is None:
        return False
    build.fuse([*region.nodes, region.quantizer])
    output = region.quantizer.outputs[0]
    result = build.new(output, Want(source.dims, source.dtype, source.order(), target))
    build.bind(output, result)
    build.emit("lut_q8", [source, build.constant(build.table(region, source.quant, target))], [result])
    return True


def try_float_table(build: PlanBuilder, node: ir.Node) -> bool:
    """Lowers an operator of one quantized variable with a float result: dequantizing by a table of its results."""
    output = node.outputs[0]
    source = build.quantized(graph.operand(node, 0)) if is_function(node) else None
    if source is None or source.quant is None or graph.program_dtype_of(output) != "f32":
        return False
    if source.dims != graph.dims_of(output):
        return False
    table = function_table(node, source.quant, build.packing.act)
    build.fuse([node])
    result = build.new(output, Want(source.dims, "f32", source.order()))
    build.bind(output, result)
    build.emit("convert", [source, build.constant(table)], [result])
    return True


@lowers(*UNARY_OPS)
@lowers("Silu", domain="edgekit")
def lower_unary(build: PlanBuilder, node: ir.Node) -> None:
    """Operators of one variable, as a table where quantized on both sides."""
    if try_table(build, node) or try_float_table(build, node):
        return
    activation = activation_of(node)
    source, output = graph.required(node, 0), node.outputs[0]
    if activation is None:
        raise NotLowerableError("its parameters are not constant")
    dtype = graph.program_dtype_of(source)
    if dtype in ("i32", "i64"):
        _lower_integer_unary(build, node, activation)
        return
    if dtype != ("bool" if activation.name == "logical_not" else "f32"):
        raise NotLowerableError(f"{node.op_type} of {dtype}")
    view = build.raw(source)
    build.fuse([node])
    result = build.new(output, Want(view.dims, dtype, view.order()))
    build.bind(output, result)
    build.emit("unary", [view], [result], activation.attributes())


def _lower_integer_unary(build: PlanBuilder, node: ir.Node, activation: Activation) -> None:
    """abs, neg, sign as they are; bounds as min and max, since floats don't hold every integer."""
    source, output = graph.required(node, 0), node.outputs[0]
    view = build.raw(source)
    want = Want(view.dims, view.dtype, view.order())
    if activation.name in _INTEGER_UNARY:
        build.fuse([node])
        result = build.new(output, want)
        build.emit("unary", [view], [result], activation.attributes())
    elif activation.name in ("relu", "clip"):
        build.fuse([node])
        result = _bounded(build, node, view, want)
    else:
        raise NotLowerableError(f"{node.op_type} of {view.dtype}")
    build.bind(output, result)


def _bounded(build: PlanBuilder, node: ir.Node, view: View, want: Want) -> View:
    zero = np.zeros((), build.numpy_dtype(view)) if graph.is_op(node, "Relu") else None
    bounds = [("max", zero if zero is not None else graph.constant_of(graph.operand(node, 1)))]
    bounds += [("min", graph.constant_of(graph.operand(node, 2)))]
    active = [(kind, bound) for kind, bound in bounds if bound is not None]
    for index, (kind, bound) in enumerate(active):
        last = index == len(active) - 1
        result = build.new(node.outputs[0], want) if last else build.temporary(want)
        constant = build.constant(bound.reshape(1)).expanded(view.dims)
        build.emit("binary", [view, constant], [result], {"kind": _binary_number(kind)})
        view = result
    return view


def _binary_number(kind: str) -> int:
    return program_schema().enums["binary_kind"][kind]


@lowers(*_KINDS)
def lower_binary(build: PlanBuilder, node: ir.Node) -> None:
    """Operators of two variables with broadcasting; more operands are taken two by two."""
    if try_table(build, node):
        return
    if len(node.inputs) == 2 and node.op_type in ("Add", "Sub", "Mul") and _try_quantized(build, node):
        return
    if try_float_table(build, node):
        return
    kind = _KINDS[node.op_type]
    if node.op_type == "Mod" and int(graph.attribute(node, "fmod", 0)):
        kind = "fmod"
    values = [graph.required(node, index) for index in range(len(node.inputs))]
    dtype = graph.program_dtype_of(values[0])
    logical = kind.startswith("logical_") or (kind == "equal" and dtype == "bool")
    if dtype == "bool" if not logical else dtype != "bool":
        raise NotLowerableError(f"{node.op_type} of {dtype}")
    if kind != "pow" and any(graph.program_dtype_of(value) != dtype for value in values):
        raise NotLowerableError(f"{node.op_type} of mixed dtypes")
    views = [build.raw(value) for value in values]
    if kind == "pow" and views[1].dtype != dtype:
        views[1] = _converted_exponent(build, node, views[1], dtype)
    if len(views) == 1:
        build.alias(node, views[0])
        return
    _emit_chain(build, node, kind, views)


def _converted_exponent(build: PlanBuilder, node: ir.Node, view: View, dtype: str) -> View:
    """An integer exponent of a float base; the other way round would lose what is behind the point."""
    if dtype != "f32" or view.dtype not in ("i32", "i64"):
        raise NotLowerableError(f"Pow of {dtype} by {view.dtype}")
    build.fuse([node])
    result = build.temporary(Want(view.dims, dtype, view.order()))
    build.emit("convert", [view], [result])
    return result


def _emit_chain(build: PlanBuilder, node: ir.Node, kind: str, views: list[View]) -> None:
    output = node.outputs[0]
    dims, dtype = graph.dims_of(output), graph.program_dtype_of(output)
    activation, follower = Activation(), graph.sole_consumer(output)
    fused = [node]
    if (
        dtype == "f32"
        and follower is not None
        and follower.inputs[0] is output
        and build.regions.holding(follower) is None
    ):
        following = activation_of(follower)
        if following is not None:
            activation, output = following, follower.outputs[0]
            fused.append(follower)
    build.fuse(fused)
    order = widest(views).expanded(dims).order()
    left = views[0].expanded(dims)
    for index, right in enumerate(views[1:], 1):
        last = index == len(views) - 1
        want = Want(dims, dtype, order)
        result = build.new(output, want) if last else build.temporary(want)
        words = activation if last else Activation()
        attributes = {"kind": _binary_number(kind), **words.attributes("act_")}
        build.emit("binary", [left, right.expanded(dims)], [result], attributes)
        left = result
    build.bind(output, left)


def widest(views: list[View]) -> View:
    """The operand with the most elements: its layout is the one to keep."""
    return max(views, key=lambda view: (view.elements, view.storage.kind != "constants"))


def _try_quantized(build: PlanBuilder, node: ir.Node) -> bool:
    """binary_q8 for Add, Sub and Mul of quantized operands with a quantized result."""
    end = match_quantized_end(node.outputs[0], build.packing.act)
    if end is None:
        build.notes[node] = "the result is not quantized"
        return False
    views = [_quantized_operand(build, value) for value in node.inputs]
    if any(view is None for view in views):
        build.notes[node] = "an operand is not quantized"
        return False
    left, right = (view for view in views if view is not None)
    build.fuse([node, *end.nodes])
    dims = graph.dims_of(node.outputs[0])
    order = widest([left, right]).expanded(dims).order()
    result = build.new(end.result, Want(dims, build.packing.act, order, end.quant))
    build.bind(end.result, result)
    operands: list[View | None] = [left.expanded(dims), right.expanded(dims)]
    build.emit("binary_q8", operands, [result], _quantized_words(node, left, right, end))
    return True


def _quantized_operand(build: PlanBuilder, value: ir.Value | None) -> View | None:
    """A quantized activation, or a constant under a DequantizeLinear with one scale."""
    view = build.quantized(value)
    if view is not None or value is None:
        return view
    constant = graph.quantized_constant(value)
    if constant is None or constant.values.dtype.name not in ("int8", "uint8") or value.producer() is None:
        return None
    quant = graph.quant_parameters(value.producer(), build.packing.act)  # type: ignore[arg-type]
    if quant is None:
        return None
    shift = quant.zero - int(constant.zero.reshape(-1)[0])
    stored = (constant.values.astype(np.int64) + shift).astype(np.uint8 if build.packing.act == "u8" else np.int8)
    return build.constant(stored, value.name or "", quant)


def _quantized_words(node: ir.Node, left: View, right: View, end: QuantizedEnd) -> dict[str, int | float]:
    assert left.quant is not None
    assert right.quant is not None
    kind = _KINDS[node.op_type]
    if kind == "mul":
        scales = (scale_ratio(left.quant.scale * right.quant.scale, end.quant.scale), 1.0)
    else:
        scales = (scale_ratio(left.quant.scale, end.quant.scale), scale_ratio(right.quant.scale, end.quant.scale))
    return {
        "kind": _binary_number(kind),
        "a_zero": left.quant.zero,
        "a_scale": scales[0],
        "b_zero": right.quant.zero,
        "b_scale": scales[1],
        "y_zero": end.quant.zero,
        "y_min": end.low,
        "y_max": end.high,
    }
