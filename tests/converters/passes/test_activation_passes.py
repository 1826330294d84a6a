"""Decomposed activations and norms as exporters write them: one node each, same numbers in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

from edgekit.converters.passes.clips import CLIPS
from edgekit.converters.passes.hard_activations import HARD_SIGMOID, HARD_SWISH
from edgekit.converters.passes.norms import LAYER_NORM, RMS_NORM
from edgekit.converters.passes.smooth_activations import GELU, MISH, SILU

CONSTANTS = {
    "zero": 0.0,
    "half": 0.5,
    "one": 1.0,
    "two": 2.0,
    "three": 3.0,
    "six": 6.0,
    "sixth": 1 / 6,
    "fifth": 0.2,
    "root2": 2**0.5,
    "root_half": 0.5**0.5,
    "root_2_pi": (2 / np.pi) ** 0.5,
    "cubic": 0.044715,
    "eps": 1e-5,
}


@pytest.fixture
def unary(build):
    def make(body: str, **arrays):
        used = {
            n: np.float32(v) for n, v in CONSTANTS.items() if f" {n})" in body or f", {n}," in body or f"({n}," in body
        }
        return build(f"g (float[2,8,8] x) => (float[2,8,8] y) {{ {body} }}", **used, **arrays)

    return make


HARD_SWISH_FORMS = [
    "a = Add (x, three) c = Clip (a, zero, six) m = Mul (x, c) y = Div (m, six)",
    "a = Add (three, x) c = Clip (a, zero, six) d = Div (c, six) y = Mul (x, d)",
    "a = Add (x, three) c = Clip (a, zero, six) d = Mul (c, sixth) y = Mul (d, x)",
    "a = Add (x, three) r = Relu (a) c = Min (r, six) m = Mul (c, x) y = Mul (m, sixth)",
    "h = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) y = Mul (x, h)",
    "b = Mul (x, sixth) a = Add (b, half) c = Clip (a, zero, one) y = Mul (x, c)",
]


@pytest.mark.parametrize("body", HARD_SWISH_FORMS)
def test_hard_swish(unary, rewrite, ops, body):
    assert ops(rewrite(unary(body), CLIPS, HARD_SWISH, HARD_SIGMOID, spread=6.0)) == {"HardSwish": 1}


@pytest.mark.parametrize(
    "body",
    [
        "a = Add (x, three) c = Clip (a, zero, six) y = Div (c, six)",
        "b = Mul (x, fifth) a = Add (b, half) c = Max (a, zero) y = Min (c, one)",
        "b = Mul (x, fifth) a = Add (b, half) y = Clip (a, zero, one)",
    ],
)
def test_hard_sigmoid(unary, rewrite, ops, body):
    assert ops(rewrite(unary(body), CLIPS, HARD_SWISH, HARD_SIGMOID, spread=6.0)) == {"HardSigmoid": 1}


@pytest.mark.parametrize(
    "body",
    [
        "a = Add (x, three) c = Clip (a, zero, six) m = Mul (a, c) y = Div (m, six)",
        "a = Add (x, three) c = Clip (a, zero, six) m = Mul (x, c) y = Div (m, three)",
        "h = HardSigmoid (x) y = Mul (x, h)",
    ],
)
def test_what_only_looks_like_hard_swish_stays(unary, rewrite, ops, body):
    assert "HardSwish" not in ops(rewrite(unary(body), CLIPS, HARD_SWISH, HARD_SIGMOID, spread=6.0))


def test_a_gate_that_others_read_is_not_taken_apart(build, rewrite, ops):
    text = """g (float[2,8] x) => (float[2,8] y, float[2,8] c)
        { a = Add (x, three) c = Clip (a, zero, six) m = Mul (x, c) y = Div (m, six) }"""
    constants = {n: np.float32(CONSTANTS[n]) for n in ("three", "zero", "six")}
    model = rewrite(build(text, **constants), CLIPS, HARD_SWISH, HARD_SIGMOID, spread=6.0)
    assert [output.name for output in model.graph.outputs] == ["y", "c"]
    assert "Clip" in ops(model)


@pytest.mark.parametrize("body", ["s = Sigmoid (x) y = Mul (x, s)", "s = Sigmoid (x) y = Mul (s, x)"])
def test_silu_is_one_op(unary, rewrite, ops, body):
    """Fault "SiLU broken up: Q/DQ inside it"; ONNX Runtime runs the edgekit op through its model-local function."""
    model = rewrite(unary(body), SILU)
    assert ops(model) == {"Silu": 1}
    assert ("edgekit", "Silu", "") in model.functions


def test_sigmoid_gate_of_another_value_is_no_silu(build, rewrite, ops):
    text = "g (float[2,8] x, float[2,8] z) => (float[2,8] y) { s = Sigmoid (x) y = Mul (z, s) }"
    assert ops(rewrite(build(text), SILU)) == {"Sigmoid": 1, "Mul": 1}


def test_mish(unary, rewrite, ops):
    model = rewrite(unary("s = Softplus (x) t = Tanh (s) y = Mul (x, t)"), MISH)
    assert ops(model) == {"Mish": 1}


@pytest.mark.parametrize(
    "body",
    [
        "d = Div (x, root2) e = Erf (d) a = Add (e, one) m = Mul (x, a) y = Mul (m, half)",
        "d = Mul (x, root_half) e = Erf (d) a = Add (e, one) h = Mul (x, half) y = Mul (h, a)",
        "d = Div (x, root2) e = Erf (d) a = Add (e, one) h = Mul (a, half) y = Mul (x, h)",
    ],
)
def test_gelu_erf(unary, rewrite, ops, body):
    model = rewrite(unary(body), GELU)
    assert ops(model) == {"Gelu": 1}
    assert model.graph[0].attributes["approximate"].as_string() == "none"


@pytest.mark.parametrize("cube", ["p = Pow (x, three)", "q = Mul (x, x) p = Mul (q, x)"])
def test_gelu_tanh(unary, rewrite, ops, cube):
    body = f"""{cube} c = Mul (p, cubic) s = Add (x, c) i = Mul (s, root_2_pi) t = Tanh (i)
        a = Add (t, one) h = Mul (x, half) y = Mul (h, a)"""
    model = rewrite(unary(body), GELU)
    assert ops(model) == {"Gelu": 1}
    assert model.graph[0].attributes["approximate"].as_string() == "tanh"


def test_gelu_with_another_factor_stays(unary, rewrite, ops):
    body = "d = Div (x, root2) e = Erf (d) a = Add (e, one) m = Mul (x, a) y = Mul (m, three)"
    assert "Gelu" not in ops(rewrite(unary(body), GELU))


def test_clips_merge_and_relu_is_recognised(unary, rewrite, ops):
    assert ops(rewrite(unary("a = Relu (x) y = Min (a, six)"), CLIPS, spread=9.0)) == {"Clip": 1}
    assert ops(rewrite(unary("a = Max (x, zero) y = Relu (a)"), CLIPS)) == {"Relu": 1}
    assert ops(rewrite(unary("y = Clip (x, zero)"), CLIPS)) == {"Relu": 1}


@pytest.mark.parametrize("power", ["Pow (c, two)", "Mul (c, c)"])
def test_layer_norm(unary, rewrite, ops, normal, power):
    body = f"""m = ReduceMean (x, last) c = Sub (x, m) s = {power} v = ReduceMean (s, last) e = Add (v, eps)
        r = Sqrt (e) d = Div (c, r) g = Mul (d, gamma) y = Add (g, beta)"""
    arrays = {"last": np.array([-1]), "gamma": normal([8]), "beta": normal([8], 1)}
    model = rewrite(unary(body, **arrays), LAYER_NORM, tolerance=1e-5)
    assert ops(model) == {"LayerNormalization": 1}


def test_rms_norm(unary, rewrite, ops, normal):
    body = """s = Mul (x, x) v = ReduceMean (s, last) e = Add (v, eps) r = Sqrt (e) i = Reciprocal (r)
        d = Mul (x, i) y = Mul (gamma, d)"""
    arrays = {"last": np.array([2]), "gamma": normal([8])}
    model = rewrite(unary(body, **arrays), LAYER_NORM, RMS_NORM, tolerance=1e-5)
    assert ops(model) == {"RMSNormalization": 1}


def test_norm_over_another_axis_stays(unary, rewrite, ops, normal):
    body = "s = Mul (x, x) v = ReduceMean (s, middle) e = Add (v, eps) r = Sqrt (e) d = Div (x, r) y = Mul (d, gamma)"
    model = rewrite(unary(body, middle=np.array([1]), gamma=normal([8])), LAYER_NORM, RMS_NORM)
    assert ops(model)["ReduceMean"] == 1
