"""Gemm and MatMul: by a constant as a 1x1 convolution over [1, 1, M, K], otherwise as a batched float product."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from edgekit.converters.lowering import graph
from edgekit.converters.lowering.builder import PlanBuilder
from edgekit.converters.lowering.products import (
    Geometry,
    Product,
    emit_float,
    emit_quantized,
    float_destination,
    has_unit_channels,
    quantized_destination,
    quantized_or_float,
)
from edgekit.converters.lowering.registry import NotLowerableError, lowers
from edgekit.converters.lowering.views import View, Want
from edgekit.converters.lowering.weights import NotQuantizedError, float_bias, quantized_weights, signed_values
from edgekit.package.program_schema import program_schema


@dataclass(frozen=True)
class _Linear:
    """x [..., K] times a constant [K, N], plus a row.

    Attributes:
        node: Source node.
        weight: The constant.
        transposed: Whether it is stored as [N, K].
        bias: Constant that broadcasts to a row; None: none.
        value: What is given, behind a fused Add of the bias.
        fused: Further nodes that it stands for.
        factor: Gemm's alpha.
    """

    node: ir.Node
    weight: ir.Value
    transposed: bool
    bias: ir.Value | None
    value: ir.Value
    fused: tuple[ir.Node, ...] = ()
    factor: float = 1.0


def rows_image(view: View) -> View | None:
    """[..., M, K] -> [N, H, W, K] without a copy; None where strides don't allow it."""
    if view.rank > 4:
        lead = int(np.prod(view.dims[:-1]))
        return view.reshaped((1, 1, lead, view.dims[-1]))
    while view.rank < 4:
        view = view.with_axis(0)
    merged = view.reshaped((1, 1, view.elements // view.dims[-1], view.dims[-1]))
    return view if merged is None else merged


@lowers("MatMul")
def lower_matmul(build: PlanBuilder, node: ir.Node) -> None:
    """With a constant matrix on the right, or of any two values with broadcasting batch dims."""
    left, right = graph.required(node, 0), graph.required(node, 1)
    weight = graph.constant_of(right)
    if weight is not None and weight.ndim == 2 and len(graph.dims_of(left)) >= 2 and graph.constant_of(left) is None:
        value, bias, fused = _following_bias(node, weight.shape[1])
        _lower_linear(build, _Linear(node, right, False, bias, value, fused))
        return
    _lower_dynamic(build, node)


def _following_bias(node: ir.Node, columns: int) -> tuple[ir.Value, ir.Value | None, tuple[ir.Node, ...]]:
    """A constant row that an Add, and nothing else, adds to the product."""
    output = node.outputs[0]
    add = graph.sole_consumer(output)
    if add is not None and graph.is_op(add, "Add"):
        other = add.inputs[1] if add.inputs[0] is output else add.inputs[0]
        row = graph.constant_of(other)
        if row is not None and row.size in (1, columns) and row.shape[-1:] in ((columns,), (1,), ()):
            return add.outputs[0], other, (add,)
    return output, None, ()


@lowers("Gemm")
def lower_gemm(build: PlanBuilder, node: ir.Node) -> None:
    """Alpha * A' * B' + beta * C."""
    alpha, beta = float(graph.attribute(node, "alpha", 1.0)), float(graph.attribute(node, "beta", 1.0))
    weight, bias = graph.required(node, 1), graph.operand(node, 2)
    matrix, row = graph.constant_of(weight), graph.constant_of(bias)
    columns = graph.dims_of(node.outputs[0])[1]
    simple = bias is None or (beta == 1.0 and row is not None and row.size in (1, columns) and _is_row(row))
    if matrix is not None and simple and not int(graph.attribute(node, "transA", 0)):
        transposed = bool(graph.attribute(node, "transB", 0))
        _lower_linear(build, _Linear(node, weight, transposed, bias, node.outputs[0], (), alpha))
        return
    _lower_general_gemm(build, node, alpha, beta)


def _is_row(array: graph.Array) -> bool:
    return all(dim == 1 for dim in array.shape[:-1])


def _lower_linear(build: PlanBuilder, linear: _Linear) -> None:
    quantized_or_float(
        build,
        linear.node,
        lambda: _lower_quantized_linear(build, linear),
        lambda: _lower_float_linear(build, linear),
    )


def _product(linear: _Linear, x: View) -> Product:
    dims = graph.dims_of(linear.value)
    return Product(linear.node, x, linear.value, dims, tuple(range(len(dims))), rows_image, linear.fused)


def _input_rows(build: PlanBuilder, view: View) -> View:
    image = rows_image(view)
    if image is None or not has_unit_channels(image):
        image = rows_image(build.copied(view))
    assert image is not None
    return image


def _as_kernel(matrix: graph.Array, transposed: bool) -> graph.Array:
    rows = matrix if transposed else matrix.T
    return rows[:, :, None, None]


def _lower_quantized_linear(build: PlanBuilder, linear: _Linear) -> None:
    x, constant = build.quantized(linear.node.inputs[0]), graph.quantized_constant(linear.weight)
    if x is None or x.quant is None:
        raise NotQuantizedError("the input is not quantized")
    if constant is None:
        raise NotQuantizedError("the weights are not quantized")
    if constant.scale.size > 1 and constant.axis != (0 if linear.transposed else 1):
        raise NotQuantizedError(f"weights are quantized along axis {constant.axis}")
    if linear.factor != 1.0:
        raise NotQuantizedError(f"alpha is {linear.factor}")
    values = _as_kernel(signed_values(constant), linear.transposed).astype(np.int8)
    weights = quantized_weights(values, constant.scale, x.quant, linear.bias)
    destination = quantized_destination(build, _product(linear, x))
    emit_quantized(build, _input_rows(build, x), weights, Geometry(), destination)


def _lower_float_linear(build: PlanBuilder, linear: _Linear) -> None:
    matrix = graph.constant_of(linear.weight)
    if matrix is None or matrix.dtype != np.float32:
        raise NotLowerableError(f"{linear.node.op_type} of {None if matrix is None else matrix.dtype}")
    x = build.raw(graph.required(linear.node, 0))
    weight = (_as_kernel(matrix, linear.transposed) * np.float32(linear.factor)).astype(np.float32)
    destination = float_destination(build, _product(linear, x))
    bias = float_bias(graph.constant_of(linear.bias), len(weight))
    emit_float(build, _input_rows(build, x), weight, bias, Geometry(), destination)


def _lower_dynamic(build: PlanBuilder, node: ir.Node) -> None:
    left, right = (build.raw(graph.required(node, index)) for index in (0, 1))
    if left.dtype != "f32" or right.dtype != "f32":
        raise NotLowerableError(f"MatMul of {left.dtype} and {right.dtype}")
    a = left.with_axis(0) if left.rank == 1 else left
    b = right.with_axis(1) if right.rank == 1 else right
    batch = tuple(np.broadcast_shapes(a.dims[:-2], b.dims[:-2]))
    dims = (*batch, a.dims[-2], b.dims[-1])
    build.fuse([node])
    output = node.outputs[0]
    result, y = build.new_seen_as(output, Want(graph.dims_of(output), "f32"), dims)
    build.emit_matmul(a.expanded((*batch, *a.dims[-2:])), b.expanded((*batch, *b.dims[-2:])), y)
    build.bind(output, result)


def _lower_general_gemm(build: PlanBuilder, node: ir.Node, alpha: float, beta: float) -> None:
    """With transposed or dynamic operands: a product, then beta * C in a second step."""
    a, b = (build.raw(graph.required(node, index)) for index in (0, 1))
    if a.dtype != "f32" or b.dtype != "f32":
        raise NotLowerableError(f"Gemm of {a.dtype} and {b.dtype}")
    a = a.permuted((1, 0)) if int(graph.attribute(node, "transA", 0)) else a
    b = b.permuted((1, 0)) if int(graph.attribute(node, "transB", 0)) else b
    bias, output = graph.operand(node, 2), node.outputs[0]
    dims = (a.dims[0], b.dims[1])
    build.fuse([node])
    want = Want(dims, "f32")
    if bias is None or beta == 0.0:
        result = build.new(output, want)
        build.emit_matmul(a, b, result, alpha)
    else:
        row = build.raw(bias).expanded(dims)
        kinds = program_schema().enums["binary_kind"]
        if beta != 1.0:
            scaled = build.temporary(want)
            factor = build.constant(np.array([beta], np.float32)).expanded(dims)
            build.emit("binary", [row, factor], [scaled], {"kind": kinds["mul"]})
            row = scaled
        product, result = build.temporary(want), build.new(output, want)
        build.emit_matmul(a, b, product, alpha)
        build.emit("binary", [product, row], [result], {"kind": kinds["add"]})
    build.bind(output, result)
