"""Small packages for tests: one float network as ONNX, OpenVINO IR and native program, with golden data."""

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from edgekit.package.golden import GoldenSample, golden_members
from edgekit.package.manifest import Manifest, Part, Variant
from edgekit.package.specs import PostprocessSpec, PreprocessSpec, TensorSpec
from edgekit.package.writer import write_package

INPUTS = (TensorSpec("/image", "float32", (1, 3, 8, 8), "nchw"), TensorSpec("bias", "float32", (1, 4)))
OUTPUTS = (TensorSpec("scores", "float32", (1, 4)), TensorSpec("/features", "float32", (1, 4, 8, 8), "nchw"))


def small_network(opset: int = 21) -> onnx.ModelProto:
    """Conv 3x3, Relu, global average pool, plus a bias: two inputs, two outputs, names with slashes."""
    random = np.random.default_rng(7)
    weight = numpy_helper.from_array(random.standard_normal((4, 3, 3, 3)).astype(np.float32), "weight")
    axes = numpy_helper.from_array(np.array([2, 3], np.int64), "axes")
    nodes = [
        helper.make_node("Conv", ["/image", "weight"], ["conv"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv"], ["/features"], name="relu"),
        helper.make_node("ReduceMean", ["/features", "axes"], ["mean"], name="mean", keepdims=0),
        helper.make_node("Add", ["mean", "bias"], ["scores"], name="add"),
    ]
    inputs = [helper.make_tensor_value_info(spec.name, TensorProto.FLOAT, spec.shape) for spec in INPUTS]
    outputs = [helper.make_tensor_value_info(spec.name, TensorProto.FLOAT, spec.shape) for spec in OUTPUTS]
    graph = helper.make_graph(nodes, "small", inputs, outputs, [weight, axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(model)
    return model


def small_feeds(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {spec.name: random.standard_normal(spec.shape).astype(np.float32) for spec in INPUTS}


def reference(feeds: dict[str, np.ndarray], model: onnx.ModelProto | None = None) -> dict[str, np.ndarray]:
    """What ONNX Runtime itself computes."""
    session = onnxruntime.InferenceSession((model or small_network()).SerializeToString())
    names = [spec.name for spec in OUTPUTS]
    return dict(zip(names, session.run(names, feeds), strict=True))


def openvino_ir(model: onnx.ModelProto) -> tuple[bytes, bytes]:
    import openvino

    converted = openvino.Core().read_model(model.SerializeToString())
    with tempfile.TemporaryDirectory() as folder:
        openvino.save_model(converted, Path(folder) / "model.xml", compress_to_fp16=False)
        return (Path(folder) / "model.xml").read_bytes(), (Path(folder) / "model.bin").read_bytes()


def small_manifest(variants: tuple[Variant, ...] = ()) -> Manifest:
    return Manifest(
        format_major=1,
        format_minor=0,
        converter_version="0.1.0",
        source_sha256=hashlib.sha256(b"small").hexdigest(),
        source_name="small.onnx",
        profile="this-machine",
        profile_sha256="0" * 64,
        inputs=INPUTS,
        outputs=OUTPUTS,
        variants=variants or (Variant("onnx", "onnxruntime", None, ("variants/onnx/model.onnx",)),),
        members={},
    )


def small_package(path: Path, openvino: bool = False, samples: int = 1) -> Path:
    """Writes a package of the small network with golden data; its only variants are onnx and, if wanted, openvino."""
    network = small_network()
    variants = [Variant("onnx", "onnxruntime", None, ("variants/onnx/model.onnx",))]
    members: dict[str, bytes | Path] = {"variants/onnx/model.onnx": network.SerializeToString()}
    if openvino:
        names = ("variants/openvino/model.xml", "variants/openvino/model.bin")
        variants.append(Variant("openvino", "openvino", None, names))
        members |= dict(zip(names, openvino_ir(network), strict=True))
    manifest = small_manifest(tuple(variants))
    golden = [GoldenSample(small_feeds(seed), reference(small_feeds(seed), network)) for seed in range(samples)]
    members |= golden_members(manifest, golden, {"scores": 60.0, "/features": 60.0})
    members["report.json"] = b"{}"
    write_package(path, manifest, members)
    return path


def native_program(model: onnx.ModelProto, isa: str) -> bytes:
    """Lowers a network whose every op is native to one program.ekn."""
    import onnx_ir

    from edgekit.converters.contracts import BucketModel
    from edgekit.converters.lowering import lower

    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    lowered = lower([BucketModel({}, onnx_ir.from_proto(inferred))], isa)
    (part,) = lowered.parts
    return part.data


def engine_package(path: Path, engine: str) -> Path:
    """Writes a package of the small network whose one variant is made for that engine; simulated gets the ONNX one."""
    network = small_network()
    if engine == "openvino":
        names: tuple[str, ...] = ("variants/v/model.xml", "variants/v/model.bin")
        variant = Variant("v", "openvino", None, names)
        data: tuple[bytes, ...] = openvino_ir(network)
    elif engine == "native":
        from edgekit import _native

        isa = _native.active_isa()
        names = ("variants/v/program.ekn",)
        inputs, outputs = (tuple(spec.name for spec in specs) for specs in (INPUTS, OUTPUTS))
        variant = Variant("v", "native", isa, names, (Part("native", names[0], inputs, outputs),))
        data = (native_program(network, isa),)
    else:
        names, data = ("variants/v/model.onnx",), (network.SerializeToString(),)
        variant = Variant("v", "onnxruntime", None, names)
    write_package(path, small_manifest((variant,)), dict(zip(names, data, strict=True)))
    return path


def means_package(path: Path) -> Path:
    """Writes a "classifier" of 16 x 16 pictures whose scores are the means of red, green and blue; for ONNX Runtime."""
    node = helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3], keepdims=0)
    graph = helper.make_graph(
        [node], "means",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 16, 16))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 3))],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    member = "variants/onnx/model.onnx"
    manifest = Manifest(
        1, 0, "test", "0" * 64, "means.onnx", "this-machine", "0" * 64,
        inputs=(TensorSpec("x", "float32", (1, 3, 16, 16), "nchw"),), outputs=(TensorSpec("y", "float32", (1, 3)),),
        variants=(Variant("onnx", "onnxruntime", None, (member,)),), members={},
        preprocess=PreprocessSpec(resize="stretch"), postprocess=PostprocessSpec("classify", "probabilities", top_k=1),
        labels=("red", "green", "blue"),
    )  # fmt: skip
    write_package(path, manifest, {member: model.SerializeToString()})
    return path
