"""Bounds of a model's graph: counts, depth, and for each tensor that its bytes are those of its shape."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from edgekit.errors import ModelError, UnsupportedError

MAX_NODES = 200_000
MAX_VALUES = 1_000_000
MAX_DEPTH = 16
MAX_RANK = 64
MAX_ELEMENTS = 1 << 33

_FOUR_BIT = {TensorProto.INT4, TensorProto.UINT4, getattr(TensorProto, "FLOAT4E2M1", -1)}
_TYPED_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")


def graphs_of(proto: onnx.ModelProto) -> Iterator[tuple[onnx.GraphProto | onnx.FunctionProto, int]]:
    """Yields the main graph, functions and every sub-graph with its depth."""
    pending: list[tuple[onnx.GraphProto | onnx.FunctionProto, int]] = [(proto.graph, 0)]
    pending.extend((function, 0) for function in proto.functions)
    while pending:
        graph, depth = pending.pop()
        yield graph, depth
        for node in graph.node:
            for attr in node.attribute:
                if attr.HasField("g"):
                    pending.append((attr.g, depth + 1))
                pending.extend((g, depth + 1) for g in attr.graphs)


def tensors_of(proto: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yields every tensor in the model with a name for messages."""
    for graph, _ in graphs_of(proto):
        for tensor in getattr(graph, "initializer", ()):
            yield tensor.name, tensor
        for node in graph.node:
            for attr in node.attribute:
                where = f"{node.name or node.op_type}.{attr.name}"
                if attr.HasField("t"):
                    yield where, attr.t
                for tensor in attr.tensors:
                    yield where, tensor


def check_counts(path: Path, proto: onnx.ModelProto) -> None:
    """Checks the number of nodes and values and the depth of sub-graphs.

    Raises:
        ModelError: A bound is exceeded.
        UnsupportedError: Sparse weights.
    """
    nodes = values = 0
    for graph, depth in graphs_of(proto):
        nodes += len(graph.node)
        values += sum(len(n.input) + len(n.output) for n in graph.node) + len(getattr(graph, "initializer", ()))
        if depth > MAX_DEPTH:
            raise ModelError("sub-graphs are nested too deeply", where=path, got=depth, expected=f"at most {MAX_DEPTH}")
        if len(getattr(graph, "sparse_initializer", ())) or any(
            a.HasField("sparse_tensor") or len(a.sparse_tensors) for n in graph.node for a in n.attribute
        ):
            raise UnsupportedError("sparse weights are not read", where=path, hint="export it with dense weights")
    if nodes > MAX_NODES or values > MAX_VALUES:
        raise ModelError("too many nodes", where=path, got=f"{nodes} nodes", expected=f"at most {MAX_NODES}")


def check_tensors(path: Path, proto: onnx.ModelProto) -> None:
    """Checks that the data of each tensor fit its shape and type, and that names are unique in each graph.

    Raises:
        ModelError: They do not.
    """
    for name, tensor in tensors_of(proto):
        if tensor.data_location != TensorProto.EXTERNAL:
            _check_tensor(path, name, tensor)
    for graph, _ in graphs_of(proto):
        names = [t.name for t in getattr(graph, "initializer", ())]
        if len(set(names)) != len(names) or "" in names:
            raise ModelError("two weights share a name, or one has none", where=path)


def element_count(path: Path, name: str, tensor: onnx.TensorProto) -> int:
    """Multiplies a tensor's dims.

    Raises:
        ModelError: A dim is negative, or the product too large.
    """
    if len(tensor.dims) > MAX_RANK:
        raise ModelError("a tensor has too many dims", where=f"{path}: {name}", got=len(tensor.dims))
    count = 1
    for dim in tensor.dims:
        if dim < 0:
            raise ModelError("a tensor has a negative dim", where=f"{path}: {name}", got=dim)
        count *= dim
    if count > MAX_ELEMENTS:
        raise ModelError("a tensor is too large", where=f"{path}: {name}", got=f"{count} elements")
    return count


def byte_count(path: Path, name: str, tensor: onnx.TensorProto) -> int:
    """Returns the bytes that a tensor of this shape and type takes.

    Raises:
        ModelError: The type is none, or not one of plain numbers.
    """
    count = element_count(path, name, tensor)
    if tensor.data_type in _FOUR_BIT:
        return (count + 1) // 2
    try:
        return count * int(helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError("a tensor has an unknown type", where=f"{path}: {name}", got=tensor.data_type) from error


def _check_tensor(path: Path, name: str, tensor: onnx.TensorProto) -> None:
    if tensor.data_type == TensorProto.STRING:
        given, wanted = len(tensor.string_data), element_count(path, name, tensor)
    elif tensor.HasField("raw_data"):
        given, wanted = len(tensor.raw_data), byte_count(path, name, tensor)
    else:
        byte_count(path, name, tensor)
        given, wanted = _typed_elements(tensor), _expected_elements(path, name, tensor)
    if given != wanted:
        raise ModelError(
            "a tensor's data do not fit its shape",
            where=f"{path}: {name}",
            got=given,
            expected=wanted,
            hint="the file may be truncated",
        )


def _typed_elements(tensor: onnx.TensorProto) -> int:
    return sum(len(getattr(tensor, field)) for field in _TYPED_FIELDS)


def _expected_elements(path: Path, name: str, tensor: onnx.TensorProto) -> int:
    count = element_count(path, name, tensor)
    if tensor.data_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        return 2 * count
    return (count + 1) // 2 if tensor.data_type in _FOUR_BIT else count
