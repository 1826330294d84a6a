"""Reading an onnx_ir graph: constants, consumers, names."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray


def constant(value: ir.Value | None) -> NDArray[np.generic] | None:
    """The array of an initializer or of a Constant node; None for anything that varies."""
    if value is None:
        return None
    producer = value.producer()
    if producer is not None:
        if producer.op_type != "Constant" or "value" not in producer.attributes:
            return None
        return producer.attributes["value"].as_tensor().numpy()
    if value.is_graph_input() or value.const_value is None:
        return None
    return value.const_value.numpy()


def scalar(value: ir.Value | None) -> float | None:
    """The number that a constant of one element holds; None otherwise."""
    array = constant(value)
    return float(array.reshape(())) if array is not None and array.size == 1 else None


def is_float_activation(value: ir.Value | None) -> bool:
    """Whether a value is float32 (or of unstated type) and not a constant."""
    if value is None or constant(value) is not None:
        return False
    return value.dtype is None or value.dtype == ir.DataType.FLOAT


def attribute_int(node: ir.Node, name: str, default: int) -> int:
    """An integer attribute."""
    return node.attributes[name].as_int() if name in node.attributes else default


def attribute_text(node: ir.Node, name: str, default: str) -> str:
    """A string attribute."""
    return node.attributes[name].as_string() if name in node.attributes else default


def only_consumer(value: ir.Value) -> ir.Node | None:
    """The node that alone reads the value, once; None when it has several uses or is a graph output."""
    uses = tuple(value.uses())
    return uses[0].node if len(uses) == 1 and not value.is_graph_output() else None


class FreshNames:
    """Gives names that nothing in the graph has yet."""

    def __init__(self, graph: ir.Graph) -> None:
        self._taken: set[str] = set()
        for node in graph.all_nodes():
            self._take(node.name)
            for value in (*node.inputs, *node.outputs):
                self._take(value.name if value is not None else None)
        self._take_all(value.name for value in (*graph.inputs, *graph.outputs, *graph.initializers.values()))

    def _take(self, name: str | None) -> None:
        if name:
            self._taken.add(name)

    def _take_all(self, names: Iterable[str | None]) -> None:
        for name in names:
            self._take(name)

    def make(self, wish: str) -> str:
        """Returns the wish, or with the first free number behind it."""
        name, number = wish, 1
        while name in self._taken:
            name, number = f"{wish}_{number}", number + 1
        self._taken.add(name)
        return name
