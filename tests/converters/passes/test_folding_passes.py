"""BatchNormalization, Pad and affine folding, each against ONNX Runtime; rows of the faults table named."""

from __future__ import annotations

import numpy as np
import pytest

from edgekit.converters.passes.affine_conv import AFFINE_CONV
from edgekit.converters.passes.bn_conv import BN_CONV
from edgekit.converters.passes.fold_batchnorm import CONV_BN, CONVTRANSPOSE_BN, GEMM_BN
from edgekit.converters.passes.leftover_batchnorm import LEFTOVER_BATCHNORM
from edgekit.converters.passes.pad_conv import PAD_CONV


def bn(channels: int, normal, seed: int = 10) -> dict[str, np.ndarray]:
    return {
        "gamma": normal([channels], seed),
        "beta": normal([channels], seed + 1),
        "mean": normal([channels], seed + 2),
        "var": np.abs(normal([channels], seed + 3)) + 0.1,
    }


BN = "BatchNormalization <epsilon = 0.001> ({}, gamma, beta, mean, var)"


@pytest.mark.parametrize("bias", ["", ", b"])
def test_batchnorm_goes_into_conv(build, rewrite, ops, normal, bias):
    text = f"""g (float[1,4,7,7] x) => (float[1,6,7,7] y)
        {{ c = Conv <pads = [1,1,1,1], group = 2> (x, w{bias}) y = {BN.format("c")} }}"""
    arrays = {"w": normal([6, 2, 3, 3]), **bn(6, normal)} | ({"b": normal([6], 5)} if bias else {})
    model = rewrite(build(text, **arrays), CONV_BN)
    assert ops(model) == {"Conv": 1}
    assert model.graph[0].name == "Conv_0+BatchNormalization_1"


@pytest.mark.parametrize("group", [1, 2])
def test_batchnorm_goes_into_convtranspose_with_groups(build, rewrite, ops, normal, group):
    text = f"""g (float[1,4,5,5] x) => (float[1,6,10,10] y)
        {{ c = ConvTranspose <strides = [2,2], group = {group}> (x, w, b) y = {BN.format("c")} }}"""
    arrays = {"w": normal([4, 6 // group, 2, 2]), "b": normal([6], 4), **bn(6, normal)}
    assert ops(rewrite(build(text, **arrays), CONVTRANSPOSE_BN)) == {"ConvTranspose": 1}


@pytest.mark.parametrize("bias_shape", [[6], [1, 6], [1], []])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_batchnorm_goes_into_gemm_and_its_bias_is_broadcast(build, rewrite, ops, normal, bias_shape, trans_b):
    """Fault "crash: bias of shape [1,N]"."""
    text = f"""g (float[3,5] x) => (float[3,6] y)
        {{ c = Gemm <transB = {trans_b}, alpha = 0.5, beta = 2.0> (x, w, b) y = {BN.format("c")} }}"""
    arrays = {"w": normal([6, 5] if trans_b else [5, 6]), "b": normal(bias_shape, 4), **bn(6, normal)}
    assert ops(rewrite(build(text, **arrays), GEMM_BN)) == {"Gemm": 1}


def test_batchnorm_stays_where_others_read_the_conv(build, rewrite, ops, normal):
    text = f"""g (float[1,4,5,5] x) => (float[1,4,5,5] y, float[1,4,5,5] z)
        {{ c = Conv (x, w) y = {BN.format("c")} z = Relu(c) }}"""
    model = rewrite(build(text, w=normal([4, 4, 1, 1]), **bn(4, normal)), CONV_BN)
    assert ops(model)["BatchNormalization"] == 1


@pytest.mark.parametrize("pads", [0, 1])
def test_batchnorm_between_relu_and_conv(build, rewrite, ops, normal, pads):
    """Fault "BN stays in the graph: Relu -> BN -> Conv": folded forward without padding, else 1x1 depthwise."""
    size = 5 + 2 * pads
    text = f"""g (float[1,4,7,7] x) => (float[1,6,{size},{size}] y)
        {{ r = Relu(x) c = {BN.format("r")} y = Conv <pads = [{pads},{pads},{pads},{pads}]> (c, w, b) }}"""
    arrays = {"w": normal([6, 4, 3, 3]), "b": normal([6], 4), **bn(4, normal)}
    model = rewrite(build(text, **arrays), BN_CONV, LEFTOVER_BATCHNORM)
    assert ops(model) == {"Relu": 1, "Conv": 1 + pads}


def test_leftover_batchnorm_of_vectors_becomes_mul_and_add(build, rewrite, ops, normal):
    text = f"g (float[3,4] x) => (float[3,4] y) {{ y = {BN.format('x')} }}"
    assert ops(rewrite(build(text, **bn(4, normal)), LEFTOVER_BATCHNORM)) == {"Mul": 1, "Add": 1}


def test_zero_pad_goes_into_conv(build, rewrite, ops, normal):
    text = """g (float[1,3,6,6] x) => (float[1,4,8,9] y)
        { p = Pad (x, pads) y = Conv <pads = [1,0,0,1]> (p, w) }"""
    arrays = {"pads": np.array([0, 0, 1, 2, 0, 0, 2, 2]), "w": normal([4, 3, 3, 3])}
    assert ops(rewrite(build(text, **arrays), PAD_CONV)) == {"Conv": 1}


@pytest.mark.parametrize("mode, value", [("constant", 1.0), ("reflect", 0.0)])
def test_other_pads_stay(build, rewrite, ops, normal, mode, value):
    text = f'g (float[1,3,6,6] x) => (float[1,4,6,6] y) {{ p = Pad <mode = "{mode}"> (x, pads, v) y = Conv (p, w) }}'
    arrays = {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "v": np.float32(value), "w": normal([4, 3, 3, 3])}
    assert ops(rewrite(build(text, **arrays), PAD_CONV)) == {"Pad": 1, "Conv": 1}


@pytest.mark.parametrize(
    "body",
    [
        "c = Conv (x, w) m = Mul (c, s) y = Add (m, k)",
        "c = Conv (x, w, b) m = Sub (s, c) y = Div (m, k)",
        "m = Mul (x, one) c = Conv (m, w) y = Add (c, k)",
        "m = Add (x, t) n = Mul (m, t) y = Conv (n, w, b)",
    ],
)
def test_constant_factors_and_sums_go_into_conv(build, rewrite, ops, normal, body):
    arrays = {
        "w": normal([4, 4, 1, 1]),
        "b": normal([4], 2),
        "s": normal([4, 1, 1], 3),
        "k": np.abs(normal([1, 4, 1, 1], 4)) + 0.5,
        "t": normal([4, 1, 1], 5),
        "one": np.array([1.7], np.float32),
    }
    used = {name: a for name, a in arrays.items() if f" {name})" in body or f", {name}," in body or f"({name}," in body}
    text = f"g (float[1,4,5,5] x) => (float[1,4,5,5] y) {{ {body} }}"
    assert ops(rewrite(build(text, **used), AFFINE_CONV)) == {"Conv": 1}


def test_learnable_affine_block_after_a_bias(build, rewrite, ops, normal):
    """PaddleOCR: ConvTranspose, Add, BatchNormalization, scale, shift."""
    text = f"""g (float[1,4,5,5] x) => (float[1,3,10,10] y)
        {{ c = ConvTranspose <strides = [2,2]> (x, w) d = Add (c, b) e = {BN.format("d")}
           f = Mul (e, s) y = Add (f, s) }}"""
    arrays = {
        "w": normal([4, 3, 2, 2]),
        "b": normal([1, 3, 1, 1], 2),
        "s": np.array([0.3], np.float32),
        **bn(3, normal),
    }
    model = rewrite(build(text, **arrays), AFFINE_CONV, CONVTRANSPOSE_BN, AFFINE_CONV)
    assert ops(model) == {"ConvTranspose": 1}


def test_sum_before_a_padded_conv_stays_and_factor_goes(build, rewrite, ops, normal):
    text = """g (float[1,4,5,5] x) => (float[1,4,5,5] y)
        { a = Add (x, k) m = Mul (a, k) y = Conv <pads = [1,1,1,1]> (m, w) }"""
    arrays = {"w": normal([4, 4, 3, 3]), "k": np.array([0.7], np.float32)}
    assert ops(rewrite(build(text, **arrays), AFFINE_CONV)) == {"Add": 1, "Conv": 1}


def test_constant_that_varies_along_the_width_stays(build, rewrite, ops, normal):
    text = "g (float[1,4,5,5] x) => (float[1,4,5,5] y) { c = Conv (x, w) y = Mul (c, s) }"
    model = rewrite(build(text, w=normal([4, 4, 1, 1]), s=normal([5])), AFFINE_CONV)
    assert ops(model) == {"Conv": 1, "Mul": 1}


def test_folding_gives_new_names_not_taken_ones(build, rewrite, normal):
    """Fault "invalid model: duplicated bias takes an existing name": two Convs share b, an intermediate is b_1."""
    text = f"""g (float[1,4,5,5] x) => (float[1,4,5,5] y, float[1,4,5,5] z)
        {{ b_1 = Conv (x, w, b) y = {BN.format("b_1")} c = Conv (x, w, b) z = {BN.format("c")} }}"""
    model = rewrite(build(text, w=normal([4, 4, 1, 1]), b=normal([4], 3), **bn(4, normal)), CONV_BN)
    names = [v.name for n in model.graph for v in n.outputs] + list(model.graph.initializers)
    assert len(names) == len(set(names))


def test_weights_that_would_overflow_stay(build, rewrite, ops):
    text = "g (float[1,1,2,2] x) => (float[1,1,2,2] y) { c = Conv (x, w) y = Mul (c, s) }"
    arrays = {"w": np.full((1, 1, 1, 1), 1e30, np.float32), "s": np.array([1e30], np.float32)}
    model = build(text, **arrays)
    AFFINE_CONV.apply(model, None)
    assert ops(model) == {"Conv": 1, "Mul": 1}
