"""Which function lowers which operator. Each file of ops/ registers its own with @lowers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import onnx_ir as ir

if TYPE_CHECKING:
    from edgekit.converters.lowering.builder import PlanBuilder

Lowering = Callable[["PlanBuilder", ir.Node], None]

_LOWERINGS: dict[tuple[str, str], Lowering] = {}
_DEFAULT_DOMAINS = ("", "ai.onnx")


class NotLowerableError(Exception):
    """A node can't become native operations; the message says why, as a clause for the report."""


def lowers(*op_types: str, domain: str = "") -> Callable[[Lowering], Lowering]:
    """Registers a lowering for operators of one domain.

    A lowering emits the native operations of one node, or of the node and those it fuses, and binds the values they
    give. It raises NotLowerableError before it emits anything.
    """

    def register(function: Lowering) -> Lowering:
        for op_type in op_types:
            _LOWERINGS[domain, op_type] = function
        return function

    return register


def find_lowering(node: ir.Node) -> Lowering | None:
    """The lowering for a node; None where there is none."""
    domain = "" if node.domain in _DEFAULT_DOMAINS else node.domain
    return _LOWERINGS.get((domain, node.op_type))


def registered_operators() -> frozenset[tuple[str, str]]:
    """(domain, op_type) of everything that has a lowering."""
    return frozenset(_LOWERINGS)
