"""QDQ graphs: fused INT8 operations equal the composition of what they replace, bit for bit.

Scales are powers of two and sums small, so ONNX Runtime's float arithmetic is exact and its results are the reference.
Both ways to store activations are tested, u8 and s8.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from reference.onnx_cases import GraphBuilder, lowered, onnxruntime_outputs, opcodes, run_lowered, run_natively

from edgekit.package.program_codec import read_program

ISAS = ("x86_avx2", "x86_avx_vnni", "arm_neon_dotprod", "arm_neon_i8mm")
pytestmark = pytest.mark.parametrize("isa", ISAS)


def check(g: GraphBuilder, isa: str, *outputs: str, scale: float = 1.0) -> Counter[str]:
    """Bit equality with ONNX Runtime; returns the opcodes."""
    model = g.model(*outputs)
    feeds = g.feeds(scale)
    result = lowered(model, isa)
    assert [part.kind for part in result.parts] == ["native"]
    expected, got = onnxruntime_outputs(model, feeds), run_lowered(result, feeds)
    native = run_natively(result, feeds, isa="" if isa == "x86_avx2" else "scalar")
    for name in outputs:
        np.testing.assert_array_equal(got[name], expected[name], err_msg=name)
        np.testing.assert_array_equal(native[name], expected[name], err_msg=f"{name}, native")
    assert any(np.unique(expected[name]).size > 3 for name in outputs), "the case is degenerate"
    return Counter(opcodes(result))


def image(g: GraphBuilder, *shape: int, zero: int = 3) -> str:
    """A quantized input of scale 1/32."""
    return g.quantize(g.input("x", *shape), 2**-5, zero)


CONVS = {
    "plain": ((7, 5), 3, {"pads": [1, 1, 1, 1]}),
    "strided": ((4, 5), 3, {"strides": [2, 2], "pads": [0, 1, 1, 0]}),
    "dilated": ((4, 5), 3, {"dilations": [2, 2], "pads": [2, 2, 2, 2]}),
    "pointwise": ((33, 5), 1, {}),
    "depthwise": ((5, 1), 3, {"group": 5, "pads": [1, 1, 1, 1]}),
    "multiplier": ((10, 1), 3, {"group": 5, "pads": [1, 1, 1, 1]}),
}


@pytest.mark.parametrize("act", [None, "Relu", "Clip"])
@pytest.mark.parametrize("case", CONVS)
def test_conv(case: str, act: str | None, isa: str) -> None:
    channels, kernel, attributes = CONVS[case]
    g = GraphBuilder()
    y = g.q_conv(image(g, 2, 5, 9, 8), 2**-5, channels, kernel, **attributes)
    if act:
        y = g.op("Relu", y) if act == "Relu" else g.op("Clip", y, np.float32(-0.5), np.float32(3.0))
    ops = check(g, isa, g.quantize(y, 2**-3, -7))
    assert ops == {"convert": 2, "depthwise_q8" if case == "depthwise" else "conv_q8": 1}


def silu(g: GraphBuilder, x: str) -> str:
    return g.op("Mul", x, g.op("Sigmoid", x))


@pytest.mark.parametrize(
    "table", ["silu", "HardSwish", "Silu", "LeakyRelu", "Gelu", "Tanh", "chain", "requantize", "PRelu"]
)
def test_table_goes_into_the_conv(table: str, isa: str) -> None:
    g = GraphBuilder()
    y = g.quantize(g.q_conv(image(g, 1, 6, 7, 7), 2**-5, (9, 6), 1), 2**-3, 5)
    functions = {
        "silu": lambda: silu(g, y),
        "Silu": lambda: g.op("Silu", y, domain="edgekit"),
        "chain": lambda: g.op("Sub", g.op("Mul", g.op("Clip", g.op("Add", y, 3.0), 0.0, 6.0), 0.25), np.float32(0.5)),
        "requantize": lambda: y,
        "PRelu": lambda: g.op("PRelu", y, np.array([0.25], np.float32)),
    }
    z = functions[table]() if table in functions else g.op(table, y)
    assert check(g, isa, g.quantize(z, 2**-4, -11)) == {"convert": 2, "conv_q8": 1}


def test_table_of_its_own(isa: str) -> None:
    g = GraphBuilder()
    x = image(g, 2, 3, 5, 4)
    left, right = g.quantize(silu(g, x), 2**-5, -100), g.quantize(g.op("Tanh", x), 2**-7)
    ops = check(g, isa, left, right, scale=2.0)
    assert ops == {"convert": 3, "lut_q8": 2}


@pytest.mark.parametrize("act", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
def test_residual_block(swapped: bool, act: bool, isa: str) -> None:
    """conv - relu - conv - add [- relu], with the skip from before."""
    g = GraphBuilder()
    skip = g.quantize(g.op("Relu", g.q_conv(image(g, 1, 3, 8, 8), 2**-5, (6, 3), 3, pads=[1] * 4)), 2**-3, -128)
    y = g.quantize(g.op("Relu", g.q_conv(skip, 2**-3, (6, 6), 3, pads=[1] * 4)), 2**0, -128)
    y = g.quantize(g.q_conv(y, 2**0, (6, 6), 3, pads=[1] * 4), 2**3, 4)
    total = g.op("Add", skip, y) if swapped else g.op("Add", y, skip)
    total = g.quantize(g.op("Relu", total) if act else total, 2**4, -128 if act else 9)
    assert check(g, isa, total) == {"convert": 2, "conv_q8": 3}


def test_residual_with_projection(isa: str) -> None:
    """The shortcut's convolution comes last and takes the Add in."""
    g = GraphBuilder()
    x = image(g, 1, 4, 8, 8)
    y = g.quantize(g.q_conv(x, 2**-5, (6, 4), 3, strides=[2, 2], pads=[1] * 4), 2**-2)
    short = g.quantize(g.q_conv(x, 2**-5, (6, 4), 1, strides=[2, 2]), 2**-3)
    assert check(g, isa, g.quantize(g.op("Relu", g.op("Add", short, y)), 2**-2, -128)) == {"convert": 2, "conv_q8": 2}


def test_silu_block_with_residual(isa: str) -> None:
    """YOLO's bottleneck: both convolutions with a table, the second with the Add behind it."""
    g = GraphBuilder()
    x = image(g, 1, 8, 6, 6)
    y = g.quantize(silu(g, g.quantize(g.q_conv(x, 2**-5, (8, 8), 3, pads=[1] * 4), 2**-2, 3)), 2**-3, -100)
    y = g.quantize(silu(g, g.quantize(g.q_conv(y, 2**-3, (8, 8), 3, pads=[1] * 4), 2**-1, 3)), 2**-2, -100)
    assert check(g, isa, g.quantize(g.op("Add", x, y), 2**-2, 5)) == {"convert": 2, "conv_q8": 2}


def test_inverted_residual(isa: str) -> None:
    g = GraphBuilder()
    x = g.quantize(g.q_conv(image(g, 1, 3, 9, 9), 2**-5, (8, 3), 3, strides=[2, 2], pads=[1] * 4), 2**-3, 5)
    y = g.quantize(g.op("Clip", g.q_conv(x, 2**-3, (24, 8), 1), 0.0, 6.0), 2**-5, -128)
    y = g.quantize(g.op("Clip", g.q_conv(y, 2**-5, (24, 1), 3, group=24, pads=[1] * 4), 0.0, 6.0), 2**-5, -128)
    y = g.quantize(g.q_conv(y, 2**-5, (8, 24), 1), 2**-3, 2)
    ops = check(g, isa, g.quantize(g.op("Add", x, y), 2**-2, -6))
    assert ops == {"convert": 2, "conv_q8": 3, "depthwise_q8": 1}


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("shapes", [((1, 4, 6, 5), (1, 4, 6, 5)), ((1, 4, 6, 5), (1, 4, 1, 1)), ((3, 4), (4,))])
def test_binary(kind: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], isa: str) -> None:
    g = GraphBuilder()
    a = g.quantize(g.input("a", *shapes[0]), 2**-5, 3)
    b = g.quantize(g.input("b", *shapes[1]), 2**-6, -20)
    assert check(g, isa, g.quantize(g.op(kind, a, b), 2**-4, 7))["binary_q8"] == 1


def test_squaring_is_a_table(isa: str) -> None:
    g = GraphBuilder()
    x = image(g, 3, 5)
    assert check(g, isa, g.quantize(g.op("Mul", x, x), 2**-4, -90))["lut_q8"] == 1


@pytest.mark.parametrize("same_scale", [True, False])
def test_concat(same_scale: bool, isa: str) -> None:
    """With one scale producers write into place; otherwise the odd one is requantized, or its conv does it."""
    g = GraphBuilder()
    x = image(g, 1, 4, 6, 6)
    a = g.quantize(g.q_conv(x, 2**-5, (5, 4), 1), 2**-3, 2)
    b = g.quantize(g.op("Relu", g.q_conv(x, 2**-5, (7, 4), 3, pads=[1] * 4)), 2**-3 if same_scale else 2**-2, 2)
    y = g.quantize(g.op("Concat", a, b, axis=1), 2**-3, 2)
    y = g.quantize(g.q_conv(y, 2**-3, (3, 12), 1), 2**1)
    ops = check(g, isa, y)
    assert ops == {"convert": 2, "conv_q8": 3} if same_scale else {"convert": 2, "conv_q8": 3, "lut_q8": 1}


def test_csp_stage_copies_nothing(isa: str) -> None:
    """Split, bottlenecks on one half, all intermediate results concatenated: YOLOv8's C2f."""
    g = GraphBuilder()
    scale = 2**-3
    y = g.quantize(g.q_conv(image(g, 1, 4, 6, 6), 2**-5, (8, 4), 1), scale, 2)
    parts = g.op("Split", y, np.array([4, 4], np.int64), outputs=2, axis=1)
    parts = [g.quantize(part, scale, 2) for part in parts]
    for _ in range(2):
        inner = g.quantize(g.q_conv(parts[-1], scale, (4, 4), 3, pads=[1] * 4), 2**0, 1)
        parts.append(g.quantize(g.op("Add", parts[-1], inner), scale, 2))
    y = g.quantize(g.op("Concat", *parts, axis=1), scale, 2)
    ops = check(g, isa, g.quantize(g.q_conv(y, scale, (6, 16), 1), 2**1))
    assert ops == {"convert": 2, "conv_q8": 4}


def test_pyramid_neck(isa: str) -> None:
    """Upsampling and a lateral branch meet in a concatenation; the resize writes its slice."""
    g = GraphBuilder()
    scale = 2**-3
    lateral = g.quantize(g.q_conv(image(g, 1, 4, 8, 8), 2**-5, (6, 4), 3, pads=[1] * 4), scale, 2)
    deep = g.quantize(g.q_conv(lateral, scale, (5, 6), 3, strides=[2, 2], pads=[1] * 4), scale, 2)
    up = g.op("Resize", deep, None, np.array([1, 1, 2, 2], np.float32), mode="nearest",
              coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    y = g.quantize(g.op("Concat", g.quantize(up, scale, 2), lateral, axis=1), scale, 2)
    ops = check(g, isa, g.quantize(g.q_conv(y, scale, (3, 11), 1), 2**2))
    assert ops == {"convert": 2, "conv_q8": 3, "resize_nearest": 1}


def test_detection_head_writes_each_part_once(isa: str) -> None:
    """Boxes and scores of two scales, joined and split again: scores by tables straight to the output, boxes as planes.

    The expectation over a distribution is a product of matrices. Softmax and Sigmoid are not exact.
    """
    g = GraphBuilder()
    x, scales = image(g, 1, 4, 6, 6), []
    for size, strides in ((36, [1, 1]), (9, [2, 2])):
        boxes = g.quantize(g.q_conv(x, 2**-5, (12, 4), 1, strides=strides), 2**-3, size)
        scores = g.quantize(g.q_conv(x, 2**-5, (5, 4), 1, strides=strides), 2**-4, 2)
        scales.append(g.op("Reshape", g.op("Concat", boxes, scores, axis=1), [1, 17, size]))
    parts = g.op("Split", g.op("Concat", *scales, axis=2), np.array([12, 5], np.int64), outputs=2, axis=1)
    bins = g.op("Transpose", g.op("Reshape", parts[0], [1, 3, 4, 45]), perm=[0, 2, 1, 3])
    weight = np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)
    sums = g.op("Conv", g.op("Softmax", bins, axis=1), g.constant(weight))
    y = g.op("Concat", g.op("Reshape", sums, [1, 3, 45]), g.op("Sigmoid", parts[1]), axis=1)
    model, feeds = g.model(y), g.feeds(1.0)
    result, expected = lowered(model, isa), onnxruntime_outputs(model, feeds)[y]
    np.testing.assert_allclose(run_lowered(result, feeds)[y], expected, rtol=1e-5, atol=1e-6)
    native = run_natively(result, feeds, isa="" if isa == "x86_avx2" else "scalar")
    np.testing.assert_allclose(native[y], expected, rtol=1e-5, atol=1e-6)
    assert Counter(opcodes(result)) == {"convert": 5, "conv_q8": 4, "softmax": 1, "matmul_f32": 1}
    tables = [op for op in read_program(result.parts[0].data).plans[0].ops if op.opcode == "convert"][1:]
    assert sorted(len(op.inputs) for op in tables) == [1, 1, 2, 2]


@pytest.mark.parametrize("op", ["Sigmoid", "Tanh", "HardSwish", "Add"])
def test_function_of_integers_with_a_float_result_is_a_table(op: str, isa: str) -> None:
    g = GraphBuilder()
    x = image(g, 2, 3, 7, 5)
    y = g.op(op, x, np.float32(0.3)) if op == "Add" else g.op(op, x)
    model, feeds = g.model(y), g.feeds(4.0)
    result = lowered(model, isa)
    for got in (run_lowered(result, feeds), run_natively(result, feeds, isa="" if isa == "x86_avx2" else "scalar")):
        np.testing.assert_allclose(got[y], onnxruntime_outputs(model, feeds)[y], rtol=1e-6, atol=1e-7)
    assert opcodes(result) == ["convert", "convert"]


def test_table_between_integers_stays_behind_its_concatenation(isa: str) -> None:
    g = GraphBuilder()
    x = image(g, 1, 4, 6, 6)
    parts = [g.quantize(g.q_conv(x, 2**-5, (channels, 4), 1), 2**-3, 2) for channels in (3, 5)]
    y = g.quantize(g.op("Abs", g.op("Concat", *parts, axis=1)), 2**-2, 0)
    assert check(g, isa, y) == {"convert": 2, "conv_q8": 2, "lut_q8": 1}


TRANSPOSED = {
    "stride-2": ((6, 4, 2, 2), {"strides": [2, 2]}),
    "stride-2-group-2": ((6, 4, 3, 3), {"strides": [2, 2], "group": 2, "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "depthwise": ((6, 1, 4, 4), {"strides": [2, 2], "group": 6, "pads": [1, 1, 1, 1]}),
    "dilated": ((6, 4, 3, 3), {"strides": [3, 2], "dilations": [2, 1]}),
}


@pytest.mark.parametrize("case", TRANSPOSED)
def test_conv_transpose(case: str, isa: str) -> None:
    shape, attributes = TRANSPOSED[case]
    g = GraphBuilder()
    x = image(g, 1, 6, 5, 7)
    w, scales = g.int8_weights(*shape, axis=1)
    bias = g.int32_bias(np.tile(scales, attributes.get("group", 1)) * np.float32(2**-5))
    y = g.op("Relu", g.op("ConvTranspose", x, w, bias, **attributes))
    ops = check(g, isa, g.quantize(y, 2**-4, -100))
    assert set(ops) <= {"convert", "conv_q8", "depthwise_q8"}


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm(transposed: int, isa: str) -> None:
    g = GraphBuilder()
    x = image(g, 3, 17)
    w, scales = g.int8_weights(*((9, 17) if transposed else (17, 9)), axis=0 if transposed else 1)
    y = g.op("Gemm", x, w, g.int32_bias(scales * np.float32(2**-5)), transB=transposed)
    assert check(g, isa, g.quantize(y, 2**-3, 2)) == {"convert": 2, "conv_q8": 1}


def test_matmul_with_bias_and_table(isa: str) -> None:
    g = GraphBuilder()
    x = image(g, 2, 5, 12)
    w, scales = g.int8_weights(12, 20, axis=1)
    y = g.op("Add", g.op("MatMul", x, w), g.int32_bias(scales * np.float32(2**-5)))
    y = g.quantize(g.op("Gelu", g.quantize(y, 2**-3, 2)), 2**-4, -100)
    assert check(g, isa, y) == {"convert": 2, "conv_q8": 1}


POOLS = {
    "max": ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, "pool"),
    "average": ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}, "pool"),
    "global": ("GlobalAveragePool", {}, "reduce"),
}


@pytest.mark.parametrize("case", POOLS)
def test_pool(case: str, isa: str) -> None:
    op, attributes, opcode = POOLS[case]
    g = GraphBuilder()
    scale = 2**-5 if case == "max" else 2**-7
    y = g.quantize(g.op(op, image(g, 2, 5, 8, 8), **attributes), scale, 3)
    assert check(g, isa, y) == {"convert": 2, opcode: 1}


def test_linear_resize_requantizes(isa: str) -> None:
    g = GraphBuilder()
    x = image(g, 1, 3, 4, 5)
    y = g.op("Resize", x, None, np.array([1, 1, 2, 2], np.float32), mode="linear")
    assert check(g, isa, g.quantize(y, 2**-6, 1)) == {"convert": 2, "resize_linear": 1}


def test_moving_operators_inherit_the_quantization(isa: str) -> None:
    g = GraphBuilder()
    y = g.op("Transpose", image(g, 1, 6, 4, 5), perm=[0, 2, 3, 1])
    y = g.quantize(g.op("Slice", y, [1], [4], [1]), 2**-5, 3)
    y = g.quantize(g.op("Reshape", y, np.array([1, 3, 5, 3, 2], np.int64)), 2**-5, 3)
    y = g.quantize(g.op("ReduceMax", y, np.array([3], np.int64), keepdims=0), 2**-5, 3)
    ops = check(g, isa, y)
    assert ops["convert"] == 2
    assert "binary" not in ops


def test_pad_by_zero_stays_quantized(isa: str) -> None:
    g = GraphBuilder()
    y = g.quantize(g.op("Pad", image(g, 1, 2, 4, 5), np.array([0, 0, 1, 1, 0, 0, 2, 0], np.int64)), 2**-5, 3)
    ops = check(g, isa, y)
    assert set(ops) == {"convert", "fill", "copy"}


def test_graph_input_and_output_in_int8(isa: str) -> None:
    """Integers at the edges keep the dtype of the model, whatever the target stores."""
    g = GraphBuilder()
    x = g.dequantize(g.input("x", 1, 5, 6, 6, dtype=np.int8), 2**-5, 3)
    y = g.op("QuantizeLinear", g.q_conv(x, 2**-5, (4, 5), 1), np.float32(2**-5), np.int8(3))
    assert check(g, isa, y)["conv_q8"] == 1


def test_unquantized_result_runs_in_float(isa: str) -> None:
    g = GraphBuilder()
    y = g.q_conv(image(g, 1, 5, 6, 6), 2**-5, (4, 5), 3)
    model = g.model(y)
    result = lowered(model, isa)
    assert opcodes(result) == ["convert", "convert", "conv_f32", "copy"] or "conv_f32" in opcodes(result)
    row = next(layer for layer in result.layers if layer.op == "conv_f32")
    assert row.actual == "fp32"
    feeds = g.feeds()
    np.testing.assert_array_equal(run_lowered(result, feeds)[y], onnxruntime_outputs(model, feeds)[y])


@pytest.mark.parametrize("fault", ["bias", "asymmetric"])
def test_bias_beyond_int32_and_asymmetric_weights_run_in_float(fault: str, isa: str) -> None:
    g = GraphBuilder()
    values = g.rng.integers(-127, 128, (4, 5, 1, 1)).astype(np.int8)
    zeros = np.full(4, 0 if fault == "bias" else 9, np.int8)
    scale = np.full(4, 2**-30 if fault == "bias" else 2**-6, np.float32)
    w = g.op("DequantizeLinear", g.constant(values), scale, zeros, axis=0)
    y = g.op("Conv", image(g, 1, 5, 6, 6), w, np.full(4, 5.0, np.float32))
    y = g.quantize(g.op("Mul", y, g.input("factor", 1, 4, 6, 6)), 2**-3)
    model, feeds = g.model(y), g.feeds()
    result = lowered(model, isa)
    assert "conv_f32" in opcodes(result)
    np.testing.assert_array_equal(run_lowered(result, feeds)[y], onnxruntime_outputs(model, feeds)[y])
