"""RepVGG blocks and other parallel Conv branches become one Conv."""

from __future__ import annotations

import pytest

from edgekit.converters.passes.fold_batchnorm import CONV_BN
from edgekit.converters.passes.leftover_batchnorm import LEFTOVER_BATCHNORM
from edgekit.converters.passes.reparameterise import REPARAMETERISE


def branches(stride: int = 1, group: int = 1) -> str:
    common = f"strides = [{stride},{stride}], group = {group}"
    return f"a = Conv <pads = [1,1,1,1], {common}> (x, w3, b3) b = Conv <{common}> (x, w1)"


def _arrays(normal, group):
    return {"w3": normal([4, 4 // group, 3, 3]), "b3": normal([4], 1), "w1": normal([4, 4 // group, 1, 1], 2)}


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("group", [1, 2, 4])
def test_three_by_three_and_one_by_one(build, rewrite, ops, normal, stride, group):
    size = 6 // stride
    text = f"g (float[1,4,6,6] x) => (float[1,4,{size},{size}] y) {{ {branches(stride, group)} y = Add (a, b) }}"
    model = rewrite(build(text, **_arrays(normal, group)), REPARAMETERISE)
    assert ops(model) == {"Conv": 1}


@pytest.mark.parametrize("group", [1, 4])
def test_bare_input_as_third_branch(build, rewrite, ops, normal, group):
    text = f"g (float[1,4,6,6] x) => (float[1,4,6,6] y) {{ {branches(1, group)} c = Add (b, x) y = Add (a, c) }}"
    model = rewrite(build(text, **_arrays(normal, group)), REPARAMETERISE)
    assert ops(model) == {"Conv": 1}


def test_repvgg_block_in_training_form(build, rewrite, ops, normal):
    """3x3 + BN, 1x1 + BN and BN alone, then Relu."""
    bn = "BatchNormalization ({}, g, h, m, v)"
    text = f"""g (float[1,4,6,6] x) => (float[1,4,6,6] y)
        {{ {branches()} p = {bn.format("a")} q = {bn.format("b")} r = {bn.format("x")}
           s = Add (p, q) t = Add (s, r) y = Relu (t) }}"""
    arrays = _arrays(normal, 1) | {
        "g": normal([4], 5),
        "h": normal([4], 6),
        "m": normal([4], 7),
        "v": normal([4], 8) ** 2 + 0.1,
    }
    model = rewrite(build(text, **arrays), CONV_BN, LEFTOVER_BATCHNORM, REPARAMETERISE, tolerance=1e-5)
    assert ops(model) == {"Conv": 1, "Relu": 1}


@pytest.mark.parametrize(
    "body",
    [
        "a = Conv <pads = [1,1,1,1]> (x, w3, b3) y = Add (a, x)",
        "a = Conv <pads = [1,1,1,1]> (x, w3, b3) r = Relu (x) b = Conv (r, w1) y = Add (a, b)",
        "a = Conv <pads = [2,2,0,0]> (x, w3, b3) b = Conv (x, w1) r = Relu (b) y = Add (a, r)",
    ],
)
def test_what_is_no_parallel_branch_stays(build, rewrite, ops, normal, body):
    used = {name: array for name, array in _arrays(normal, 1).items() if name in body}
    model = build(f"g (float[1,4,6,6] x) => (float[1,4,6,6] y) {{ {body} }}", **used)
    before = ops(model)
    assert ops(rewrite(model, REPARAMETERISE)) == before
