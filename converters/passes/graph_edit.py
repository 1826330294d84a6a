"""Small edits and questions on onnx_ir graphs that the passes share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

ONNX_DOMAINS = ("", "ai.onnx")


def all_nodes(model: ir.Model) -> list[ir.Node]:
    """Lists the nodes of the graph and of every sub-graph of If, Loop and Scan; safe to edit while walking."""
    return list(ir.traversal.RecursiveGraphIterator(model.graph))


def all_graphs(model: ir.Model) -> list[ir.Graph]:
    """Lists the main graph and every sub-graph."""
    graphs = [model.graph]
    for node in all_nodes(model):
        graphs.extend(subgraphs_of(node))
    return graphs


def subgraphs_of(node: ir.Node) -> Iterator[ir.Graph]:
    """Yields the graphs in a node's attributes."""
    for attr in node.attributes.values():
        if attr.type == ir.AttributeType.GRAPH:
            yield attr.as_graph()
        elif attr.type == ir.AttributeType.GRAPHS:
            yield from attr.as_graphs()


def is_op(node: ir.Node | None, *op_types: str, domain: str = "") -> bool:
    """Tells whether a node is one of these operators; the standard domain unless said otherwise."""
    if node is None or node.op_type not in op_types:
        return False
    return node.domain in ONNX_DOMAINS if domain == "" else node.domain == domain


def producer(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """Returns the node that makes a value if it is one of these standard operators."""
    node = None if value is None else value.producer()
    return node if is_op(node, *op_types) else None


def attribute(node: ir.Node, name: str, default: Any) -> Any:
    """Returns an attribute's value, lists as lists, or the default when it is absent."""
    attr = node.attributes.get(name)
    if attr is None:
        return default
    value = attr.value
    return list(value) if isinstance(value, tuple) else value


def constant_of(value: ir.Value | None) -> NDArray[Any] | None:
    """Returns the array of an initializer that no caller can override, else None."""
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    return value.const_value.numpy()


def scalar_of(value: ir.Value | None) -> float | None:
    """Returns the number in a constant with one element, else None."""
    array = constant_of(value)
    return float(array.reshape(())) if array is not None and array.size == 1 else None


def input_at(node: ir.Node, index: int) -> ir.Value | None:
    """Returns an input, None when it is absent or left empty."""
    return node.inputs[index] if index < len(node.inputs) else None


def used_once(value: ir.Value) -> bool:
    """Tells whether exactly one node input reads the value, which is no graph output."""
    return len(value.uses()) == 1 and not value.is_graph_output()


def only_consumer(value: ir.Value) -> ir.Node | None:
    """Returns the node that alone reads the value, once; None when there are more or it is a graph output."""
    return next(iter(value.uses())).node if used_once(value) else None


def constant_operand(node: ir.Node) -> tuple[ir.Value, NDArray[Any], int] | None:
    """Splits a binary node with one constant operand into (other operand, constant, index of the other operand)."""
    if len(node.inputs) != 2:
        return None
    for index in (0, 1):
        other, constant = node.inputs[index], constant_of(node.inputs[1 - index])
        if other is not None and constant is not None and constant_of(other) is None:
            return other, constant, index
    return None


def names_in_use(model: ir.Model) -> set[str]:
    """Collects the names of all values, initializers included."""
    names: set[str] = set()
    for graph in all_graphs(model):
        names.update(v.name for v in graph.inputs if v.name)
        names.update(name for name in graph.initializers)
        names.update(v.name for node in graph for v in node.outputs if v.name)
    return names


def add_constant(model: ir.Model, stem: str, array: NDArray[Any]) -> ir.Value:
    """Adds an initializer to the main graph, visible in every sub-graph, under a name that nothing else has.

    Args:
        model: The model.
        stem: Start of its name.
        array: Its value; copied to be contiguous.

    Returns:
        The value to use as an input.
    """
    name = fresh_name(model, stem)
    tensor = ir.Tensor(np.ascontiguousarray(array).reshape(array.shape), name=name)
    value = ir.Value(name=name, shape=tensor.shape, type=ir.TensorType(tensor.dtype), const_value=tensor)
    model.graph.register_initializer(value)
    return value


def fresh_name(model: ir.Model, stem: str) -> str:
    """Returns a value name that nothing in the model has yet, and reserves it."""
    taken = model.meta.get("edgekit.names")
    if taken is None:
        taken = names_in_use(model)
        model.meta["edgekit.names"] = taken
    name, count = stem, 0
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    taken.add(name)
    return name


def forget_names(model: ir.Model) -> None:
    """Drops the cache of names in use; the pass runner calls it before each pass."""
    model.meta.pop("edgekit.names", None)


def take_over(old: ir.Value, new: ir.Value) -> bool:
    """Lets `new` stand for `old` everywhere, under old's name where old is a graph output.

    Args:
        old: Output of a node.
        new: Any value of the same type and shape.

    Returns:
        False, with nothing changed, when old is a graph output whose name new can't take.
    """
    if old.is_graph_output():
        if new.is_graph_output() or new.is_graph_input() or new.is_initializer():
            return False
        if new.graph is not old.graph:
            return False
        name = old.name
        old.name = f"{name}_replaced"
        new.name = name
    if new.shape is None:
        new.shape = old.shape
    if new.type is None:
        new.type = old.type
    ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
    return True


def replace_node(old: ir.Node, new: ir.Node) -> None:
    """Puts a one-output node in the place of another, its output under the same name.

    Args:
        old: Removed, together with producers that nothing reads any more.
        new: Inserted before it.
    """
    graph = old.graph
    if not isinstance(graph, ir.Graph):
        raise TypeError(f"node {old.name} is in no graph")
    graph.insert_before(old, new)
    value, result = old.outputs[0], new.outputs[0]
    name = value.name
    result.type, result.shape = value.type, value.shape
    was_output = value.is_graph_output()
    if not take_over(value, result):
        raise ValueError(f"{name} can't be replaced")
    if not was_output:
        value.name, result.name = f"{name}_replaced", name
    remove_unused(old)


def remove_unused(node: ir.Node) -> None:
    """Removes a node nothing reads, then its producers if nothing reads them either."""
    if node.graph is None or any(v.uses() or v.is_graph_output() for v in node.outputs):
        return
    inputs = [v for v in node.inputs if v is not None]
    node.graph.remove(node, safe=True)
    for value in inputs:
        source = value.producer()
        if source is not None:
            remove_unused(source)


def fused_name(*nodes: ir.Node) -> str:
    """Joins node names with "+", in the given order, each once."""
    parts: list[str] = []
    for node in nodes:
        for part in (node.name or node.op_type).split("+"):
            if part not in parts:
                parts.append(part)
    return "+".join(parts)


def static_shape(value: ir.Value | None) -> tuple[int, ...] | None:
    """Returns the shape when every dim is a known number, else None."""
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return tuple(int(d) for d in value.shape.numpy())


def rank_of(value: ir.Value | None) -> int | None:
    """Returns the rank when it is known."""
    return None if value is None or value.shape is None else len(value.shape)


def dim_of(value: ir.Value | None, axis: int) -> int | None:
    """Returns one dim when it is a known number."""
    if value is None or value.shape is None or not -len(value.shape) <= axis < len(value.shape):
        return None
    dim = value.shape[axis]
    return dim if isinstance(dim, int) else None


def is_float32(value: ir.Value | None) -> bool:
    """Tells whether a value is known to be float32."""
    return value is not None and value.dtype == ir.DataType.FLOAT


def close_to(array: NDArray[Any] | float | None, target: float, relative: float = 1e-4) -> bool:
    """Tells whether a number, or all of an array, is a given number up to float32 literals."""
    return array is not None and bool(np.all(np.abs(np.asarray(array) - target) <= relative * max(abs(target), 1e-3)))


def live_nodes(nodes: Sequence[ir.Node], *op_types: str) -> Iterator[ir.Node]:
    """Yields nodes of the given standard operators that are still in a graph when their turn comes."""
    for node in nodes:
        if node.graph is not None and is_op(node, *op_types):
            yield node
