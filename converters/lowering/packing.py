"""Weight packing: the B operand of a product, laid out in panels as program_schema.toml's isa_packing says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgekit.package.program_schema import Packing

PAIR_BOUND = 128  # of the positive, and of the negative, weights of a pair: 255 * 128 fits 16 bits


@dataclass(frozen=True)
class PackedConv:
    """INT8 convolution weights as conv_q8 takes them.

    Attributes:
        w: int8 [groups, panels, depth groups, nr * kg], or with excess [rows, nr * kg].
        excess_start, excess_group: int32 [all panels + 1] and [n]; None without excess.
    """

    w: NDArray[np.int8]
    excess_start: NDArray[np.int32] | None = None
    excess_group: NDArray[np.int32] | None = None


def _rows_by_group(weight: NDArray[np.generic], groups: int) -> NDArray[np.generic]:
    """[OC, ICg, KH, KW] -> [groups, OCg, K] with depth K over (ky, kx, ic)."""
    out_channels = weight.shape[0]
    return np.moveaxis(weight, 1, 3).reshape(groups, out_channels // groups, -1)


def pack_conv_q8(weight: NDArray[np.int8], groups: int, packing: Packing) -> PackedConv:
    """Packs INT8 convolution weights.

    Args:
        weight: int8 [OC, IC / groups, KH, KW].
        groups: Groups of the convolution.
        packing: What the instruction set wants.
    """
    nr, kg = packing.nr_q8, packing.kg_q8
    rows = _rows_by_group(weight, groups)
    runs = rows.reshape(groups, rows.shape[1], weight.shape[2], -1)
    padded = np.pad(runs, ((0, 0), (0, -runs.shape[1] % nr), (0, 0), (0, -runs.shape[3] % kg)))
    panels = padded.reshape(groups, padded.shape[1] // nr, nr, -1, kg).transpose(0, 1, 3, 2, 4)
    dense = np.ascontiguousarray(panels).reshape(*panels.shape[:3], nr * kg)
    return _split_pairs(dense) if packing.saturating_pairs else PackedConv(dense)


def _split_pairs(dense: NDArray[np.int8]) -> PackedConv:
    """Moves what the pairs of weights have beyond PAIR_BOUND into excess rows behind each panel."""
    pairs = dense.reshape(-1, 2).astype(np.int16)
    total = pairs.sum(1)
    same_sign = (pairs[:, 0] > 0) == (pairs[:, 1] > 0)
    over = np.where(same_sign, total - np.clip(total, -PAIR_BOUND, PAIR_BOUND), 0)
    excess = np.stack([np.zeros_like(over), over], 1).astype(np.int8).reshape(dense.shape)
    has_excess = excess.any(3).reshape(-1, dense.shape[2])
    if not has_excess.any():
        return PackedConv(dense)
    kept = (dense - excess).reshape(*has_excess.shape, -1)
    beyond = excess.reshape(kept.shape)
    rows = [part for panel, moved in enumerate(has_excess) for part in (kept[panel], beyond[panel][moved])]
    starts = np.concatenate([[0], np.cumsum(has_excess.sum(1))]).astype(np.int32)
    return PackedConv(np.concatenate(rows), starts, np.nonzero(has_excess)[1].astype(np.int32))


def pack_conv_f32(weight: NDArray[np.float32], groups: int, nr: int) -> NDArray[np.float32]:
    """Packs float convolution weights [OC, IC / groups, KH, KW] into [groups, ceil(OCg / nr), K, nr], zero padded."""
    rows = _rows_by_group(weight, groups)
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % nr), (0, 0)))
    panels = padded.reshape(groups, padded.shape[1] // nr, nr, padded.shape[2])
    return np.ascontiguousarray(panels.transpose(0, 1, 3, 2))


def pack_depthwise(weight: NDArray[np.generic]) -> NDArray[np.generic]:
    """[C, 1, KH, KW] -> [KH * KW, C], dense."""
    return np.ascontiguousarray(weight.reshape(weight.shape[0], -1).T)
