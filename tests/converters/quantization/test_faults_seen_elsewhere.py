"""Rows of the table of faults seen in other toolchains that quantization answers for; each a small graph."""

import numpy as np
import pytest
from onnx import helper
from reference.qdq_graphs import conv, make_model, precision, quantized, run, sqnr_db

from edgekit.converters.quantization.observers import TensorObserver
from edgekit.converters.quantization.ranges import choose_range
from edgekit.converters.quantization.weights import channel_scales


def agreement_db(model, result, feeds):
    """Signal over noise of the quantized outputs; nan, and so no agreement, if one is not finite."""
    return sqnr_db(run(model, feeds)[0], run(result.model, feeds)[0])


def test_boxes_and_scores_never_share_a_scale():
    c = {"s": np.array(640, np.float32)}
    nodes = [
        conv("boxes", "x", "b", 3, 4, c),
        conv("scores", "x", "l", 3, 8, c, seed=1),
        helper.make_node("Mul", ["b", "s"], ["pixels"], name="mul"),
        helper.make_node("Sigmoid", ["l"], ["p"], name="sigmoid"),
        helper.make_node("Concat", ["pixels", "p"], ["y"], name="concat", axis=1),
    ]
    model = make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], c)
    result, feeds = quantized(model, (1, 3, 8, 8))
    exact, got = run(model, feeds)[0], run(result.model, feeds)[0]
    assert sqnr_db(exact[:, 4:], got[:, 4:]) > 30
    assert precision(result, "concat") == "fp32"


def test_expectation_of_a_distribution_stays_float():
    c = {"bins": np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1)}
    nodes = [
        conv("a", "x", "t", 3, 16, c),
        helper.make_node("Softmax", ["t"], ["p"], name="softmax", axis=1),
        helper.make_node("Conv", ["p", "bins"], ["y"], name="dfl"),
    ]
    model = make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], c)
    result, _ = quantized(model, (1, 3, 8, 8))
    assert precision(result, "dfl") == "fp32"
    assert precision(result, "a") == "int8"


def test_bias_never_overflows():
    c = {}
    node = conv("a", "x", "y", 3, 8, c)
    c["a_w"] *= np.float32(1e-9)
    c["a_b"][:] = 5
    model = make_model([node], {"x": [1, 3, 8, 8]}, ["y"], c)
    result, feeds = quantized(model, (1, 3, 8, 8))
    np.testing.assert_allclose(run(result.model, feeds)[0], 5, rtol=0.01)


def test_gemm_bias_of_shape_1_n():
    rng = np.random.default_rng(0)
    c = {"w": rng.normal(size=(6, 5)).astype(np.float32), "b": rng.normal(size=(1, 5)).astype(np.float32)}
    model = make_model([helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="g")], {"x": [2, 6]}, ["y"], c)
    result, feeds = quantized(model, (2, 6))
    assert agreement_db(model, result, feeds) > 30


def test_names_never_collide():
    c = {}
    nodes = [conv("a", "x", "a_bias_quantized", 3, 4, c), conv("b", "a_bias_quantized", "y", 4, 4, c)]
    nodes[1].input[2] = "a_b"
    model = make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], c)
    result, feeds = quantized(model, (1, 3, 8, 8))
    assert agreement_db(model, result, feeds) > 25
    names = [value.name for node in result.model.graph for value in node.outputs]
    assert len(names) == len(set(names))


def test_transposed_convolution_with_groups():
    rng = np.random.default_rng(0)
    c = {"w": rng.normal(size=(4, 3, 3, 3)).astype(np.float32), "b": rng.normal(size=6).astype(np.float32)}
    c["w"][:, 1] *= 50
    nodes = [helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], name="t", group=2, strides=[2, 2])]
    model = make_model(nodes, {"x": [1, 4, 5, 5]}, ["y"], c)
    result, feeds = quantized(model, (1, 4, 5, 5))
    assert agreement_db(model, result, feeds) > 25


def test_weight_of_three_dimensions_scales_along_the_last():
    rng = np.random.default_rng(0)
    c = {"w": (rng.normal(size=(2, 8, 6)) * np.geomspace(0.01, 10, 6)).astype(np.float32)}
    model = make_model([helper.make_node("MatMul", ["x", "w"], ["y"], name="m")], {"x": [2, 3, 8]}, ["y"], c)
    result, _ = quantized(model, (2, 3, 8))
    weight = next(node for node in result.model.graph if node.name == "m").inputs[1].producer()
    assert weight.attributes["axis"].as_int() == 2
    assert weight.inputs[1].const_value.numpy().shape == (6,)


def test_residual_branch_is_quantized():
    c = {}
    nodes = [
        conv("a", "x", "t", 3, 4, c),
        helper.make_node("Relu", ["t"], ["u"], name="relu"),
        conv("b", "u", "v", 4, 4, c),
        helper.make_node("Add", ["u", "v"], ["w"], name="add"),
        conv("d", "w", "y", 4, 4, c),
    ]
    model = make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], c)
    result, feeds = quantized(model, (1, 3, 8, 8))
    add = next(node for node in result.model.graph if node.name == "add")
    assert [value.producer().op_type for value in add.inputs] == ["DequantizeLinear"] * 2
    assert agreement_db(model, result, feeds) > 25


@pytest.mark.parametrize(("mode", "same"), [("nearest", True), ("linear", False)])
def test_resize_inherits_or_requantizes(mode, same):
    c = {"scales": np.array([1, 1, 2, 2], np.float32)}
    resize = helper.make_node("Resize", ["t", "", "scales"], ["u"], name="resize", mode=mode)
    nodes = [conv("a", "x", "t", 3, 4, c), resize, conv("b", "u", "y", 4, 4, c)]
    model = make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], c)
    result, feeds = quantized(model, (1, 3, 8, 8), method="minmax")
    node = next(node for node in result.model.graph if node.name == "resize")
    before, after = node.inputs[0].producer(), next(use.node for use in node.outputs[0].uses())
    assert after.op_type == "QuantizeLinear"
    scales = [float(n.inputs[1].const_value.numpy()) for n in (before, after)]
    assert (scales[0] == scales[1]) is same
    assert agreement_db(model, result, feeds) > 25


def test_weights_shared_by_two_roles_are_kept_apart():
    rng = np.random.default_rng(0)
    c = {"e": rng.normal(size=(8, 8)).astype(np.float32), "i": np.array([1, 3], np.int64)}
    nodes = [
        helper.make_node("Gather", ["e", "i"], ["rows"], name="gather"),
        helper.make_node("MatMul", ["x", "e"], ["m"], name="matmul"),
        helper.make_node("Add", ["m", "rows"], ["y"], name="add"),
    ]
    model = make_model(nodes, {"x": [2, 8]}, ["y"], c)
    result, feeds = quantized(model, (2, 8))
    assert precision(result, "matmul") == "int8"
    assert next(node for node in result.model.graph if node.name == "gather").inputs[0].name == "e"
    assert agreement_db(model, result, feeds) > 25


def test_dead_and_tiny_channels():
    weight = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    weight[0] = 0
    weight[1] *= 1e-6
    scale = channel_scales(weight, 0)
    assert (scale > 0).all() and np.isfinite(scale).all()
    observer = TensorObserver("dead")
    observer.update(np.zeros(10, np.float32))
    assert choose_range(observer, "auto").quant.scale > 0


def test_layer_norm_stays_float():
    rng = np.random.default_rng(0)
    c = {"w": rng.normal(size=(8, 8)).astype(np.float32), "g": np.ones(8, np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["t"], name="m"),
        helper.make_node("LayerNormalization", ["t", "g"], ["y"], name="norm"),
    ]
    model = make_model(nodes, {"x": [2, 8]}, ["y"], c)
    result, _ = quantized(model, (2, 8))
    assert precision(result, "norm") == "fp32"


def test_the_same_model_twice():
    c = {}
    model = make_model([conv("a", "x", "y", 3, 8, c)], {"x": [1, 3, 8, 8]}, ["y"], c)
    first, feeds = quantized(model, (1, 3, 8, 8))
    second, _ = quantized(model, (1, 3, 8, 8))
    np.testing.assert_array_equal(run(first.model, feeds)[0], run(second.model, feeds)[0])
