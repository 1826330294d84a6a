"""ONNX QDQ for every kind of target, and OpenVINO IR: same numbers as the canonical graph."""

from __future__ import annotations

import logging

import numpy as np
import onnx
import pytest

from edgekit.converters.emitters.onnx_qdq import QdqOptions, emit_onnx, options_for
from edgekit.converters.emitters.openvino_ir import emit_openvino
from edgekit.converters.float_reference import FloatReference
from edgekit.converters.passes.shapes import infer_shapes
from edgekit.converters.passes.smooth_activations import SILU
from edgekit.converters.verify.accuracy import sqnr_of
from edgekit.errors import UnsupportedError

QDQ = """g (float[1,4,6,6] x) => (float[1,3,4,4] y)
    { q = QuantizeLinear (x, xs, xz) d = DequantizeLinear (q, xs, xz) k = DequantizeLinear <axis = 0> (w, ws)
      b = DequantizeLinear <axis = 0> (bi, bs) c = Conv (d, k, b) p = QuantizeLinear (c, ys, yz)
      y = DequantizeLinear (p, ys, yz) }"""


@pytest.fixture
def quantized(build):
    rng = np.random.default_rng(0)
    ws = np.array([0.01, 0.02, 0.03], np.float32)
    return build(
        QDQ,
        xs=np.float32(0.05),
        xz=np.int8(-3),
        ys=np.float32(0.2),
        yz=np.int8(-128),
        w=rng.integers(-127, 128, (3, 4, 3, 3)).astype(np.int8),
        ws=ws,
        bi=rng.integers(-2000, 2000, 3).astype(np.int32),
        bs=ws * np.float32(0.05),
    )


@pytest.fixture
def feeds():
    return {"x": np.random.default_rng(1).uniform(-6, 6, (1, 4, 6, 6)).astype(np.float32)}


def test_u8_activations_are_exact(quantized, feeds):
    expected = FloatReference(quantized).run(feeds)["y"]
    data = emit_onnx(quantized, QdqOptions("u8"))
    assert np.array_equal(FloatReference(data).run(feeds)["y"], expected)
    types = {i.name: i.data_type for i in onnx.load_from_string(data).graph.initializer}
    assert onnx.TensorProto.UINT8 in types.values()
    assert types["w"] == onnx.TensorProto.INT8


def test_seven_bit_weights_never_saturate_pairs(quantized, feeds):
    """Fault "answers differ by CPU: 16-bit pair saturation": 2 * 255 * 64 < 2^15."""
    data = emit_onnx(quantized, QdqOptions("u8", seven_bit_weights=True))
    arrays = [onnx.numpy_helper.to_array(i) for i in onnx.load_from_string(data).graph.initializer]
    weights = [a for a in arrays if a.dtype == np.int8 and a.ndim == 4]
    assert len(weights) == 1
    assert 2 * 255 * int(np.abs(weights[0].astype(int)).max()) < 2**15
    expected = FloatReference(quantized).run(feeds)["y"]
    assert sqnr_of(expected, FloatReference(data).run(feeds)["y"]) > 25


def test_the_scheme_follows_the_cpu():
    assert options_for("aarch64", ("asimddp",)) == QdqOptions("s8", False)
    assert options_for("x86_64", ("avx2", "avx_vnni")) == QdqOptions("u8", False)
    assert options_for("x86_64", ("avx2", "fma")) == QdqOptions("u8", True)


def test_silu_is_expanded_to_standard_operators(build, feeds):
    model = build("g (float[1,4,6,6] x) => (float[1,4,6,6] y) { s = Sigmoid (x) y = Mul (x, s) }")
    expected = FloatReference(model).run(feeds)["y"]
    infer_shapes(model)
    SILU.apply(model, None)
    data = emit_onnx(model, QdqOptions())
    proto = onnx.load_from_string(data)
    assert {n.domain for n in proto.graph.node} == {""}
    assert not proto.functions
    assert np.array_equal(FloatReference(data).run(feeds)["y"], expected)


def test_openvino_ir_loads_and_agrees(quantized, feeds, tmp_path):
    openvino = pytest.importorskip("openvino")
    files = emit_openvino(emit_onnx(quantized, QdqOptions("u8", seven_bit_weights=True)))
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    compiled = openvino.Core().compile_model(str(tmp_path / "model.xml"), "CPU")
    got = next(iter(compiled([feeds["x"]]).values()))
    assert sqnr_of(FloatReference(quantized).run(feeds)["y"], np.asarray(got)) > 25


def logging_state() -> tuple:
    root = logging.getLogger()
    return root.level, list(root.filters), list(root.handlers)


def test_openvino_refuses_what_it_can_not_read():
    pytest.importorskip("openvino")
    before = logging_state()
    with pytest.raises(UnsupportedError) as caught:
        emit_openvino(b"no model")
    assert "\n" not in str(caught.value)
    assert logging_state() == before


def test_openvino_leaves_the_logging_of_the_application_alone(quantized):
    pytest.importorskip("openvino")
    before = logging_state()
    emit_openvino(emit_onnx(quantized, QdqOptions("u8", seven_bit_weights=True)))
    assert logging_state() == before
