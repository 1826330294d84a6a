"""Brings operands to the ranks that programs allow: 1 to 6."""

from __future__ import annotations

from dataclasses import replace

from edgekit.converters.lowering.registry import NotLowerableError
from edgekit.converters.lowering.views import View
from edgekit.package.program_schema import program_schema

_ELEMENTWISE_OPCODES = frozenset(("copy", "convert", "unary", "binary", "binary_q8", "lut_q8", "where", "fill"))


def legal_operands(opcode: str, views: list[View | None]) -> list[View | None]:
    """Operands as the program can hold them.

    Elementwise ops take any rank: axes are joined, or one is added, in all operands alike.

    Args:
        opcode: Name in the schema.
        views: Inputs, then outputs.

    Raises:
        NotLowerableError: An operand has too many dims.
    """
    limit = program_schema().max_rank
    if opcode in _ELEMENTWISE_OPCODES:
        views = _elementwise_operands(views, limit)
    if any(view is not None and view.rank > limit for view in views):
        raise NotLowerableError(f"{opcode} of more than {limit} dims")
    return views


def _elementwise_operands(views: list[View | None], limit: int) -> list[View | None]:
    result = views[-1]
    assert result is not None
    if result.rank == 0:
        return [view.with_axis(0) if view is not None and view.rank == 0 else view for view in views]
    if result.rank <= limit:
        return views
    alike = [view is not None and view.dims == result.dims for view in views]  # tables are not
    joined = iter(_joined([view for view, same in zip(views, alike, strict=True) if view is not None and same]))
    return [next(joined) if same else view for view, same in zip(views, alike, strict=True)]


def _joined(views: list[View]) -> list[View]:
    """Drops axes of extent 1 and joins neighbours that are dense in every view."""
    keep = [axis for axis, dim in enumerate(views[0].dims) if dim != 1] or [0]
    views = [view.permuted(keep) for view in views]
    for axis in reversed(range(views[0].rank - 1)):
        if all(view.strides[axis] == view.strides[axis + 1] * view.dims[axis + 1] for view in views):
            views = [_join(view, axis) for view in views]
    return views


def _join(view: View, axis: int) -> View:
    dims = (*view.dims[:axis], view.dims[axis] * view.dims[axis + 1], *view.dims[axis + 2 :])
    strides = (*view.strides[:axis], *view.strides[axis + 1 :])
    return replace(view, dims=dims, strides=strides)
