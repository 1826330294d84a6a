"""Nodes whose inputs are all constants are computed now, under a size limit; shape arithmetic goes away with them.

A node is folded only where its result is known to be small before it is computed: a hostile ConstantOfShape or Tile
of a terabyte stays a node. Quantize and dequantize nodes are never folded: they are the quantization.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from edgekit.converters.float_reference import FloatReference
from edgekit.converters.passes._pass import Pass, PassContext
from edgekit.converters.passes.graph_edit import (
    add_constant,
    all_nodes,
    attribute,
    constant_of,
    dim_of,
    input_at,
    is_op,
    producer,
    remove_unused,
    static_shape,
    subgraphs_of,
    take_over,
)
from edgekit.errors import ModelError

_QUANTIZATION = frozenset(["QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"])
_RANDOM = frozenset(
    ["RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"]
)
_NEVER = _QUANTIZATION | _RANDOM | {"If", "Loop", "Scan", "Constant", "Dropout"}
_SAME_SIZE = 2
"""A result may also be as large as this many times the constants that it stands for, whatever the limit."""


def fold_constants(model: ir.Model, limit_bytes: int) -> int:
    """Folds constant nodes in place.

    Args:
        model: The model; shapes should have been inferred.
        limit_bytes: Largest result that is folded, unless its inputs are as large already.

    Returns:
        Number of nodes folded.
    """
    count = 0
    for node in all_nodes(model):
        if node.graph is None or any(v.is_graph_output() and node.graph is not model.graph for v in node.outputs):
            continue
        results = _shape_of(node) or _part_of_shape(node) or _computed(model, node, limit_bytes)
        if results is None:
            continue
        count += _replace(model, node, results)
    return count


def _replace(model: ir.Model, node: ir.Node, results: list[NDArray[Any]]) -> bool:
    if any(v.is_graph_output() for v in node.outputs):
        return False
    for value, array in zip(node.outputs, results, strict=True):
        if value.uses():
            constant = add_constant(model, f"{value.name}", array)
            take_over(value, constant)
    remove_unused(node)
    return True


def _shape_of(node: ir.Node) -> list[NDArray[Any]] | None:
    """Shape and Size of a value with a static shape."""
    if not is_op(node, "Shape", "Size"):
        return None
    shape = static_shape(node.inputs[0])
    if shape is None:
        return None
    if node.op_type == "Size":
        return [np.array(np.prod(shape, dtype=np.int64), np.int64)]
    start, end = attribute(node, "start", 0), attribute(node, "end", len(shape))
    return [np.array(shape[slice(start, end)], np.int64)]


def _part_of_shape(node: ir.Node) -> list[NDArray[Any]] | None:
    """Gather or Slice of a Shape, of dims that are static although others are not."""
    source = producer(node.inputs[0], "Shape") if node.inputs and is_op(node, "Gather", "Slice") else None
    if source is None or attribute(source, "start", 0) or "end" in source.attributes:
        return None
    value = source.inputs[0]
    if value is None or value.shape is None:
        return None
    positions = np.arange(len(value.shape))
    if node.op_type == "Gather":
        index = constant_of(input_at(node, 1))
        if index is None or np.any(np.abs(index + 0.5) > len(positions)):
            return None
        wanted = positions[index.astype(np.int64)]
    else:
        picks = [constant_of(input_at(node, i)) for i in (1, 2, 4)]
        start, end = picks[0], picks[1]
        step = 1 if picks[2] is None else int(picks[2].reshape(-1)[0])
        if start is None or end is None or start.size != 1 or end.size != 1 or step == 0:
            return None
        wanted = positions[slice(int(start.reshape(-1)[0]), int(end.reshape(-1)[0]), step)]
    dims = [dim_of(value, int(axis)) for axis in np.asarray(wanted).reshape(-1)]
    if any(d is None for d in dims):
        return None
    return [np.array(dims, np.int64).reshape(np.shape(wanted))]


def _computed(model: ir.Model, node: ir.Node, limit_bytes: int) -> list[NDArray[Any]] | None:
    arrays = _constant_inputs(node)
    if arrays is None:
        return None
    proto = _single_node_model(model, node, arrays)
    size = _result_bytes(proto)
    if size is None:
        return None
    freed = sum(array.nbytes for array in arrays.values())
    if size > max(limit_bytes, _SAME_SIZE * freed):
        return None
    try:
        results = FloatReference(proto.SerializeToString()).run({})
    except ModelError:
        return None
    return [results.get(str(v.name), np.empty(0)) for v in node.outputs]


def _constant_inputs(node: ir.Node) -> dict[str, NDArray[Any]] | None:
    if node.op_type in _NEVER or node.domain not in ("", "ai.onnx", "edgekit") or any(subgraphs_of(node)):
        return None
    arrays: dict[str, NDArray[Any]] = {}
    for value in node.inputs:
        if value is None:
            continue
        array = constant_of(value)
        if array is None or array.dtype.kind not in "fiub":
            return None
        arrays[str(value.name)] = array
    return arrays


def _single_node_model(model: ir.Model, node: ir.Node, arrays: dict[str, NDArray[Any]]) -> onnx.ModelProto:
    outputs = [helper.make_tensor_value_info(str(v.name), _element(v), None) for v in node.outputs if v.name]
    graph = helper.make_graph(
        [ir.serde.serialize_node(node)],
        "folded",
        [],
        outputs,
        [numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape), name) for name, a in arrays.items()],
    )
    opsets = [helper.make_opsetid(domain, version) for domain, version in model.graph.opset_imports.items()]
    functions = [ir.serde.serialize_function(f) for f in model.functions.values()]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def _element(value: ir.Value) -> int:
    return int(value.dtype) if value.dtype is not None else onnx.TensorProto.UNDEFINED


def _result_bytes(proto: onnx.ModelProto) -> int | None:
    """Bytes of all results by shape inference on the constants; None where it can't tell."""
    try:
        inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return None
    total = 0
    for output, declared in zip(inferred.graph.output, proto.graph.output, strict=True):
        tensor = output.type.tensor_type
        if not tensor.HasField("shape") or tensor.elem_type == onnx.TensorProto.UNDEFINED:
            return None
        if any(not d.HasField("dim_value") or d.dim_value < 0 for d in tensor.shape.dim):
            return None
        declared.type.tensor_type.elem_type = tensor.elem_type
        count = 1
        for dim in tensor.shape.dim:
            count *= dim.dim_value
        total += count * helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
    return total


def _apply(model: ir.Model, context: PassContext) -> int:
    return fold_constants(model, context.fold_limit_bytes)


FOLD_CONSTANTS = Pass("fold-constants", "Constant nodes computed, shape arithmetic folded away", _apply)
