"""Constants, functions, names, roles, constant conditions, folding limits; rows of the faults table named."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper

from edgekit.converters.float_reference import FloatReference
from edgekit.converters.passes._pass import NumericGate, Pass, PassContext, relative_error, run_passes
from edgekit.converters.passes.common_subexpressions import COMMON_SUBEXPRESSIONS
from edgekit.converters.passes.constant_if import CONSTANT_IF
from edgekit.converters.passes.dead_nodes import DEAD_NODES
from edgekit.converters.passes.fold_constants import FOLD_CONSTANTS
from edgekit.converters.passes.identities import IDENTITIES
from edgekit.converters.passes.inline_functions import INLINE_FUNCTIONS
from edgekit.converters.passes.lift_constants import LIFT_CONSTANTS
from edgekit.converters.passes.order import NORMALISE, OPTIMISE
from edgekit.converters.passes.split_roles import SPLIT_ROLES
from edgekit.converters.passes.unique_names import UNIQUE_NAMES
from edgekit.errors import InternalError, UsageError

IF = """g (float[1,2,4,4] x{condition}) => (float[1,2,4,4] y)
    {{ y = If (c) <
        then_branch = t () => (float[1,2,4,4] a)
            {{ k = Constant <value = float[2,2,1,1] {{1, 2, 3, 4}}> () a = Conv (x, k) }},
        else_branch = e () => (float[1,2,4,4] b)
            {{ j = Constant <value = float[2,2,1,1] {{4, 3, 2, 1}}> () b = Conv (x, j) }}> }}"""


def test_weights_in_constant_nodes_are_lifted_out_of_branches(build, rewrite, ops):
    """Fault "weights left float: weights in Constant nodes; weights in If branches"."""
    model = rewrite(build(IF.format(condition=", bool c")), LIFT_CONSTANTS)
    assert ops(model) == {"If": 1, "Conv": 2}
    assert len(model.graph.initializers) == 2


@pytest.mark.parametrize("taken", [True, False])
def test_if_with_a_constant_condition_becomes_its_branch(build, rewrite, ops, taken):
    model = rewrite(build(IF.format(condition=""), c=np.array(taken)), LIFT_CONSTANTS, CONSTANT_IF)
    assert ops(model) == {"Conv": 1}


def test_functions_are_inlined():
    function = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 21)]
    )
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])
    graph = helper.make_graph([helper.make_node("Twice", ["x"], ["y"], domain="own")], "g", [value], [result])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    proto = helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=10)
    model = ir.serde.deserialize_model(proto)
    assert INLINE_FUNCTIONS.apply(model, PassContext()) == 1
    assert [n.op_type for n in model.graph] == ["Add"]
    assert not model.functions


def test_every_node_gets_a_name_of_its_own(build):
    model = build("g (float[2] x) => (float[2] y) { a = Relu (x) b = Relu (a) y = Relu (b) }")
    for node, name in zip(model.graph, ("same", "same", None), strict=True):
        node.name = name
    assert UNIQUE_NAMES.apply(model, PassContext()) == 2
    names = [n.name for n in model.graph]
    assert names[0] == "same"
    assert len(set(names)) == 3
    assert all(names)


def test_tied_weights_are_split_by_role(build, rewrite, normal):
    """Fault "half-quantized or crash: tied weights": one E for Gather and MatMul; Conv and ConvTranspose share W."""
    text = """g (int64[3] i, float[2,4] x, float[1,4,5,5] p)
          => (float[3,4] a, float[2,5] b, float[1,4,5,5] c, float[1,4,5,5] d)
        { a = Gather (e, i) t = Transpose <perm = [1,0]> (e) b = Gemm <transB = 1> (x, e)
          c = Conv (p, w) d = ConvTranspose (p, w) }"""
    model = rewrite(build(text, e=normal([5, 4]), w=normal([4, 4, 1, 1])), SPLIT_ROLES)
    by_name = {n.name: n for n in model.graph}
    assert by_name["Gather_0"].inputs[0] is not by_name["Gemm_2"].inputs[1]
    assert by_name["Conv_3"].inputs[1] is not by_name["ConvTranspose_4"].inputs[1]


def test_a_bias_of_two_convs_is_split_without_taking_a_name(build, rewrite, normal):
    """Fault "invalid model: duplicated bias takes an existing name": two Convs share b, an intermediate is b_1."""
    text = """g (float[1,2,3,3] x) => (float[1,2,3,3] y) { b_1 = Conv (x, w, b) y = Conv (b_1, w, b) }"""
    model = rewrite(build(text, w=normal([2, 2, 1, 1]), b=normal([2])), SPLIT_ROLES)
    first, second = model.graph
    assert first.inputs[2] is not second.inputs[2]
    assert "b_1" not in model.graph.initializers


def test_shape_arithmetic_is_folded_away(build, rewrite, ops):
    text = """g (float[2,3,4,5] x) => (float[2,3,20] y)
        { s = Shape (x) a = Slice (s, zero, two, zero) h = Gather (s, two_s) w = Gather (s, three_s) m = Mul (h, w)
          u = Unsqueeze (m, zero) c = Concat <axis = 0> (a, u) y = Reshape (x, c) }"""
    arrays = {"zero": np.array([0]), "two": np.array([2]), "two_s": np.array(2), "three_s": np.array(3)}
    model = rewrite(build(text, **arrays), FOLD_CONSTANTS)
    assert ops(model) == {"Reshape": 1}


def test_static_dims_of_a_partly_open_shape_are_folded(build, rewrite, ops):
    text = """g (float[2,3,n] x) => (float[3] y)
        { s = Shape (x) d = Gather (s, one) f = Cast <to = 1> (d) y = Mul (f, k) }"""
    model = rewrite(build(text, one=np.array(1), k=np.ones(3, np.float32)), FOLD_CONSTANTS)
    assert "Shape" not in ops(model)


@pytest.mark.parametrize("body", ["t = ConstantOfShape (big)", "k = ConstantOfShape (small) t = Tile (k, times)"])
def test_large_constants_are_not_folded(build, ops, body):
    """Fault "file 100x larger: folding Tile, ConstantOfShape": 4 TB would be refused before it is computed."""
    arrays = {"big": np.array([1000, 1000, 1000, 1000])}
    if "Tile" in body:
        arrays = {"small": np.array([1000, 1000]), "times": np.array([1000, 1000])}
    text = f"g (float[1] x) => (float[n,m] y) {{ {body} y = Add (x, t) }}"
    model = build(text, **arrays)
    before = ops(model)
    FOLD_CONSTANTS.apply(model, PassContext(fold_limit_bytes=1 << 20))
    assert ops(model) == before


def test_small_constants_of_an_open_batch_keep_the_open_axis(build, rewrite, ops):
    text = """g (float[n,2] x) => (float[n,2] y)
        { s = Shape (x) k = ConstantOfShape <value = float[1] {3}> (s) t = Tile (one, times)
          a = Add (k, t) y = Add (x, a) }"""
    arrays = {"one": np.ones((1, 1), np.float32), "times": np.array([1, 2])}
    model = rewrite(build(text, **arrays), FOLD_CONSTANTS)
    assert ops(model) == {"Shape": 1, "ConstantOfShape": 1, "Add": 2}


def test_quantization_of_constants_is_not_folded(build, rewrite, ops):
    text = """g (float[1,2,3,3] x) => (float[1,2,3,3] y) { d = DequantizeLinear <axis = 0> (w, s) y = Conv (x, d) }"""
    arrays = {"w": np.arange(4, dtype=np.int8).reshape(2, 2, 1, 1), "s": np.array([0.1, 0.2], np.float32)}
    assert ops(rewrite(build(text, **arrays), FOLD_CONSTANTS)) == {"DequantizeLinear": 1, "Conv": 1}


def test_identities_dead_nodes_and_repetitions_go(build, rewrite, ops):
    text = """g (float[2,3] x) => (float[2,3] y, float[2,3] z)
        { i = Identity (x) c = Cast <to = 1> (i) d = Dropout (c) a = Relu (d) b = Relu (x) dead = Exp (x)
          s = Add (a, b) y = Identity (s) z = Reshape (s, shape) }"""
    model = build(text, shape=np.array([2, 3]))
    model = rewrite(model, IDENTITIES, DEAD_NODES, COMMON_SUBEXPRESSIONS)
    assert {"Relu": 1, "Add": 1}.items() <= ops(model).items()
    assert not {"Identity", "Cast", "Dropout", "Exp"} & (set(ops(model)) - {"Identity"})


def test_outputs_keep_their_names_when_an_input_is_handed_through(build, rewrite):
    model = rewrite(build("g (float[2] x) => (float[2] y) { y = Identity (x) }"), IDENTITIES)
    assert [v.name for v in model.graph.outputs] == ["y"]


def _wrong(model: ir.Model, context: PassContext) -> int:
    model.graph[0].op_type = "Exp"
    return 1


def test_the_gate_names_the_pass_that_changes_results(build):
    model = build("g (float[4] x) => (float[4] y) { y = Tanh (x) }")
    gate = NumericGate(FloatReference(model.clone()), [{"x": np.linspace(-1, 1, 4, dtype=np.float32)}])
    with pytest.raises(InternalError, match=r"pass wrong changed .* --skip-pass wrong"):
        run_passes(model, [Pass("wrong", "", _wrong)], gate, PassContext())


def test_a_pass_is_left_out_by_name_and_the_log_says_so(build):
    model = build("g (float[4] x) => (float[4] y) { s = Sigmoid (x) y = Mul (x, s) }")
    records = run_passes(model, OPTIMISE, None, PassContext(), skip=["silu"])
    assert [r.name for r in records if r.skipped] == ["silu"]
    assert [n.op_type for n in model.graph] == ["Sigmoid", "Mul"]


@pytest.mark.parametrize("name", ["no-such-pass", "lift-constants"])
def test_what_can_not_be_left_out_is_refused(build, name):
    model = build("g (float[4] x) => (float[4] y) { y = Tanh (x) }")
    with pytest.raises(UsageError, match=name):
        run_passes(model, (*NORMALISE, *OPTIMISE), None, PassContext(), skip=[name])


def test_relative_error_sees_shapes_nans_and_integers():
    ones = np.ones(4, np.float32)
    assert relative_error(ones, np.ones(3, np.float32)) == float("inf")
    assert relative_error(ones, np.array([1, 1, 1, np.nan], np.float32)) == float("inf")
    assert relative_error(np.arange(4), np.array([0, 1, 2, 9])) == 0.25
    assert relative_error(ones * 2, ones * 2.5) == 0.25


def test_the_gate_allows_what_rounding_alone_does(build):
    """exp(60 x): one unit in the last place of x moves the output by far more than one."""
    model = build("g (float[4] x) => (float[4] y) { m = Mul (x, k) y = Exp (m) }", k=np.float32(60))
    gate = NumericGate(FloatReference(model), [{"x": np.linspace(0.5, 1, 4, dtype=np.float32)}])
    assert 1e-4 < gate.limit(1e-6) <= 1e-2
