"""Small ONNX models for tests of the lowering, and what ONNX Runtime makes of them without optimisations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from edgekit import _native
from edgekit.converters.contracts import BucketModel, LoweredModel
from edgekit.converters.lowering import LowerOptions, lower
from edgekit.converters.passes import edgekit_ops
from edgekit.package.program_codec import read_program
from reference.program_interpreter import run_program

Array = np.ndarray
OPSET = 21


class GraphBuilder:
    """Builds an ONNX model node by node; values are names."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.known: list[onnx.ValueInfoProto] = []
        self._input_dtypes: dict[str, np.dtype] = {}

    def input(self, name: str, *shape: int, dtype: Any = np.float32) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape))
        self._input_dtypes[name] = np.dtype(dtype)
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        name = f"c{len(self.constants)}"
        array = np.float32(array) if isinstance(array, float) else array
        self.constants.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def weights(self, *shape: int, scale: float = 1.0) -> Array:
        return (self.rng.normal(0, scale, shape)).astype(np.float32)

    def op(self, op_type: str, *inputs: Any, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Adds a node; arrays and numbers among the inputs become constants, None is absent."""
        names = ["" if x is None else x if isinstance(x, str) else self.constant(x) for x in inputs]
        name = f"{op_type.lower()}{len(self.nodes)}"
        results = [f"{name}_{i}" if outputs > 1 else name for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, names, results, name=f"node_{name}", domain=domain, **attributes))
        return results[0] if outputs == 1 else results

    def quantize(self, x: str, scale: float, zero: int = 0) -> str:
        """Q then DQ of an activation; returns the dequantized value."""
        return self.dequantize(self.op("QuantizeLinear", x, np.float32(scale), np.int8(zero)), scale, zero)

    def dequantize(self, q: str, scale: float, zero: int = 0) -> str:
        return self.op("DequantizeLinear", q, np.float32(scale), np.int8(zero))

    def int8_weights(self, *shape: int, axis: int, exponents: tuple[int, int] = (-8, -5)) -> tuple[str, Array]:
        """A weight under DequantizeLinear with one power of two a channel; returns its name and the scales."""
        values = self.rng.integers(-127, 128, shape).astype(np.int8)
        scales = (2.0 ** self.rng.integers(*exponents, shape[axis])).astype(np.float32)
        zeros = np.zeros(shape[axis], np.int8)
        return self.op("DequantizeLinear", self.constant(values), scales, zeros, axis=axis), scales

    def int32_bias(self, scales: Array, reach: int = 2000) -> str:
        values = self.rng.integers(-reach, reach, scales.shape).astype(np.int32)
        return self.op("DequantizeLinear", self.constant(values), scales, np.zeros(scales.shape, np.int32), axis=0)

    def q_conv(self, x: str, x_scale: float, channels: tuple[int, int], kernel: int, **attributes: Any) -> str:
        """An INT8 convolution whose arithmetic is exact in float32; returns its float output."""
        out, per_group = channels
        w, scales = self.int8_weights(out, per_group, kernel, kernel, axis=0)
        return self.op("Conv", x, w, self.int32_bias(scales * np.float32(x_scale)), **attributes)

    def declare(self, value: str, *shape: int) -> str:
        """States the shape of a float value that ONNX's inference leaves open."""
        self.known.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, shape))
        return value

    def model(self, *outputs: str) -> onnx.ModelProto:
        stated = {info.name: info for info in self.known}
        infos = [stated.get(name) or helper.make_empty_tensor_value_info(name) for name in outputs]
        self.known = [info for info in self.known if info.name not in outputs]
        graph = helper.make_graph(self.nodes, "case", self.inputs, infos, self.constants, value_info=self.known)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("edgekit", 1)]
        bare = ir.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=10))
        edgekit_ops.declare(bare)
        model = ir.to_proto(bare)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)

    def feeds(self, scale: float = 1.0) -> dict[str, Array]:
        """Random feeds of every input."""
        feeds = {}
        for info in self.inputs:
            shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
            dtype = self._input_dtypes[info.name]
            if dtype == np.float32:
                feeds[info.name] = self.rng.normal(0, scale, shape).astype(np.float32)
            elif dtype.kind == "b":
                feeds[info.name] = self.rng.integers(0, 2, shape).astype(bool)
            else:
                feeds[info.name] = self.rng.integers(0 if dtype.kind == "u" else -5, 6, shape).astype(dtype)
        return feeds


def onnxruntime_outputs(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """ONNX Runtime with all graph optimisations off."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def lowered(model: onnx.ModelProto, isa: str = "x86_avx2", options: LowerOptions | None = None) -> LoweredModel:
    return lower([BucketModel({}, ir.from_proto(model))], isa, options)


def run_lowered(result: LoweredModel, feeds: Mapping[str, Array], plan_index: int = 0) -> dict[str, Array]:
    """Runs the parts in order: native programs in the interpreter, the others in ONNX Runtime."""
    return _run_parts(result, feeds, lambda data, given: run_program(read_program(data), given, plan_index))


def run_natively(
    result: LoweredModel, feeds: Mapping[str, Array], plan_index: int = 0, isa: str = ""
) -> dict[str, Array]:
    """Runs the parts in order: native programs in the native core with one thread."""

    def run(data: bytes, given: Mapping[str, Array]) -> dict[str, Array]:
        session = _native.Session(_native.Program.from_bytes(data, isa), 1)
        return session.run(
            {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in given.items()}, plan_index
        )

    return _run_parts(result, feeds, run)


def _run_parts(
    result: LoweredModel, feeds: Mapping[str, Array], run: Callable[[bytes, Mapping[str, Array]], dict[str, Array]]
) -> dict[str, Array]:
    values = dict(feeds)
    for part in result.parts:
        given = {name: values[name] for name in part.inputs}
        values |= (
            run(part.data, given)
            if part.kind == "native"
            else onnxruntime_outputs(onnx.load_from_string(part.data), given)
        )
    return values


def opcodes(result: LoweredModel) -> list[str]:
    """Opcodes of the first plan of all native parts."""
    return [op.opcode for part in result.parts if part.kind == "native" for op in read_program(part.data).plans[0].ops]


def assert_close(
    expected: Mapping[str, Array], got: Mapping[str, Array], names: Sequence[str], rtol: float = 2e-5
) -> None:
    for name in names:
        assert expected[name].shape == got[name].shape, name
        assert expected[name].dtype == got[name].dtype, name
        scale = np.abs(expected[name]).max() if expected[name].dtype.kind == "f" and expected[name].size else 1.0
        np.testing.assert_allclose(got[name], expected[name], rtol=rtol, atol=rtol * max(scale, 1e-3), err_msg=name)
