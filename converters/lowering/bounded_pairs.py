"""Weights for kernels whose pairs of products saturate: lists of rows in which no pair does.

What the rows and their forms are, and how a program holds them: conv_q8's row_start in program_schema.toml.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgekit.converters.lowering.safe_pairs import excess, most_pairs, safe_orders

PART = 128  # depth groups of a part, at most
LEAST_PART = 32  # of those that hold one tap only, so that kernels can leave taps out
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
PICKED = len(FORMS)  # the form of rows that pick of the bytes of WINDOW depth groups
WINDOW = 4


@dataclass(frozen=True)
class RowList:
    """Weights as a list of rows.

    Attributes:
        w: int8 [n, nr * 4].
        row_start, row_group: int32 [forms * parts * panels + 1] and [n].
        row_order: int32, of each row in form PICKED; None where no row is.
        complement: int64 [panels, nr], what complemented bytes add to the sums.
    """

    w: NDArray[np.int8]
    row_start: NDArray[np.int32]
    row_group: NDArray[np.int32]
    row_order: NDArray[np.int32] | None
    complement: NDArray[np.int64]


@dataclass
class _Rows:
    """Rows in no order yet: w [n, nr, 4], the rest [n]. order only means something in form PICKED."""

    w: NDArray[np.int16]
    panel: NDArray[np.intp]
    group: NDArray[np.intp]
    form: NDArray[np.intp]
    order: NDArray[np.int64]


@dataclass
class _Todo:
    """Depth groups, [panels, depth groups]: which have no safe form of their own, and which have no rows yet."""

    is_unsafe: NDArray[np.bool_]
    is_left: NDArray[np.bool_]

    def windows(self, piece: int, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Panel and first depth group of every `count` that lie in one piece, if one of them is unsafe."""
        place = np.arange(self.is_unsafe.shape[1]) % piece
        starts = np.nonzero((place % count == 0) & (place + count <= piece))[0]
        panel, window = np.nonzero(self.is_unsafe[:, starts[:, None] + np.arange(count)].any(-1))
        return panel, starts[window]

    def done(self, panel: NDArray[np.intp], first: NDArray[np.intp], count: int) -> None:
        """These windows have their rows."""
        members = panel[:, None], first[:, None] + np.arange(count)
        self.is_unsafe[members] = self.is_left[members] = False


def bounded_pairs(dense: NDArray[np.int8], piece: int) -> RowList | None:
    """Finds rows for each depth group: in a form in which no pair saturates, or picked of several, or two.

    Args:
        dense: Packed weights, int8 [panels, depth groups, nr * 4].
        piece: Depth groups whose bytes lie side by side wherever the image lies: of a tap, or of a run of taps.

    Returns:
        None where every pair is safe as it stands.
    """
    groups = dense.reshape(*dense.shape[:2], -1, 4).astype(np.int16)
    formed = np.stack([_in_form(groups, form) for form in range(len(FORMS))])
    safe = ~(excess(formed).any(-1) | (formed.max(-1) > 127)).any(-1)
    if safe[0].all():
        return None
    preferred = np.array(PREFERENCE)
    chosen = np.where(safe.any(0), preferred[safe[preferred].argmax(0)], 0)
    todo = _Todo(~safe.any(0), np.ones(chosen.shape, bool))
    picked = [pick(groups, todo, piece) for pick in (_pick_of_window, _pick_of_two)] if piece >= WINDOW else []
    first = np.take_along_axis(formed, chosen[None, :, :, None, None], 0)[0]
    second = excess(first)
    rows = [_plain(first - second, todo.is_left, chosen), _plain(second, todo.is_left & second.any((2, 3)), chosen)]
    signs = np.array([form[1] for form in FORMS])[chosen]
    is_complemented = (signs[:, :, None] < 0) & todo.is_left[:, :, None, None]
    complement = np.where(is_complemented, first, 0).sum((1, 3), dtype=np.int64) * 255
    return _as_list(rows + picked, _parts(dense.shape[1], piece), complement)


def _in_form(groups: NDArray[np.int16], form: int) -> NDArray[np.int16]:
    """The weights [..., nr, 4] that a form of the bytes takes."""
    order, signs = FORMS[form]
    return groups[..., order] * np.array(signs, np.int16)


def _plain(w: NDArray[np.int16], is_row: NDArray[np.bool_], form: NDArray[np.intp]) -> _Rows:
    """The rows of [panels, depth groups] that are some."""
    panel, group = np.nonzero(is_row)
    return _Rows(w[panel, group], panel, group, form[panel, group], np.zeros(len(panel), np.int64))


def _pick_of_two(groups: NDArray[np.int16], todo: _Todo, piece: int) -> _Rows:
    """The two rows of each two neighbouring depth groups, one of them unsafe, whose eight bytes can all be paired."""
    panel, first = todo.windows(piece, 2)
    near = _neighbours(groups, panel, first, 2)
    is_safe, order = safe_orders(near)
    panel, first, near, order = panel[is_safe], first[is_safe], near[is_safe], order[is_safe]
    todo.done(panel, first, 2)
    base = np.minimum(first, first - first % piece + piece - WINDOW)  # a row reads all of a window
    return _picked(np.take_along_axis(near, order[:, None, :], 2), panel, base, order + 4 * (first - base)[:, None])


def _pick_of_window(groups: NDArray[np.int16], todo: _Todo, piece: int) -> _Rows:
    """The rows of windows for which picking takes fewer than second rows do: bytes in no pair stand beside a zero.

    Not where picking of two does as well.
    """
    panel, first = todo.windows(piece, WINDOW)
    near = _neighbours(groups, panel, first, WINDOW)
    is_unsafe = todo.is_unsafe[panel[:, None], first[:, None] + np.arange(WINDOW)]
    halves = (near[..., :8], is_unsafe[:, :2]), (near[..., 8:], is_unsafe[:, 2:])
    by_twos = [safe_orders(half)[0] | ~unsafe.any(-1) for half, unsafe in halves]
    left = np.nonzero(~(by_twos[0] & by_twos[1]))[0]
    order, pairs = most_pairs(near[left])
    rows = (16 - pairs + 1) // 2
    is_less = rows < WINDOW + is_unsafe[left].sum(-1)
    panel, first, near = (v[left][is_less] for v in (panel, first, near))
    order, pairs, rows = order[is_less], pairs[is_less], rows[is_less]
    todo.done(panel, first, WINDOW)
    slot = np.arange(16)
    is_pair = slot < pairs[:, None]
    left, right = np.where(is_pair, 2 * slot, pairs[:, None] + slot), np.where(is_pair, 2 * slot + 1, 0)
    in_slots = np.stack([left, right], -1).reshape(-1, 32)
    is_used = np.stack([slot < 16 - pairs[:, None], is_pair], -1).reshape(-1, 32)
    byte = np.take_along_axis(order, np.where(is_used, in_slots, 0), 1)
    w = np.take_along_axis(near, byte[:, None, :], 2) * is_used[:, None, :]
    exists = np.arange(8) < rows[:, None]
    return _picked(w, panel, first, byte, exists)


def _neighbours(
    groups: NDArray[np.int16], panel: NDArray[np.intp], first: NDArray[np.intp], count: int
) -> NDArray[np.int16]:
    """The weights of `count` depth groups [n, nr, 4 * count], of [panels, depth groups, nr, 4]."""
    near: NDArray[np.int16] = np.moveaxis(groups[panel[:, None], first[:, None] + np.arange(count)], 1, 2)
    return near.reshape(*near.shape[:2], 4 * count)


def _picked(
    w: NDArray[np.int16],
    panel: NDArray[np.intp],
    base: NDArray[np.intp],
    byte: NDArray[np.intp],
    exists: NDArray[np.bool_] | None = None,
) -> _Rows:
    """Cuts weights [n, nr, 4 * rows] and the bytes they take [n, 4 * rows] into rows, of which not all need exist."""
    rows = byte.shape[1] // 4
    kept = np.ones((len(w), rows), bool) if exists is None else exists
    by_row = w.reshape(*w.shape[:2], rows, 4).swapaxes(1, 2)[kept]
    order = (byte.reshape(-1, rows, 4)[kept] << np.array([0, 8, 16, 24])).sum(1)
    window = np.nonzero(kept)[0]
    return _Rows(by_row, panel[window], base[window], np.full(len(order), PICKED), order)


def _parts(depth_groups: int, piece: int) -> NDArray[np.intp]:
    """The part of each depth group: where pieces are long enough, each is of one piece only."""
    group = np.arange(depth_groups)
    if piece < LEAST_PART:
        return group // PART
    parts_of_piece = -(-piece // PART)
    return group // piece * parts_of_piece + group % piece * parts_of_piece // piece


def _as_list(rows: list[_Rows], part_of: NDArray[np.intp], complement: NDArray[np.int64]) -> RowList:
    """Sorts rows by panel, part and form."""
    parts = int(part_of[-1]) + 1
    w, panel, group, form, order = (
        np.concatenate([getattr(some, name) for some in rows]) for name in ("w", "panel", "group", "form", "order")
    )
    forms = len(FORMS) + bool((form == PICKED).any())
    segment = (panel * parts + part_of[group]) * forms + form
    listed = np.lexsort((group, segment))
    counts = np.bincount(segment, minlength=len(complement) * parts * forms)
    return RowList(
        w[listed].reshape(len(w), -1).astype(np.int8),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        group[listed].astype(np.int32),
        order[listed][form[listed] == PICKED].astype(np.int32) if forms > len(FORMS) else None,
        complement,
    )
