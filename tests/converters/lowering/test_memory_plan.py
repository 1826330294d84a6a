"""Blocks that are alive together never overlap, guards included, and sharing in place is safe."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekit.converters.lowering.builder import LoweredOp
from edgekit.converters.lowering.memory_plan import plan_memory
from edgekit.converters.lowering.views import Storage, View, dense_view

GUARD = 64


def value(elements: int, dtype: str = "u8") -> View:
    return dense_view(Storage("arena", dtype, elements), (elements,))


def op(opcode: str, inputs: list[View], output: View) -> LoweredOp:
    return LoweredOp(opcode, list(inputs), [output], {}, ())


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 6), st.booleans()), min_size=2, max_size=25))
def test_nothing_overlaps(rows: list[tuple[int, int, bool]]) -> None:
    values, ops = [value(rows[0][0])], []
    for size, back, elementwise in rows:
        source = values[-min(back, len(values))]
        values.append(value(source.elements if elementwise else size))
        ops.append(op("unary" if elementwise else "pool", [source], values[-1]))
    plan = plan_memory(ops)
    spans = {v.storage: (plan.offsets[v.storage], plan.offsets[v.storage] + v.elements + GUARD) for v in values}
    assert all(start % 64 == 0 and end <= plan.arena_bytes for start, end in spans.values())
    assert plan.lower_bound_bytes <= plan.arena_bytes
    for position, step in enumerate(ops):
        alive = {v.storage for v in values if _first(ops, v) <= position <= _last(ops, v)}
        written = step.outputs[0].storage
        for storage in alive - {written}:
            overlap = spans[storage][0] < spans[written][1] and spans[written][0] < spans[storage][1]
            ends_here = storage is step.inputs[0].storage and _last_of(ops, storage) == position
            assert not overlap or (step.opcode == "unary" and ends_here and spans[storage][0] == spans[written][0])


def _first(ops: list[LoweredOp], view: View) -> int:
    return min(i for i, o in enumerate(ops) if view.storage in (o.inputs[0].storage, o.outputs[0].storage))


def _last(ops: list[LoweredOp], view: View) -> int:
    return _last_of(ops, view.storage)


def _last_of(ops: list[LoweredOp], storage: Storage) -> int:
    return max(i for i, o in enumerate(ops) if storage in (o.inputs[0].storage, o.outputs[0].storage))


def test_a_chain_of_elementwise_ops_needs_one_block() -> None:
    values = [value(1000) for _ in range(6)]
    plan = plan_memory([op("unary", [a], b) for a, b in pairwise(values)])
    assert plan.arena_bytes == 1024 + GUARD
    assert len(set(plan.offsets.values())) == 1


def test_an_operand_that_is_read_later_is_not_overwritten() -> None:
    a, b, c = value(100), value(100), value(100)
    plan = plan_memory([op("pool", [value(10)], a), op("unary", [a], b), op("binary", [a, b], c)])
    assert plan.offsets[a.storage] != plan.offsets[b.storage]
    assert plan.offsets[c.storage] in (plan.offsets[a.storage], plan.offsets[b.storage])


def test_an_operand_seen_in_two_ways_is_not_overwritten() -> None:
    a, b = value(100), value(100)
    backwards = a.sliced(0, 99, 100, -1)
    plan = plan_memory([op("pool", [value(10)], a), op("binary", [a, backwards], b)])
    assert plan.offsets[a.storage] != plan.offsets[b.storage]


def test_a_wider_result_does_not_share() -> None:
    a, b = value(100), value(100, "f32")
    plan = plan_memory([op("pool", [value(10)], a), op("convert", [a], b)])
    assert plan.offsets[a.storage] != plan.offsets[b.storage]
    assert plan.arena_bytes >= plan.lower_bound_bytes == (128 + GUARD) + (448 + GUARD)


def test_fragmentation_is_avoided_where_an_order_does() -> None:
    sizes = np.array([640, 64, 640, 1280, 64])
    values = [value(int(size)) for size in sizes]
    ops = [op("pool", [a], b) for a, b in pairwise(values)]
    plan = plan_memory(ops)
    assert plan.arena_bytes == plan.lower_bound_bytes
