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
PICKED = len(FORMS)  # rows that pick four bytes of two depth groups
PREFERENCE = (0, 3, 4, 5, 1, 2)  # complements run on more of a CPU's pipes than shuffles


@dataclass(frozen=True)
class PackedConv:
    """INT8 convolution weights as conv_q8 takes them.

    Attributes:
        w: int8 [groups, panels, depth groups, nr * kg], or as a list of rows [n, nr * kg].
        row_start, row_group: int32 [forms * parts * all panels + 1] and [n]; None without a list.
        row_order: int32, of each row in form PICKED; None where no row is.
        complement: int64 [OC], what complemented bytes add to the sums and the bias has to take away.
    """

    w: NDArray[np.int8]
    row_start: NDArray[np.int32] | None = None
    row_group: NDArray[np.int32] | None = None
    row_order: NDArray[np.int32] | None = None
    complement: NDArray[np.int64] | None = None

    def row_list(self) -> list[NDArray[np.int32] | None]:
        """The operands that make w a list."""
        return [self.row_start, self.row_group, self.row_order]


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
    if not packing.saturating_pairs:
        return PackedConv(dense)
    run_groups, channels = padded.shape[3] // kg, weight.shape[1]
    starts = _pair_starts(weight.shape[2], run_groups, channels // kg if channels % kg == 0 else run_groups)
    return _bounded_pairs(dense, rows.shape[1], starts)


def _excess(row: NDArray[np.int16]) -> NDArray[np.int16]:
    """What the pairs of rows [..., nr, 2 * pairs] have beyond PAIR_BOUND: in the second of each pair."""
    pairs = row.reshape(*row.shape[:-1], row.shape[-1] // 2, 2)
    total = pairs.sum(-1, dtype=np.int16)
    same_sign = (pairs[..., 0] > 0) == (pairs[..., 1] > 0)
    excess = np.zeros_like(pairs)
    excess[..., 1] = np.where(same_sign, total - np.clip(total, -PAIR_BOUND, PAIR_BOUND), 0)
    return excess.reshape(row.shape)


def _in_form(groups: NDArray[np.int16], form: int) -> NDArray[np.int16]:
    """The weights [..., nr, 4] that a form of the bytes takes."""
    order, signs = FORMS[form]
    return groups[..., order] * np.array(signs, np.int16)


def _pair_starts(runs: int, run_groups: int, piece: int) -> NDArray[np.intp]:
    """Depth groups that a row may pick of together with the next: those of a piece of a run, two by two."""
    place = np.arange(run_groups) % piece
    in_run = np.nonzero((place % 2 == 0) & (place + 1 < piece) & (np.arange(run_groups) + 1 < run_groups))[0]
    return (np.arange(runs)[:, None] * run_groups + in_run).reshape(-1)


def _matchings(left: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All ways to put an even number of things in pairs, one pair behind the other."""
    if not left:
        return [()]
    first, rest = left[0], left[1:]
    return [
        (first, other, *matching) for i, other in enumerate(rest) for matching in _matchings(rest[:i] + rest[i + 1 :])
    ]


def _safe_orders(eight: NDArray[np.int16]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """For weights [n, nr, 8]: which can be paired without excess, and the order of the eight for that, [n, 8]."""
    pairs = list(itertools.combinations(range(8), 2))
    matchings = np.array(_matchings(tuple(range(8))))
    pair_of = {pair: i for i, pair in enumerate(pairs)}
    members = np.array([[pair_of[a, b] for a, b in zip(m[::2], m[1::2], strict=True)] for m in matchings.tolist()])
    first, second = np.array(pairs).T
    both = np.stack([eight[..., first], eight[..., second]], -1)  # [n, nr, 28, 2]
    excess = _excess(both.reshape(*both.shape[:2], 2 * len(pairs)))
    is_safe = ~excess.reshape(both.shape).any((1, 3))
    fits = is_safe[:, members].all(-1)  # [n, 105]
    return fits.any(-1), matchings[fits.argmax(-1)]


@dataclass
class _Rows:
    """Rows of a list, in no order yet.

    Attributes:
        w: [n, nr, 4].
        panel, group, form, order: [n]; order only means something in form PICKED.
    """

    w: NDArray[np.int16]
    panel: NDArray[np.intp]
    group: NDArray[np.intp]
    form: NDArray[np.intp]
    order: NDArray[np.int64]


def _rows(w: NDArray[np.int16], panel: NDArray[np.intp], group: NDArray[np.intp], form: NDArray[np.intp]) -> _Rows:
    return _Rows(w, panel, group, form, np.zeros(len(w), np.int64))


def _picked_rows(groups: NDArray[np.int16], is_unsafe: NDArray[np.bool_], starts: NDArray[np.intp]) -> _Rows:
    """The rows that pick, two for each pair of depth groups of which one has no safe form.

    Args:
        groups: [panels, depth groups, nr, 4].
        is_unsafe: [panels, depth groups].
        starts: What _pair_starts gives.
    """
    panel, place = np.nonzero(is_unsafe[:, starts] | is_unsafe[:, starts + 1])
    group = starts[place]
    eight = np.concatenate([groups[panel, group], groups[panel, group + 1]], -1)
    is_safe, order = _safe_orders(eight)
    panel, group, eight, order = panel[is_safe], group[is_safe], eight[is_safe], order[is_safe]
    w = np.take_along_axis(eight, order[:, None, :], 2)
    halves = w.reshape(*w.shape[:2], 2, 4).transpose(0, 2, 1, 3).reshape(-1, w.shape[1], 4)
    packed_order = (order.reshape(-1, 4) << np.array([0, 8, 16, 24])).sum(1)
    form = np.full(len(halves), PICKED)
    return _Rows(halves, panel.repeat(2), group.repeat(2), form, packed_order)


def _bounded_pairs(dense: NDArray[np.int8], channels: int, starts: NDArray[np.intp]) -> PackedConv:
    """Finds for each depth group a form in which no pair saturates, or moves what is beyond into a second row."""
    nr = dense.shape[3] // 4
    groups = dense.reshape(-1, dense.shape[2], nr, 4).astype(np.int16)  # [panels, depth groups, nr, 4]
    formed = np.stack([_in_form(groups, form) for form in range(len(FORMS))])
    safe = ~(_excess(formed).any(-1) | (formed.max(-1) > 127)).any(-1)
    if safe[0].all():
        return PackedConv(dense)
    preferred = np.array(PREFERENCE)
    chosen = np.where(safe.any(0), preferred[safe[preferred].argmax(0)], 0)
    picked = _picked_rows(groups, ~safe.any(0), starts)
    is_left = np.ones(chosen.shape, bool)
    is_left[picked.panel, picked.group] = is_left[picked.panel, picked.group + 1] = False
    first = np.take_along_axis(formed, chosen[None, :, :, None, None], 0)[0]
    second = _excess(first)
    left = np.nonzero(is_left)
    beyond = np.nonzero(is_left & second.any((2, 3)))
    listed = [
        _rows((first - second)[left], *left, chosen[left]),
        _rows(second[beyond], *beyond, chosen[beyond]),
        picked,
    ]
    signs = np.array([form[1] for form in FORMS])[chosen]
    is_complemented = (signs[:, :, None] < 0) & is_left[:, :, None, None]
    complement = np.where(is_complemented, first, 0).sum((1, 3), dtype=np.int64) * 255  # [panels, nr]
    return _as_list(listed, dense, complement.reshape(dense.shape[0], -1)[:, :channels].reshape(-1))


def _as_list(listed: list[_Rows], dense: NDArray[np.int8], complement: NDArray[np.int64]) -> PackedConv:
    """Sorts rows by panel, part and form."""
    w, panel, group, form, order = (
        np.concatenate([getattr(rows, name) for rows in listed]) for name in ("w", "panel", "group", "form", "order")
    )
    forms = len(FORMS) + bool((form == PICKED).any())
    parts = -(-dense.shape[2] // PART)
    segment = (panel * parts + group // PART) * forms + form
    by_segment = np.lexsort((group, segment))
    counts = np.bincount(segment, minlength=dense.shape[0] * dense.shape[1] * parts * forms)
    return PackedConv(
        w[by_segment].reshape(len(w), -1).astype(np.int8),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        group[by_segment].astype(np.int32),
        order[by_segment][form[by_segment] == PICKED].astype(np.int32) if forms > len(FORMS) else None,
        complement,
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
