"""Small graphs, each with what other toolchains get wrong; run in ONNX Runtime with the graph left as it is."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgekit.converters.quantization import QuantizeOptions, quantize
from edgekit.errors import CalibrationError, UsageError


class Samples:
    def __init__(self, feeds):
        self.feeds = feeds

    def __len__(self):
        return len(self.feeds)

    def __iter__(self):
        return iter(self.feeds)


def make_model(nodes, inputs, outputs, constants):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return ir.from_proto(onnx.shape_inference.infer_shapes(proto, strict_mode=True))


def run(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def sqnr_db(reference, got):
    noise = float(((reference - got) ** 2).sum())
    return 10 * np.log10(float((reference**2).sum()) / max(noise, 1e-30))


def quantized(model, shape, count=16, scale=1.0, **options):
    rng = np.random.default_rng(3)
    name = model.graph.inputs[0].name
    feeds = [{name: (scale * rng.normal(size=shape)).astype(np.float32)} for _ in range(count)]
    return quantize(model, Samples(feeds), QuantizeOptions(**options)), feeds[0]


def conv(name, x, y, channels_in, channels_out, constants, kernel=3, seed=0, **attributes):
    rng = np.random.default_rng(seed)
    groups = attributes.get("group", 1)
    constants[f"{name}_w"] = (
        rng.normal(size=(channels_out, channels_in // groups, kernel, kernel)) / kernel / np.sqrt(channels_in / groups)
    ).astype(np.float32)
    constants[f"{name}_b"] = rng.normal(size=channels_out).astype(np.float32) / 10
    pads = [kernel // 2] * 4
    return helper.make_node("Conv", [x, f"{name}_w", f"{name}_b"], [y], name=name, pads=pads, **attributes)


def op_types(model):
    return [node.op_type for node in model.graph]


def precision(result, name):
    return {row.name: row.planned for row in result.plan}[name]


def test_relu_is_absorbed_and_nothing_is_quantized_between():
    c = {}
    nodes = [
        conv("a", "x", "t", 3, 8, c),
        helper.make_node("Relu", ["t"], ["u"], name="relu"),
        conv("b", "u", "y", 8, 4, c),
    ]
    model = make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], c)
    result, feeds = quantized(model, (1, 3, 8, 8))
    assert op_types(result.model).count("QuantizeLinear") == 3  # x, u, y
    relu = next(node for node in result.model.graph if node.op_type == "Relu")
    assert relu.inputs[0].producer().op_type == "Conv"
    quantize_u = next(use.node for use in relu.outputs[0].uses())
    assert quantize_u.inputs[2].const_value.numpy() == -128
    assert sqnr_db(run(model, feeds)[0], run(result.model, feeds)[0]) > 30
    assert [output.name for output in result.model.graph.outputs] == ["y"]


def test_the_argument_is_not_changed():
    c = {}
    model = make_model([conv("a", "x", "y", 3, 8, c)], {"x": [1, 3, 8, 8]}, ["y"], c)
    before = ir.to_proto(model).SerializeToString()
    quantized(model, (1, 3, 8, 8))
    assert ir.to_proto(model).SerializeToString() == before


def test_silu_written_out_is_one_table():
    c = {}
    nodes = [
        conv("a", "x", "t", 3, 8, c),
        helper.make_node("Sigmoid", ["t"], ["s"], name="sigmoid"),
        helper.make_node("Mul", ["t", "s"], ["u"], name="mul"),
        conv("b", "u", "y", 8, 4, c),
    ]
    model = make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], c)
    result, feeds = quantized(model, (1, 3, 8, 8))
    assert op_types(result.model).count("QuantizeLinear") == 4  # x, t, u, y; not s
    assert sqnr_db(run(model, feeds)[0], run(result.model, feeds)[0]) > 30


def test_keep_float_is_honoured_and_an_unknown_name_is_refused():
    c = {}
    model = make_model([conv("a", "x", "t", 3, 8, c), conv("b", "t", "y", 8, 4, c)], {"x": [1, 3, 8, 8]}, ["y"], c)
    result, _ = quantized(model, (1, 3, 8, 8), keep_float=("b",))
    assert precision(result, "a") == "int8"
    assert precision(result, "b") == "fp32"
    kept = next(node for node in result.model.graph if node.name == "b")
    assert kept.inputs[1].is_initializer()
    with pytest.raises(UsageError, match="nowhere"):
        quantized(model, (1, 3, 8, 8), keep_float=("nowhere",))


def test_no_samples_is_refused():
    c = {}
    model = make_model([conv("a", "x", "y", 3, 8, c)], {"x": [1, 3, 8, 8]}, ["y"], c)
    with pytest.raises(CalibrationError):
        quantize(model, Samples([]), QuantizeOptions())
