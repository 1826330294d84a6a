"""Whole models: shape buckets, steps in ONNX Runtime, the audit, zero-copy concatenation, edges."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from reference.onnx_cases import GraphBuilder, lowered, onnxruntime_outputs, opcodes, run_lowered, run_natively

from edgekit.converters.contracts import BucketModel, LayerPlan
from edgekit.converters.lowering import LowerOptions, lower
from edgekit.errors import UnsupportedError
from edgekit.package.program_codec import read_program


def conv_net(width: int, middle: str | None = None) -> tuple[GraphBuilder, onnx.ModelProto]:
    """conv - [operator of choice] - conv, of any width, always with the same weights."""
    g = GraphBuilder(seed=5)
    y = g.op("Relu", g.op("Conv", g.input("x", 1, 3, 8, width), g.weights(6, 3, 3, 3), pads=[1] * 4))
    if middle == "CumSum":
        y = g.op("CumSum", y, np.array(1, np.int64))
    y = g.op("Conv", y, g.weights(4, 6, 1, 1))
    return g, g.model(y)


def test_buckets_share_constants_and_agree_with_onnxruntime() -> None:
    cases = [conv_net(width) for width in (8, 16, 24)]
    buckets = [BucketModel({"w": 8 * (i + 1)}, ir.from_proto(model)) for i, (_, model) in enumerate(cases)]
    result = lower(buckets, "x86_avx2")
    program = read_program(result.parts[0].data)
    assert len(program.plans) == 3
    assert len(program.constants) == len(read_program(lower(buckets[:1], "x86_avx2").parts[0].data).constants)
    assert result.figures["arena_bytes"] == max(plan.arena_bytes for plan in program.plans)
    for index, (g, model) in enumerate(cases):
        feeds = g.feeds()
        (expected,) = onnxruntime_outputs(model, feeds).values()
        got = run_natively(result, feeds, index)
        np.testing.assert_allclose(got[model.graph.output[0].name], expected, rtol=1e-4, atol=1e-5)


def test_operators_without_kernel_go_to_onnxruntime_and_are_named() -> None:
    g, model = conv_net(8, "CumSum")
    result = lowered(model)
    assert [part.kind for part in result.parts] == ["native", "onnxruntime", "native"]
    assert [part.file_name for part in result.parts] == ["program.ekn", "part1.onnx", "program1.ekn"]
    foreign = [layer for layer in result.layers if layer.engine == "onnxruntime"]
    assert [layer.op for layer in foreign] == ["CumSum"]
    assert foreign[0].reason == "no native kernel for CumSum"
    feeds = g.feeds()
    name = model.graph.output[0].name
    expected = onnxruntime_outputs(model, feeds)[name]
    np.testing.assert_allclose(run_natively(result, feeds)[name], expected, rtol=1e-4, atol=1e-5)


def test_steps_of_onnxruntime_work_for_several_buckets() -> None:
    cases = [conv_net(width, "CumSum") for width in (8, 16)]
    result = lower([BucketModel({}, ir.from_proto(model)) for _, model in cases], "x86_avx2")
    for index, (g, model) in enumerate(cases):
        feeds, name = g.feeds(), model.graph.output[0].name
        expected = onnxruntime_outputs(model, feeds)[name]
        np.testing.assert_allclose(run_lowered(result, feeds, index)[name], expected, rtol=1e-4, atol=1e-5)


def test_onnxruntime_can_be_forbidden() -> None:
    _, model = conv_net(8, "CumSum")
    with pytest.raises(UnsupportedError, match="CumSum"):
        lowered(model, options=LowerOptions(allow_onnxruntime=False))


def test_a_quantized_value_crosses_to_onnxruntime_as_float() -> None:
    g = GraphBuilder()
    x = g.quantize(g.q_conv(g.quantize(g.input("x", 1, 4, 6, 6), 2**-5), 2**-5, (5, 4), 1), 2**-3)
    y = g.quantize(g.op("CumSum", x, np.array(2, np.int64)), 2**-1)
    model = g.model(g.quantize(g.q_conv(y, 2**-1, (3, 5), 1), 2**2))
    result, feeds = lowered(model), g.feeds()
    assert [part.kind for part in result.parts] == ["native", "onnxruntime", "native"]
    for name, expected in onnxruntime_outputs(model, feeds).items():
        np.testing.assert_array_equal(run_natively(result, feeds)[name], expected)


def test_dtypes_that_programs_lack_stay_in_onnxruntime() -> None:
    g = GraphBuilder()
    y = g.op("Mul", g.op("Cast", g.op("Relu", g.input("x", 3, 4)), to=11), np.array([2.0]))
    model = g.model(g.op("Exp", g.op("Cast", y, to=1)))
    result, feeds = lowered(model), g.feeds()
    assert {part.kind for part in result.parts} == {"native", "onnxruntime"}
    for name, expected in onnxruntime_outputs(model, feeds).items():
        np.testing.assert_allclose(run_natively(result, feeds)[name], expected, rtol=1e-5)


def test_if_runs_in_onnxruntime_with_what_it_captures() -> None:
    g = GraphBuilder()
    x = g.op("Relu", g.input("x", 3, 4))
    out = onnx.helper.make_tensor_value_info("b", 1, [3, 4])
    bodies = [onnx.helper.make_graph([onnx.helper.make_node(op, [x], ["b"])], op, [], [out]) for op in ("Exp", "Neg")]
    cond = g.op("Greater", g.op("ReduceMax", x, keepdims=0), np.float32(0.5))
    y = g.declare(g.op("If", cond, then_branch=bodies[0], else_branch=bodies[1]), 3, 4)
    model = g.model(g.op("Sigmoid", y))
    result, feeds = lowered(model), g.feeds()
    assert [layer.op for layer in result.layers if layer.engine == "onnxruntime"] == ["If"]
    for name, expected in onnxruntime_outputs(model, feeds).items():
        np.testing.assert_allclose(run_natively(result, feeds)[name], expected, rtol=1e-5, atol=1e-6)


def test_audit_states_planned_and_actual_precision() -> None:
    g = GraphBuilder()
    x = g.quantize(g.input("x", 1, 4, 6, 6), 2**-5)
    y = g.quantize(g.op("Relu", g.q_conv(x, 2**-5, (5, 4), 1)), 2**-3, -128)
    y = g.q_conv(y, 2**-3, (3, 5), 1)  # its result is not quantized
    model = g.model(y)
    plan = tuple(LayerPlan(node.name, node.op_type, "int8") for node in model.graph.node if node.op_type == "Conv")
    result = lowered(model, options=LowerOptions(plan=plan))
    rows = [layer for layer in result.layers if layer.macs]
    assert [(row.op, row.planned, row.actual) for row in rows] == [
        ("conv_q8", "int8", "int8"),
        ("conv_f32", "int8", "fp32"),
    ]
    assert "+" in rows[0].name
    assert rows[0].macs == 5 * 4 * 36
    assert rows[1].reason == "the result is not quantized"


def test_slices_that_tile_a_value_find_their_place_in_a_concatenation() -> None:
    g = GraphBuilder()
    y = g.op("Conv", g.input("x", 1, 4, 6, 6), g.weights(8, 4, 1, 1))
    first, second = (g.op("Slice", y, [start], [end], [1]) for start, end in ((0, 4), (4, 8)))
    third = g.op("Conv", second, g.weights(4, 4, 3, 3), pads=[1] * 4)
    model = g.model(g.op("Conv", g.op("Concat", first, second, third, axis=1), g.weights(3, 12, 1, 1)))
    assert opcodes(lowered(model)) == ["copy", "conv_f32", "conv_f32", "conv_f32", "copy"]


CONCATS = {
    "twice-the-same": lambda g, x: g.op("Concat", x, x, axis=1),
    "nested": lambda g, x: g.op("Concat", g.op("Concat", g.op("Relu", x), x, axis=1), g.op("Neg", x), axis=1),
    "input-and-constant": lambda g, x: g.op("Concat", x, g.weights(1, 2, 4, 5), axis=1),
    "through-reshape": lambda g, x: g.op(
        "Concat", g.op("Reshape", g.op("Relu", x), [1, 3, 20]), g.op("Reshape", g.op("Exp", x), [1, 3, 20]), axis=2
    ),
    "through-transpose": lambda g, x: g.op(
        "Concat", g.op("Transpose", g.op("Relu", x), perm=[0, 3, 1, 2]), g.op("Transpose", x, perm=[0, 3, 1, 2]), axis=2
    ),
    "into-two": lambda g, x: g.op(
        "Add", g.op("Concat", g.op("Abs", x), x, axis=1), g.op("Concat", x, g.op("Abs", x), axis=1)
    ),
}


@pytest.mark.parametrize("case", CONCATS)
def test_concat_of_any_shape(case: str) -> None:
    g = GraphBuilder()
    model = g.model(CONCATS[case](g, g.input("x", 1, 3, 4, 5)))
    result, feeds = lowered(model), g.feeds()
    for name, expected in onnxruntime_outputs(model, feeds).items():
        np.testing.assert_allclose(run_lowered(result, feeds)[name], expected, rtol=1e-5)
        np.testing.assert_allclose(run_natively(result, feeds)[name], expected, rtol=1e-5)


def test_outputs_that_are_inputs_constants_or_given_twice() -> None:
    g = GraphBuilder()
    x = g.input("x", 2, 3)
    y = g.op("Relu", x)
    names = [
        y,
        g.op("Identity", y),
        g.op("Identity", x),
        g.op("Identity", g.constant(np.arange(4.0, dtype=np.float32))),
    ]
    model, feeds = g.model(*names), g.feeds()
    result = lowered(model)
    for name, expected in onnxruntime_outputs(model, feeds).items():
        np.testing.assert_array_equal(run_natively(result, feeds)[name], expected)


def test_an_output_that_is_read_again_stays_whole() -> None:
    g = GraphBuilder()
    y = g.op("Relu", g.op("Conv", g.input("x", 1, 3, 6, 6), g.weights(4, 3, 3, 3)))
    z = g.op("Exp", y)
    model = g.model(y, z, g.op("Add", y, z))
    result, feeds = lowered(model), g.feeds()
    for name, expected in onnxruntime_outputs(model, feeds).items():
        np.testing.assert_allclose(run_natively(result, feeds)[name], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("isa", ["scalar", "x86_avx2", "x86_avx512_vnni", "arm_neon", "arm_neon_dotprod"])
def test_every_isa_gives_the_same_integers(isa: str) -> None:
    """Packing and the storage dtype differ; results don't. The scalar kernels run all of them here."""
    g = GraphBuilder()
    x = g.quantize(g.input("x", 1, 5, 9, 9), 2**-5, 3)
    y = g.quantize(g.op("Relu", g.q_conv(x, 2**-5, (70, 5), 3, pads=[1] * 4)), 2**-2, -128)
    y = g.quantize(g.q_conv(y, 2**-2, (70, 1), 3, group=70, strides=[2, 2], pads=[1] * 4), 2**1, 7)
    model = g.model(g.quantize(g.q_conv(y, 2**1, (11, 70), 1), 2**4))
    result, feeds = lowered(model, isa), g.feeds()
    assert read_program(result.parts[0].data).isa == isa
    for name, expected in onnxruntime_outputs(model, feeds).items():
        np.testing.assert_array_equal(run_natively(result, feeds, isa="scalar")[name], expected)
