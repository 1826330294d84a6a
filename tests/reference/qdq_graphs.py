"""Small graphs and how to run them: in ONNX Runtime, with the graph left as it is."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from edgekit.converters.quantization import QuantizeOptions, quantize


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
