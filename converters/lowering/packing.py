"""Weight packing: the B operand of a product, laid out in panels as program_schema.toml's isa_packing says."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgekit.package.program_schema import Packing

PAIR_BOUND = 128  # of the positive, and of the negative, weights of a pair: 255 * 128 fits 16 bits
PART = 128  # depth groups of a part
# The forms of the bytes of a depth group: their order, and which are complemented (weights are then of opposite sign).
FORMS = (
    ((0, 1, 2, 3), (1, 1, 1, 1)),
    ((0, 2, 1, 3), (1, 1, 1, 1)),
    ((0, 3, 1, 2), (1, 1, 1, 1)),
    ((0, 1, 2, 3), (1, -1, 1, 1)),
    ((0, 1, 2, 3), (1, 1, 1, -1)),
    ((0, 1, 2, 3), (1, -1, 1, -1)),
)
PREFERENCE = (0, 3, 4, 5, 1, 2)  # complements run on more of a CPU's pipes than shuffles


@dataclass(frozen=True)
class PackedConv:
    """INT8 convolution weights as conv_q8 takes them.

    Attributes:
        w: int8 [groups, panels, depth groups, nr * kg], or as a list of rows [n, nr * kg].
        row_start, row_group: int32 [6 * parts * all panels + 1] and [n]; None without a list.
        complement: int64 [OC], what complemented bytes add to the sums and the bias has to take away.
    """

    w: NDArray[np.int8]
    row_start: NDArray[np.int32] | None = None
    row_group: NDArray[np.int32] | None = None
    complement: NDArray[np.int64] | None = None


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
    return _bounded_pairs(dense, rows.shape[1]) if packing.saturating_pairs else PackedConv(dense)


def _excess(row: NDArray[np.int16]) -> NDArray[np.int16]:
    """What the pairs of rows [..., nr, 4] have beyond PAIR_BOUND: in the second of each pair."""
    pairs = row.reshape(*row.shape[:-1], 2, 2)
    total = pairs.sum(-1, dtype=np.int16)
    same_sign = (pairs[..., 0] > 0) == (pairs[..., 1] > 0)
    excess = np.zeros_like(pairs)
    excess[..., 1] = np.where(same_sign, total - np.clip(total, -PAIR_BOUND, PAIR_BOUND), 0)
    return excess.reshape(row.shape)


def _in_form(groups: NDArray[np.int16], form: int) -> NDArray[np.int16]:
    """The weights [..., nr, 4] that a form of the bytes takes."""
    order, signs = FORMS[form]
    return groups[..., order] * np.array(signs, np.int16)


def _bounded_pairs(dense: NDArray[np.int8], channels: int) -> PackedConv:
    """Finds for each depth group a form in which no pair saturates, or moves what is beyond into a second row."""
    nr = dense.shape[3] // 4
    groups = dense.reshape(-1, dense.shape[2], nr, 4).astype(np.int16)  # [panels, depth groups, nr, 4]
    formed = np.stack([_in_form(groups, form) for form in range(len(FORMS))])
    safe = ~(_excess(formed).any(-1) | (formed.max(-1) > 127)).any(-1)
    if safe[0].all():
        return PackedConv(dense)
    preferred = np.array(PREFERENCE)
    chosen = np.where(safe.any(0), preferred[safe[preferred].argmax(0)], 0)
    first = np.take_along_axis(formed, chosen[None, :, :, None, None], 0)[0]
    second = _excess(first)
    rows: list[NDArray[np.int16]] = []
    row_group: list[NDArray[np.intp]] = []
    parts = range(0, chosen.shape[1], PART)
    for panel, part, form in itertools.product(range(len(chosen)), parts, range(len(FORMS))):
        own = part + np.nonzero(chosen[panel, part : part + PART] == form)[0]
        beyond = own[second[panel, own].any((1, 2))]
        rows += [first[panel, own] - second[panel, own], second[panel, beyond]]
        row_group += [own, beyond]
    counts = [len(a) + len(b) for a, b in zip(row_group[::2], row_group[1::2], strict=True)]
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    signs = np.array([form[1] for form in FORMS])[chosen]
    complemented = np.where(signs[:, :, None] < 0, first, 0).sum((1, 3), dtype=np.int64) * 255  # [panels, nr]
    return PackedConv(
        np.concatenate(rows).reshape(-1, nr * 4).astype(np.int8),
        starts,
        np.concatenate(row_group).astype(np.int32),
        complemented.reshape(dense.shape[0], -1)[:, :channels].reshape(-1),
    )


def pack_conv_f32(weight: NDArray[np.float32], groups: int, nr: int) -> NDArray[np.float32]:
    """Packs float convolution weights into panels of columns.

    Args:
        weight: [OC, IC / groups, KH, KW].
        groups: Of the convolution.
        nr: Columns of a panel, as the instruction set wants them.

    Returns:
        [groups, ceil(OC / groups / nr), KH * KW * IC / groups, nr], zero padded.
    """
    rows = _rows_by_group(weight, groups)
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % nr), (0, 0)))
    panels = padded.reshape(groups, padded.shape[1] // nr, nr, padded.shape[2])
    return np.ascontiguousarray(panels.transpose(0, 1, 3, 2))


def pack_depthwise(weight: NDArray[np.generic]) -> NDArray[np.generic]:
    """[C, 1, KH, KW] -> [KH * KW, C], dense."""
    return np.ascontiguousarray(weight.reshape(weight.shape[0], -1).T)
