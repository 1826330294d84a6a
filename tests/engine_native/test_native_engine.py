"""The native engine: chains of parts, buckets, errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from engine_native.programs import inverted, inverter, pointwise
from onnx import TensorProto, helper

from edgekit import _native
from edgekit.engines.base import Artefact, Engine, EngineOptions
from edgekit.engines.native import NativeEngine
from edgekit.errors import EngineError, PackageError, TensorError
from edgekit.package.manifest import Part, Variant
from edgekit.package.specs import TensorSpec

_X = TensorSpec("x", "float32", (2, 5))


def _artefact(
    folder: Path,
    members: dict[str, bytes],
    parts: tuple[Part, ...],
    inputs: list[TensorSpec],
    outputs: list[TensorSpec],
    buckets: tuple[dict[str, int], ...] = (),
) -> Artefact:
    files = {}
    for member, data in members.items():
        path = folder / Path(member).name
        path.write_bytes(data)
        files[member] = (str(path), 0, len(data))
    variant = Variant("native-scalar", "native", "scalar", tuple(members), parts)
    return Artefact(variant, files, tuple(inputs), tuple(outputs), buckets)


def _single(folder: Path, data: bytes, inputs: list[TensorSpec], outputs: list[TensorSpec], **rest: object) -> Artefact:
    part = Part("native", "program.ekn", tuple(i.name for i in inputs), tuple(o.name for o in outputs))
    return _artefact(folder, {"program.ekn": data}, (part,), inputs, outputs, **rest)  # type: ignore[arg-type]


def _doubler() -> bytes:
    """z = 2 * float(y) as an ONNX model: y u8 [2, 5]."""
    graph = helper.make_graph(
        [helper.make_node("Cast", ["y"], ["f"], to=TensorProto.FLOAT), helper.make_node("Add", ["f", "f"], ["z"])],
        "doubler",
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [2, 5])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 5])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _x(width: int = 5) -> np.ndarray:
    return np.random.default_rng(width).uniform(-2, 18, (2, width)).astype(np.float32)


def test_is_an_engine() -> None:
    engine: Engine = NativeEngine()
    capabilities = engine.capabilities()
    assert capabilities.available
    assert _native.active_isa() in capabilities.version


def test_one_part(tmp_path: Path) -> None:
    artefact = _single(tmp_path, inverter(5), [_X], [TensorSpec("y", "uint8", (2, 5))])
    model = NativeEngine().compile(artefact, EngineOptions(threads=1))
    session = model.create_session()
    np.testing.assert_array_equal(session.run({"x": _x()})["y"], inverted(_x()))
    assert model.memory_bytes()["weights"] >= 256
    assert session.memory_bytes() > 0
    with pytest.raises(TensorError):
        session.run({"x": _x(6)})


def test_buckets(tmp_path: Path) -> None:
    artefact = _single(
        tmp_path,
        inverter(5, 9),
        [TensorSpec("x", "float32", (2, "w"))],
        [TensorSpec("y", "uint8", (2, "w"))],
        buckets=({"w": 5}, {"w": 9}),
    )
    session = NativeEngine().compile(artefact, EngineOptions()).create_session()
    for width in (9, 5):
        np.testing.assert_array_equal(session.run({"x": _x(width)})["y"], inverted(_x(width)))


def test_part_on_onnx_runtime_and_a_part_behind_it(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    parts = (
        Part("native", "program.ekn", ("x",), ("y",)),
        Part("onnxruntime", "part1.onnx", ("y",), ("z",)),
    )
    artefact = _artefact(
        tmp_path,
        {"program.ekn": inverter(5), "part1.onnx": _doubler()},
        parts,
        [_X],
        [TensorSpec("z", "float32", (2, 5)), TensorSpec("y", "uint8", (2, 5))],
    )
    assert NativeEngine().supports(artefact.variant) is None
    session = NativeEngine().compile(artefact, EngineOptions(threads=1)).create_session()
    outputs = session.run({"x": _x()})
    assert list(outputs) == ["z", "y"]
    np.testing.assert_array_equal(outputs["z"], 2.0 * inverted(_x()))
    assert [layer.op for layer in session.profile({"x": _x()})] == ["convert", "lut_q8", "subgraph"]


def test_profile_names_layers(tmp_path: Path) -> None:
    conv = pointwise(64)
    spec_x = TensorSpec("x", "uint8", conv.x.shape)
    artefact = _single(tmp_path, conv.data, [spec_x], [TensorSpec("y", "uint8", (1, 1, 64, 48))])
    (layer,) = NativeEngine().compile(artefact, EngineOptions()).create_session().profile({"x": conv.x})
    assert (layer.name, layer.op, layer.kernel, layer.macs) == ("conv_q8_0", "conv_q8", "gemm_u8s8_1xn_scalar", 7)
    assert layer.time_us > 0
    assert layer.bytes_moved == conv.x.nbytes + conv.w.nbytes + conv.bias.nbytes + conv.scale.nbytes + 64 * 48


def test_closed_session_and_model(tmp_path: Path) -> None:
    artefact = _single(tmp_path, inverter(5), [_X], [TensorSpec("y", "uint8", (2, 5))])
    model = NativeEngine().compile(artefact, EngineOptions())
    session = model.create_session()
    session.close()
    session.close()
    with pytest.raises(EngineError, match="closed"):
        session.run({"x": _x()})
    model.close()
    model.close()
    with pytest.raises(EngineError, match="closed"):
        model.create_session()


def test_supports_names_the_reason() -> None:
    engine = NativeEngine()
    assert "openvino" in str(engine.supports(Variant("v", "openvino", None, ())))
    other = "arm_neon" if _native.best_isa().startswith("x86") else "x86_avx2"
    assert other in str(engine.supports(Variant("v", "native", other, ())))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((), "no parts"),
        ((Part("native", "program.ekn", ("w",), ("y",)),), "nothing gives"),
        ((Part("native", "program.ekn", ("x",), ("v",)),), "gives this output"),
        ((Part("native", "absent.ekn", ("x",), ("y",)),), "lacks a member"),
        ((Part("native", "program.ekn", ("x", "x"), ("y",)),), "inputs of the program differ"),
        ((Part("native", "program.ekn", ("x",), ("y", "v")),), "outputs of the program differ"),
    ],
)
def test_parts_that_do_not_fit_are_refused(tmp_path: Path, parts: tuple[Part, ...], message: str) -> None:
    outputs = [TensorSpec("y", "uint8", (2, 5))]
    artefact = _artefact(tmp_path, {"program.ekn": inverter(5)}, parts, [_X], outputs)
    with pytest.raises(PackageError, match=message):
        NativeEngine().compile(artefact, EngineOptions())


def test_number_of_buckets_must_fit(tmp_path: Path) -> None:
    artefact = _single(tmp_path, inverter(5, 9), [_X], [TensorSpec("y", "uint8", (2, 5))])
    with pytest.raises(PackageError, match="shape buckets"):
        NativeEngine().compile(artefact, EngineOptions())
