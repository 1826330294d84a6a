"""Winograd in whole numbers: the weights are right, and it is taken where it is exact and pays."""

from __future__ import annotations

import numpy as np
import pytest
from reference.onnx_cases import GraphBuilder, lowered, onnxruntime_outputs, opcodes, run_lowered, run_natively
from reference.program_image_ops import from_winograd

from edgekit.converters.lowering.winograd import pack_winograd, winograd_pays
from edgekit.package.program_schema import program_schema

ISAS = [isa for isa, packing in program_schema().packings.items() if packing.winograd]


@pytest.mark.parametrize(("out_channels", "in_channels"), [(1, 1), (16, 2), (5, 7), (33, 18)])
def test_weights_come_back(out_channels: int, in_channels: int) -> None:
    rng = np.random.default_rng(out_channels)
    weight = rng.integers(-128, 128, (out_channels, in_channels, 3, 3)).astype(np.int8)
    packed = pack_winograd(weight)
    assert packed.dtype == np.int8
    assert packed.shape == (-(-out_channels // 16), -(-in_channels // 2), 9, 32)
    got = from_winograd(packed, out_channels, in_channels)
    np.testing.assert_array_equal(got.transpose(0, 3, 1, 2), weight)


def test_missing_channels_are_zero() -> None:
    packed = pack_winograd(np.full((3, 3, 3, 3), -128, np.int8))
    assert not packed[..., 6:].any()
    assert not packed[:, 1, :, 1::2].any()


def bell(out_channels: int, in_channels: int, deviation: float = 40.0) -> np.ndarray:
    values = np.random.default_rng(1).normal(0, deviation, (out_channels, in_channels, 3, 3))
    return np.clip(np.rint(values), -127, 127).astype(np.int8)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    ("channels", "size", "pays"),
    [(64, 56, True), (128, 28, True), (3, 224, False), (64, 1, False), (512, 2, False), (512, 7, False)],
)
def test_where_it_pays(channels: int, size: int, pays: bool, isa: str) -> None:
    assert winograd_pays(bell(channels, channels), (1, size, size), isa) is pays


def test_sums_that_do_not_fit_are_refused() -> None:
    weight = bell(64, 256)
    assert winograd_pays(weight, (1, 28, 28), "x86_avx2")
    weight[7] = 127  # 255 * 127 * 2304 is above 2^25
    assert not winograd_pays(weight, (1, 28, 28), "x86_avx2")
    weight[7] = -127
    assert not winograd_pays(weight, (1, 28, 28), "x86_avx2")


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(("isa", "opcode"), [("x86_avx2", "conv_q8_winograd"), ("arm_neon_dotprod", "conv_q8")])
def test_conv_equals_onnxruntime(isa: str, opcode: str, add: bool) -> None:
    g = GraphBuilder()
    x = g.quantize(g.input("x", 1, 20, 18, 14), 2**-5, 3)
    y = g.q_conv(x, 2**-5, (24, 20), 3, pads=[1, 1, 1, 1])
    if add:
        y = g.op("Add", g.quantize(y, 2**-3, -7), g.quantize(g.q_conv(x, 2**-5, (24, 20), 1), 2**-3, 4))
    model = g.model(g.quantize(y, 2**-2, -7))
    result, feeds = lowered(model, isa), g.feeds(1.0)
    assert opcode in opcodes(result)
    assert opcode == "conv_q8" or isa in ISAS
    expected = onnxruntime_outputs(model, feeds)
    for got in (run_lowered(result, feeds), run_natively(result, feeds, isa="" if isa == "x86_avx2" else "scalar")):
        for name, values in expected.items():
            np.testing.assert_array_equal(got[name], values)
            assert np.unique(values).size > 3
