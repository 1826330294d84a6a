"""Placement and options on small graphs."""

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper
from reference.qdq_graphs import Samples, conv, make_model, op_types, precision, quantized, run, sqnr_db

from edgekit.converters.quantization import QuantizeOptions, quantize
from edgekit.errors import CalibrationError, UsageError


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


def test_layers_inside_branches_are_named():
    c = {}
    body = [conv("inner", "x", "inside", 3, 4, c)]
    branches = [
        helper.make_graph(body, f"{side}_branch", [], [helper.make_tensor_value_info("inside", 1, None)])
        for side in ("then", "else")
    ]
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["peak"], name="peak", keepdims=0),
        helper.make_node("Greater", ["peak", "limit"], ["flag"], name="flag"),
        helper.make_node("If", ["flag"], ["t"], name="choice", then_branch=branches[0], else_branch=branches[1]),
        conv("outer", "t", "y", 4, 4, c),
    ]
    c["limit"] = np.array(0, np.float32)
    model = make_model(nodes, {"x": [1, 3, 8, 8]}, ["y"], c)
    result, _ = quantized(model, (1, 3, 8, 8))
    assert precision(result, "outer") == "int8"
    assert any("branches" in note and "inner" in note for note in result.notes)
