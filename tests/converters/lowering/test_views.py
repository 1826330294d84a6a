"""Views do what numpy does, without a copy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from edgekit.converters.lowering.views import Storage, View, channels_last_order, dense_view

DIMS = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def start(dims: tuple[int, ...], order: tuple[int, ...]) -> tuple[View, np.ndarray]:
    size = int(np.prod(dims))
    return dense_view(Storage("arena", "i32", size), dims, order), np.arange(size, dtype=np.int32)


def seen(view: View, memory: np.ndarray) -> np.ndarray:
    return as_strided(memory[view.offset :], view.dims, tuple(4 * stride for stride in view.strides))


@settings(deadline=None)
@given(st.data(), DIMS)
def test_chains_of_views(data: st.DataObject, dims: tuple[int, ...]) -> None:
    view, memory = start(dims, tuple(data.draw(st.permutations(range(len(dims))))))
    array = seen(view, memory)
    for _ in range(data.draw(st.integers(1, 5))):
        view, array = _step(data, view, array)
        np.testing.assert_array_equal(seen(view, memory), array)


def _step(data: st.DataObject, view: View, array: np.ndarray) -> tuple[View, np.ndarray]:
    kind = data.draw(st.sampled_from(["permute", "slice", "insert", "reshape", "reverse"]))
    axis = data.draw(st.integers(0, view.rank - 1))
    if kind == "permute":
        permutation = data.draw(st.permutations(range(view.rank)))
        return view.permuted(permutation), array.transpose(permutation)
    if kind == "slice":
        first = data.draw(st.integers(0, view.dims[axis] - 1))
        step = data.draw(st.integers(1, 2))
        count = data.draw(st.integers(1, (view.dims[axis] - first + step - 1) // step))
        index = [slice(None)] * view.rank
        index[axis] = slice(first, first + (count - 1) * step + 1, step)
        return view.sliced(axis, first, count, step), array[tuple(index)]
    if kind == "insert":
        return (view.with_axis(axis), np.expand_dims(array, axis)) if view.rank < 6 else (view, array)
    if kind == "reverse":
        return view.sliced(axis, view.dims[axis] - 1, view.dims[axis], -1), np.flip(array, axis)
    dims = _other_shape(data, view.elements)
    reshaped = view.reshaped(dims)
    return (view, array) if reshaped is None else (reshaped, array.reshape(dims))


def _other_shape(data: st.DataObject, elements: int) -> tuple[int, ...]:
    dims = []
    while elements > 1 and len(dims) < 4:
        dims.append(data.draw(st.sampled_from([d for d in range(1, elements + 1) if elements % d == 0])))
        elements //= dims[-1]
    return (*dims, elements)


@settings(deadline=None)
@given(st.data(), DIMS)
def test_a_reshape_is_found_where_numpy_finds_one(data: st.DataObject, dims: tuple[int, ...]) -> None:
    view, memory = start(dims, tuple(data.draw(st.permutations(range(len(dims))))))
    target = _other_shape(data, view.elements)
    strided = seen(view, memory)
    shares_memory = np.shares_memory(strided.reshape(target), memory)
    assert (view.reshaped(target) is not None) == shares_memory


def test_expanded_repeats_by_stride_zero() -> None:
    view, memory = start((3, 1), (0, 1))
    np.testing.assert_array_equal(seen(view.expanded((2, 3, 4)), memory), np.broadcast_to(memory[:3, None], (2, 3, 4)))


def test_covers_storage() -> None:
    view, _ = start((2, 3, 4), (2, 0, 1))
    assert view.covers_storage()
    assert not view.sliced(0, 0, 1).covers_storage()
    assert not view.sliced(2, 0, 2, 2).expanded((2, 2, 3, 2)).covers_storage()


def test_order_keeps_axes_of_extent_one_in_place() -> None:
    view, _ = start((1, 8, 1, 5), channels_last_order(4))
    assert view.order() == (0, 2, 3, 1)
    assert dense_view(Storage("arena", "f32", 40), (1, 8, 5), (0, 2, 1)).with_axis(2).order() == (0, 2, 3, 1)
