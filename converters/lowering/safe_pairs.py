"""Which bytes can be paired so that the products of a pair add up in 16 bits, for all columns of a panel."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

PAIR_BOUND = 128  # of the positive, and of the negative, weights of a pair: 255 * 128 fits 16 bits
TRIES = 8  # at finding pairs of sixteen: one more finds all eight in few more of those that have them


def excess(row: NDArray[np.int16]) -> NDArray[np.int16]:
    """What the pairs of rows, int16 [..., nr, 2 * pairs], have beyond PAIR_BOUND: in the second of each pair."""
    pairs = row.reshape(*row.shape[:-1], row.shape[-1] // 2, 2)
    total = pairs.sum(-1, dtype=np.int16)
    same_sign = (pairs[..., 0] > 0) == (pairs[..., 1] > 0)
    beyond = np.zeros_like(pairs)
    beyond[..., 1] = np.where(same_sign, total - np.clip(total, -PAIR_BOUND, PAIR_BOUND), 0)
    return beyond.reshape(row.shape)


def _matchings(left: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All ways to put an even number of things in pairs, one pair behind the other."""
    if not left:
        return [()]
    first, rest = left[0], left[1:]
    return [
        (first, other, *matching) for i, other in enumerate(rest) for matching in _matchings(rest[:i] + rest[i + 1 :])
    ]


def safe_orders(eight: NDArray[np.int16]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """For weights, int16 [n, nr, 8]: which can be paired without excess, and the order for that, [n, 8]."""
    pairs = list(itertools.combinations(range(8), 2))
    matchings = np.array(_matchings(tuple(range(8))))
    pair_of = {pair: i for i, pair in enumerate(pairs)}
    members = np.array([[pair_of[a, b] for a, b in zip(m[::2], m[1::2], strict=True)] for m in matchings.tolist()])
    first, second = np.array(pairs).T
    both = np.stack([eight[..., first], eight[..., second]], -1)  # [n, nr, 28, 2]
    beyond = excess(both.reshape(*both.shape[:2], 2 * len(pairs)))
    is_safe: NDArray[np.bool_] = np.logical_not(beyond.reshape(both.shape).any(axis=(1, 3)))
    fits = is_safe[:, members].all(-1)  # [n, 105]
    found: NDArray[np.bool_] = np.logical_or.reduce(fits, axis=-1)
    return found, matchings[fits.argmax(-1)]


def _greedy_pairs(is_safe: NDArray[np.bool_], chance: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs up vertices that have few neighbours left first (Karp and Sipser), ties by chance.

    Args:
        is_safe: Graphs of 16 vertices, [n, 16, 16].
        chance: Decides ties, [n, 16] from 0 to 1.

    Returns:
        The vertices, pair behind pair and then those left over, [n, 16]; how many pairs there are, [n].
    """
    count = len(is_safe)
    every = np.arange(count)
    is_free, pairs = np.ones((count, 16), bool), np.zeros(count, np.intp)
    when = np.full((count, 16), 16.0)  # a vertex was taken
    for step in range(8):
        degree = (is_safe & is_free[:, None, :]).sum(-1) + chance / 2
        least = np.where(is_free & (degree >= 1), degree, np.inf)
        first = least.argmin(-1)
        found = every[np.isfinite(least[every, first])]
        first = first[found]
        second = np.where(is_safe[found, first] & is_free[found], degree[found], np.inf).argmin(-1)
        is_free[found, first] = is_free[found, second] = False
        when[found, first] = when[found, second] = step
        pairs[found] += 1
    return when.argsort(-1, kind="stable"), pairs


def most_pairs(sixteen: NDArray[np.int16]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """As _greedy_pairs, of weights, int16 [n, nr, 16]: the best of TRIES."""
    is_safe = np.ones((len(sixteen), 16, 16), bool)
    for first in range(16):
        both = np.stack(np.broadcast_arrays(sixteen[..., first, None], sixteen), -1)
        is_safe[:, first] = ~excess(both).any((1, 3))
    is_safe &= ~np.eye(16, dtype=bool)
    order, pairs = np.zeros((len(sixteen), 16), np.intp), np.full(len(sixteen), -1)
    bits = np.random.PCG64(0)  # raw: the same with every version of NumPy
    for _ in range(TRIES):
        left = np.nonzero(pairs < 8)[0]
        chance = (bits.random_raw(16 * len(left)) >> np.uint64(32)).reshape(-1, 16) / 2.0**32
        new_order, new_pairs = _greedy_pairs(is_safe[left], chance)
        better = new_pairs > pairs[left]
        order[left[better]], pairs[left[better]] = new_order[better], new_pairs[better]
    return order, pairs
