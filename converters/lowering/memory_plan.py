"""The memory plan: which storages share memory in place, and where each lies in the arena."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from edgekit.converters.lowering.builder import LoweredOp
from edgekit.converters.lowering.views import Storage, View
from edgekit.package.program_schema import numpy_dtype, program_schema

# Of the search: networks rarely need it, but a few get a third smaller.
_TRIES = 300
_GOOD_ENOUGH = 1.02  # arena over lower bound
_SWAP_SHARE = 0.3

_IN_PLACE_OPCODES = frozenset(("binary", "binary_q8", "unary", "lut_q8", "convert", "where"))


@dataclass(frozen=True)
class MemoryPlan:
    """Places in the arena.

    Attributes:
        offsets: Byte offset by storage.
        arena_bytes: Size of the arena, guard included.
        lower_bound_bytes: Most bytes alive at one time; no plan can do with less.
    """

    offsets: dict[Storage, int]
    arena_bytes: int
    lower_bound_bytes: int


@dataclass
class _Block:
    """Storages that share one place, alive from op `first` to op `last`."""

    storages: list[Storage]
    size_bytes: int
    first: int
    last: int


@dataclass
class _Placement:
    """Blocks in the order in which they were placed, the offset of each, and where the last one ends."""

    order: list[_Block]
    places: list[tuple[int, _Block]]
    end: int


_ORDERS: tuple[_Order, ...] = (
    lambda block: (-block.size_bytes, block.first),
    lambda block: (-block.size_bytes * (block.last - block.first + 1), block.first),
    lambda block: (block.first - block.last, -block.size_bytes),
    lambda block: (block.first, -block.size_bytes),
    lambda block: (-block.last, -block.size_bytes),
)


_Order = Callable[["_Block"], tuple[int, int]]


def plan_memory(ops: list[LoweredOp]) -> MemoryPlan:
    """Greedy best fit, in the best of several orders: a block goes into the tightest gap among those alive with it."""
    blocks = _blocks(ops)
    bound = _most_alive(blocks, len(ops))
    best: _Placement | None = None
    for order in _ORDERS:
        placement = _place(sorted(blocks, key=order))
        if best is None or placement.end < best.end:
            best = placement
        if best.end == bound:
            break
    assert best is not None
    best = _improve(best, bound)
    return MemoryPlan({s: offset for offset, block in best.places for s in block.storages}, best.end, bound)


def _place(order: list[_Block]) -> _Placement:
    placed: list[tuple[int, _Block]] = []
    for block in order:
        placed.append((_best_gap(block, placed), block))
    return _Placement(order, placed, max((offset + block.size_bytes for offset, block in placed), default=0))


def _improve(best: _Placement, bound: int) -> _Placement:
    """Places blocks that stick out earlier, at random but the same each time, while that does not make it worse."""
    random = Random(0)
    current = best
    for _ in range(_TRIES):
        if best.end <= bound * _GOOD_ENOUGH:
            break
        order = list(current.order)
        sticks_out = random.choice([b for offset, b in current.places if offset + b.size_bytes > bound])
        position = order.index(sticks_out)
        order.insert(random.randint(0, max(0, position - 1)), order.pop(position))
        if random.random() < _SWAP_SHARE:
            a, b = random.randrange(len(order)), random.randrange(len(order))
            order[a], order[b] = order[b], order[a]
        placement = _place(order)
        if placement.end <= current.end:
            current = placement
        if placement.end < best.end:
            best = placement
    return best


def _aligned_bytes(storage: Storage) -> int:
    """Bytes of a storage with its guard, up to the alignment."""
    alignment = program_schema().alignment_bytes
    size = storage.elements * numpy_dtype(storage.dtype).itemsize
    return size + -size % alignment + alignment


def _blocks(ops: list[LoweredOp]) -> list[_Block]:
    by_storage: dict[Storage, _Block] = {}
    for index, op in enumerate(ops):
        for view in (*op.inputs, *op.outputs):
            if view is not None and view.storage.kind == "arena":
                storage = view.storage
                block = by_storage.setdefault(storage, _Block([storage], _aligned_bytes(storage), index, index))
                block.last = index
    for index, op in enumerate(ops):
        if op.opcode in _IN_PLACE_OPCODES:
            _share_in_place(by_storage, index, op)
    return list({id(block): block for block in by_storage.values()}.values())


def _share_in_place(by_storage: dict[Storage, _Block], index: int, op: LoweredOp) -> None:
    """Puts the result of an elementwise op where an operand ends that nobody reads any more."""
    result = op.outputs[0]
    if result is None or result.storage.kind != "arena" or not result.covers_storage():
        return
    target = by_storage[result.storage]
    if target.first != index:
        return
    for operand in op.inputs:
        if operand is None or operand.storage.kind != "arena" or not _same_layout(operand, result):
            continue
        source = by_storage[operand.storage]
        others = [v for v in op.inputs if v is not None and v is not operand]
        read_otherwise = any(v.storage.kind == "arena" and by_storage[v.storage] is source for v in others)
        if source is target or source.last != index or read_otherwise:
            continue
        source.storages += target.storages
        source.last = target.last
        for storage in target.storages:
            by_storage[storage] = source
        return


def _same_layout(operand: View, result: View) -> bool:
    same_width = numpy_dtype(operand.dtype).itemsize == numpy_dtype(result.dtype).itemsize
    same_strides = all(d == 1 or a == b for d, a, b in zip(result.dims, operand.strides, result.strides, strict=True))
    return same_width and operand.covers_storage() and operand.dims == result.dims and same_strides


def _best_gap(block: _Block, placed: list[tuple[int, _Block]]) -> int:
    """Lowest offset of the tightest gap that holds the block; the end where none does."""
    alive = sorted(
        (offset, offset + other.size_bytes)
        for offset, other in placed
        if other.first <= block.last and block.first <= other.last
    )
    best, best_size, position = None, None, 0
    for start, end in alive:
        gap = start - position
        if gap >= block.size_bytes and (best_size is None or gap < best_size):
            best, best_size = position, gap
        position = max(position, end)
    return position if best is None else best


def _most_alive(blocks: list[_Block], op_count: int) -> int:
    changes = [0] * (op_count + 1)
    for block in blocks:
        changes[block.first] += block.size_bytes
        changes[block.last + 1] -= block.size_bytes
    alive = most = 0
    for change in changes:
        alive += change
        most = max(most, alive)
    return most
