"""The operators of the domain "edgekit", each as a model-local function, so that any ONNX tool can run the model."""

from __future__ import annotations

import onnx
import onnx_ir as ir
from onnx import helper

DOMAIN = "edgekit"
SILU = "Silu"
RMS_NORMALIZATION = "RMSNormalization"
_FUNCTION_OPSET = 21


def _silu() -> onnx.FunctionProto:
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["gate"]),
        helper.make_node("Mul", ["x", "gate"], ["y"]),
    ]
    return helper.make_function(DOMAIN, SILU, ["x"], ["y"], nodes, [helper.make_opsetid("", _FUNCTION_OPSET)])


def _rms_normalization() -> onnx.FunctionProto:
    epsilon = helper.make_node("Constant", [], ["epsilon"])
    reference = epsilon.attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "value_float", "epsilon", onnx.AttributeProto.FLOAT
    nodes = [
        epsilon,
        helper.make_node("Constant", [], ["last"], value_ints=[-1]),
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("ReduceMean", ["square", "last"], ["mean"], keepdims=1),
        helper.make_node("Add", ["mean", "epsilon"], ["shifted"]),
        helper.make_node("Sqrt", ["shifted"], ["rms"]),
        helper.make_node("Div", ["x", "rms"], ["normalised"]),
        helper.make_node("Mul", ["normalised", "scale"], ["y"]),
    ]
    opsets = [helper.make_opsetid("", _FUNCTION_OPSET)]
    return helper.make_function(DOMAIN, RMS_NORMALIZATION, ["x", "scale"], ["y"], nodes, opsets, ["epsilon"])


def declare(model: ir.Model) -> None:
    """Adds the functions and the domain to a model that has, or will have, edgekit operators."""
    for proto in (_silu(), _rms_normalization()):
        function = ir.serde.deserialize_function(proto)
        model.functions.setdefault(function.identifier(), function)
    model.graph.opset_imports[DOMAIN] = 1


def remove_unused_functions(model: ir.Model) -> None:
    """Takes away the model-local functions that no node calls, directly or through another function."""
    pending = [node.op_identifier() for node in ir.traversal.RecursiveGraphIterator(model.graph)]
    called = set()
    while pending:
        identifier = pending.pop()
        if identifier in model.functions and identifier not in called:
            called.add(identifier)
            body = ir.traversal.RecursiveGraphIterator(model.functions[identifier].graph)
            pending.extend(node.op_identifier() for node in body)
    for identifier in set(model.functions) - called:
        del model.functions[identifier]


def undeclare_unused(model: ir.Model) -> None:
    """Takes away functions that no node calls, and the edgekit domain with its last one."""
    remove_unused_functions(model)
    if not any(identifier[0] == DOMAIN for identifier in model.functions):
        model.graph.opset_imports.pop(DOMAIN, None)


def expand(model: ir.Model) -> ir.Model:
    """Returns a copy with edgekit operators replaced by standard ONNX nodes (their functions inlined)."""
    from onnx_ir.passes import common

    result = common.InlinePass()(model.clone()).model
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(result)
    undeclare_unused(result)
    return result
