"""Precision auto: what stays float when single tensors ruin the outputs."""

import numpy as np
import pytest
from onnx import helper
from reference.qdq_graphs import conv, make_model, precision, quantized, run, sqnr_db


def fragile_model():
    """Two branches; one can't be rounded: its large offset is taken away again, and only fine detail counts.

    x -> a -> b -> out
      -> wide -> + 1000 -> - 1000 -> out
    """
    c = {"far": np.array([1000.0], np.float32), "back": np.array([-1000.0], np.float32)}
    nodes = [
        conv("a", "x", "t", 3, 16, c),
        helper.make_node("Relu", ["t"], ["u"], name="relu"),
        conv("b", "u", "robust", 16, 8, c, seed=1),
        conv("wide", "x", "v", 3, 16, c, kernel=1, seed=2),
        conv("narrow", "v", "fragile", 16, 8, c, kernel=1, seed=3),
        helper.make_node("Add", ["robust", "fragile"], ["y"], name="sum"),
    ]
    c["wide_b"] += 1000.0
    c["narrow_b"] -= (c["narrow_w"].sum(axis=(1, 2, 3)) * 1000.0).astype(np.float32)
    return make_model(nodes, {"x": [1, 3, 12, 12]}, ["y"], c)


def test_int8_rounds_it_nevertheless_and_auto_leaves_the_fragile_layers_float():
    model = fragile_model()
    plain, feeds = quantized(model, (1, 3, 12, 12), precision="int8")
    chosen, _ = quantized(model, (1, 3, 12, 12), precision="auto")
    exact = run(model, feeds)[0]
    assert sqnr_db(exact, run(plain.model, feeds)[0]) < 20
    assert sqnr_db(exact, run(chosen.model, feeds)[0]) >= 20
    assert {precision(plain, name) for name in ("a", "b", "wide", "narrow")} == {"int8"}
    assert precision(chosen, "narrow") == "fp32"
    assert {precision(chosen, name) for name in ("a", "b")} == {"int8"}
    row = next(row for row in chosen.plan if row.name == "narrow")
    assert "dB" in row.reason
    assert any("narrow" in note for note in chosen.notes)


@pytest.mark.parametrize("precision_wish", ["int8", "auto"])
def test_nothing_is_searched_when_the_outputs_are_good(precision_wish):
    c = {}
    model = make_model([conv("a", "x", "t", 3, 8, c), conv("b", "t", "y", 8, 4, c)], {"x": [1, 3, 8, 8]}, ["y"], c)
    result, _ = quantized(model, (1, 3, 8, 8), precision=precision_wish)
    assert {row.planned for row in result.plan} == {"int8"}
    assert not any(name.startswith("sqnr_alone") for name in result.figures)


def test_a_wish_that_no_layer_can_grant_ends_and_keeps_most_in_integers():
    model = fragile_model()
    result, _ = quantized(model, (1, 3, 12, 12), precision="auto", target_db=200.0)
    assert result.figures["int8_mac_share"] >= 0.7
