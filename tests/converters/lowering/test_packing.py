"""Packed weights hold the weights: runs padded, pairs within their bound, rows where they belong."""

from __future__ import annotations

import numpy as np
import pytest
from reference.program_image_ops import from_rows, unpack

from edgekit.converters.lowering.packing import PackedConv, pack_conv_q8
from edgekit.package.program_schema import program_schema

ISAS = [isa for isa in program_schema().packings if isa != "scalar"]
SHAPES = [(16, 4, 1, 1), (5, 150, 3, 3), (24, 3, 3, 3), (7, 5, 2, 3), (33, 64, 1, 1), (4, 1, 1, 7)]


def unpacked(packed: PackedConv, shape: tuple[int, ...], groups: int, isa: str) -> np.ndarray:
    """[OC, ICg, KH, KW] back from what the kernels read."""
    packing = program_schema().packings[isa]
    out_channels, channels, kernel_h, kernel_w = shape
    run = kernel_w * channels
    w = packed.w
    if packed.row_start is not None and packed.row_group is not None:
        panels = -(-out_channels // groups // packing.nr_q8)
        dims = (groups, panels, kernel_h * -(-run // packing.kg_q8))
        w, besides = from_rows(w, (packed.row_start, packed.row_group, packed.row_order), dims)
        assert packed.complement is not None
        np.testing.assert_array_equal(besides[:, : out_channels // groups].reshape(-1), packed.complement)
    rows = unpack(w, out_channels // groups, (kernel_h, run), packing.kg_q8)
    return np.moveaxis(rows.reshape(out_channels, kernel_h, kernel_w, channels), 3, 1)


def weights(shape: tuple[int, ...], kind: str) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    if kind == "extremes":
        return rng.choice(np.array([-128, 127], np.int8), shape)
    spread = {"bell": 32, "wide": 200, "narrow": 10}[kind]
    return np.clip(rng.normal(0, spread, shape), -128, 127).astype(np.int8)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("kind", ["bell", "wide", "narrow", "extremes"])
@pytest.mark.parametrize("shape", SHAPES)
def test_weights_come_back(isa: str, kind: str, shape: tuple[int, ...]) -> None:
    w = weights(shape, kind)
    packed = pack_conv_q8(w, 1, program_schema().packings[isa])
    assert packed.w.dtype == np.int8
    np.testing.assert_array_equal(unpacked(packed, shape, 1, isa), w)


@pytest.mark.parametrize("isa", ISAS)
def test_groups_come_back(isa: str) -> None:
    w = weights((36, 5, 3, 3), "wide")
    packed = pack_conv_q8(w, 3, program_schema().packings[isa])
    np.testing.assert_array_equal(unpacked(packed, w.shape, 3, isa), w)


@pytest.mark.parametrize("kind", ["bell", "wide", "extremes"])
def test_no_pair_saturates(kind: str) -> None:
    packed = pack_conv_q8(weights((48, 32, 3, 3), kind), 1, program_schema().packings["x86_avx2"])
    assert packed.row_start is not None
    pairs = packed.w.reshape(-1, 2).astype(np.int64)
    assert (np.maximum(pairs, 0).sum(1) * 255).max() <= 32767
    assert (np.minimum(pairs, 0).sum(1) * 255).min() >= -32768


def test_small_weights_are_no_list() -> None:
    packed = pack_conv_q8(weights((16, 32, 1, 1), "narrow"), 1, program_schema().packings["x86_avx2"])
    assert packed.row_start is None and packed.row_group is None
    assert packed.w.shape == (1, 1, 8, 64)


# Columns whose weights are too large for pairs as they stand; complements come first, they cost least.
@pytest.mark.parametrize(
    ("columns", "form"),
    [
        ([(100, 100, 0, 0)], 3),
        ([(100, 100, 0, 0), (0, 0, 100, -100)], 3),
        ([(0, 0, 100, 100)], 4),
        ([(100, 100, 100, 100)], 5),
        ([(100, 100, 0, 0), (100, -100, 0, 0)], 1),
        ([(100, 100, 0, 0), (100, -100, 0, 0), (100, 0, 100, 0)], 2),
    ],
)
def test_another_form_saves_the_second_row(columns: list[tuple[int, ...]], form: int) -> None:
    w = np.zeros((16, 4, 1, 1), np.int8)
    w[: len(columns), :, 0, 0] = columns
    packed = pack_conv_q8(w, 1, program_schema().packings["x86_avx2"])
    assert packed.row_start is not None
    assert packed.row_start.tolist() == [0] * (form + 1) + [1] * (6 - form)


# In the first depth group each byte goes with no other; beside them lie small weights, in one group or in three.
@pytest.mark.parametrize("small", [[1], [3], [1, 2, 3]])
def test_rows_that_pick_of_several_depth_groups_save_the_second_row(small: list[int]) -> None:
    w = np.zeros((16, 16, 1, 1), np.int8)
    w[3] = 100
    w[4] = np.resize([100, -100], 16)[:, None, None]
    for group in small:
        w[3:5, 4 * group : 4 * group + 4] = 0
    packed = pack_conv_q8(w, 1, program_schema().packings["x86_avx2"])
    assert packed.row_start is not None
    assert packed.row_start[-1] == (4 if len(small) > 1 else 8 - 2 * len(small))
    np.testing.assert_array_equal(unpacked(packed, w.shape, 1, "x86_avx2"), w)


# Channels of a group, taps of a kernel row, and the first of the four depth groups that rows read: in a tap, or in a
# run of bytes.
@pytest.mark.parametrize(
    ("channels", "taps", "starts"),
    [
        (16, 2, [0, 4]),
        (24, 1, [0, 2]),
        (28, 1, [0, 2, 3]),
        (20, 1, [0, 1]),
        (12, 3, []),
        (6, 3, [0, 1]),
        (3, 7, [0, 2]),
        (3, 3, []),
    ],
)
def test_picked_depth_groups_lie_side_by_side(channels: int, taps: int, starts: list[int]) -> None:
    w = np.clip(np.random.default_rng(0).normal(0, 42, (640, channels, 2, taps)), -127, 127).astype(np.int8)
    packed = pack_conv_q8(w, 1, program_schema().packings["x86_avx2"])
    assert packed.row_start is not None and packed.row_group is not None
    forms = 6 if packed.row_order is None else 7
    form_of_row = (np.arange(len(packed.row_start) - 1) % forms).repeat(np.diff(packed.row_start))
    groups = -(-channels * taps // 4)
    expected = {start + run * groups for start in starts for run in (0, 1)}
    assert set(packed.row_group[form_of_row == 6].tolist()) == expected
    np.testing.assert_array_equal(unpacked(packed, w.shape, 1, "x86_avx2"), w)


def test_few_rows_come_twice() -> None:
    w = np.clip(np.random.default_rng(0).normal(0, 45, (256, 256, 1, 1)), -127, 127).astype(np.int8)
    packed = pack_conv_q8(w, 1, program_schema().packings["x86_avx2"])
    assert len(packed.w) < 1.02 * 16 * 64  # 1.31 without rows that pick


def test_second_row_where_no_form_helps() -> None:
    w = np.zeros((16, 4, 1, 1), np.int8)
    w[3] = 100
    w[4] = np.array([100, -100, 100, -100])[:, None, None]
    packed = pack_conv_q8(w, 1, program_schema().packings["x86_avx2"])
    assert packed.row_start is not None
    assert packed.row_start.tolist() == [0, 2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize("isa", [isa for isa in ISAS if isa != "x86_avx2"])
def test_only_saturating_kernels_need_a_list(isa: str) -> None:
    assert pack_conv_q8(weights((16, 32, 1, 1), "extremes"), 1, program_schema().packings[isa]).row_start is None
