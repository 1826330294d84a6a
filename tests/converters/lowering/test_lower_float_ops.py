"""Float graphs of one or a few operators: the program gives what ONNX Runtime gives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from reference.onnx_cases import (
    GraphBuilder,
    assert_close,
    lowered,
    onnxruntime_outputs,
    opcodes,
    run_lowered,
    run_natively,
)

ISAS = ("x86_avx2", "arm_neon")
NATIVE = {"x86_avx2": "", "arm_neon": "scalar"}  # the scalar kernels run every program


def check(g: GraphBuilder, *outputs: str, scale: float = 1.0, isa: str = "x86_avx2", rtol: float = 2e-5) -> list[str]:
    model = g.model(*outputs)
    feeds = g.feeds(scale)
    result = lowered(model, isa)
    assert [part.kind for part in result.parts] == ["native"]
    expected = onnxruntime_outputs(model, feeds)
    assert_close(expected, run_lowered(result, feeds), outputs, rtol)
    assert_close(expected, run_natively(result, feeds, isa=NATIVE[isa]), outputs, max(rtol, 1e-4))
    return opcodes(result)


CONVS = {
    "plain": ((2, 5, 9, 11), (7, 5, 3, 3), {"pads": [1, 1, 1, 1]}),
    "no-pads": ((1, 4, 9, 8), (3, 4, 2, 3), {}),
    "stride-asymmetric-pads": ((1, 6, 10, 13), (4, 6, 3, 5), {"strides": [2, 3], "pads": [0, 2, 1, 1]}),
    "dilated": ((1, 3, 15, 14), (5, 3, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    "groups": ((1, 12, 7, 7), (18, 4, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
    "depthwise": ((2, 19, 8, 9), (19, 1, 3, 3), {"group": 19, "pads": [1, 1, 1, 1]}),
    "depthwise-multiplier": ((1, 6, 8, 9), (12, 1, 3, 3), {"group": 6}),
    "same-upper": ((1, 3, 8, 9), (4, 3, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "same-lower": ((1, 3, 8, 9), (4, 3, 3, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    "valid": ((1, 3, 8, 9), (4, 3, 3, 2), {"auto_pad": "VALID"}),
    "one-dimension": ((2, 6, 20), (5, 6, 5), {"strides": [2], "pads": [2, 1]}),
    "one-dimension-depthwise": ((1, 8, 16), (8, 1, 3), {"group": 8, "pads": [1, 1]}),
    "pointwise": ((1, 33, 5, 6), (17, 33, 1, 1), {}),
    "one-channel": ((1, 1, 9, 9), (1, 1, 3, 3), {}),
}


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", CONVS)
def test_conv(case: str, isa: str) -> None:
    x, w, attributes = CONVS[case]
    g = GraphBuilder()
    y = g.op("Conv", g.input("x", *x), g.weights(*w), g.weights(w[0]), **attributes)
    assert set(check(g, y, isa=isa)) <= {"conv_f32", "depthwise_f32", "copy"}


TRANSPOSED = {
    "stride-2": ((1, 4, 5, 6), (4, 3, 2, 2), {"strides": [2, 2]}),
    "kernel-3-pads": ((2, 4, 5, 6), (4, 3, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "kernel-4": ((1, 5, 6, 4), (5, 2, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "groups": ((1, 8, 5, 4), (8, 3, 3, 3), {"group": 2, "strides": [2, 1]}),
    "depthwise": ((1, 6, 5, 4), (6, 1, 4, 4), {"group": 6, "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "dilated": ((1, 3, 6, 5), (3, 4, 3, 3), {"dilations": [2, 3], "strides": [1, 1]}),
    "dilated-strided": ((1, 3, 6, 5), (3, 4, 3, 3), {"dilations": [2, 3], "strides": [3, 2], "pads": [1, 0, 2, 1]}),
    "kernel-less-than-stride": ((1, 3, 4, 5), (3, 2, 1, 2), {"strides": [2, 3], "output_padding": [1, 1]}),
    "output-shape": ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": [3, 2], "output_shape": [10, 8]}),
    "same-upper": ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "same-lower": ((1, 3, 4, 5), (3, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "one-dimension": ((1, 3, 7), (3, 4, 4), {"strides": [2], "pads": [1, 1]}),
}


@pytest.mark.parametrize("case", TRANSPOSED)
def test_conv_transpose(case: str) -> None:
    x, w, attributes = TRANSPOSED[case]
    g = GraphBuilder()
    out = w[1] * attributes.get("group", 1)
    y = g.op("ConvTranspose", g.input("x", *x), g.weights(*w), g.weights(out), **attributes)
    check(g, g.op("Relu", y))


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Relu", {}), ("LeakyRelu", {"alpha": 0.1}), ("Sigmoid", {}),
        ("HardSigmoid", {}), ("HardSwish", {}), ("Tanh", {}),
        ("Exp", {}), ("Erf", {}), ("Abs", {}), ("Neg", {}), ("Floor", {}), ("Ceil", {}), ("Round", {}), ("Sin", {}),
        ("Cos", {}), ("Elu", {"alpha": 0.7}), ("Selu", {}), ("Softplus", {}), ("Softsign", {}), ("Mish", {}),
        ("Sign", {}), ("Celu", {"alpha": 0.8}), ("ThresholdedRelu", {"alpha": 0.4}), ("Gelu", {}),
        ("Gelu", {"approximate": "tanh"}), ("Atan", {}), ("Sinh", {}), ("Cosh", {}), ("Tan", {}),
    ],
)  # fmt: skip
def test_unary(op: str, attributes: dict[str, object]) -> None:
    g = GraphBuilder()
    assert check(g, g.op(op, g.input("x", 3, 4, 5), **attributes)) == ["unary"]


@pytest.mark.parametrize("op", ["Log", "Sqrt", "Reciprocal"])
def test_unary_of_positive_numbers(op: str) -> None:
    g = GraphBuilder()
    check(g, g.op(op, g.op("Exp", g.input("x", 3, 4, 5))))


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "PRelu"])
@pytest.mark.parametrize(
    "shapes", [((2, 3, 4, 5), (2, 3, 4, 5)), ((2, 3, 4, 5), (3, 1, 1)), ((4, 1, 5), (1,)), ((2, 3), ())]
)
def test_binary(op: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    g = GraphBuilder()
    left, right = g.input("a", *shapes[0]), g.input("b", *shapes[1])
    if op == "Pow":
        left = g.op("Exp", left)
    check(g, g.op(op, left, right), rtol=1e-4)


@pytest.mark.parametrize("op", ["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_comparison_and_where(op: str, dtype: type) -> None:
    g = GraphBuilder()
    a, b = g.input("a", 3, 4, dtype=dtype), g.input("b", 4, dtype=dtype)
    cond = g.op(op, a, b)
    check(g, cond, g.op("Where", g.op("Not", cond), a, b))


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_logic(op: str) -> None:
    g = GraphBuilder()
    check(g, g.op(op, g.input("a", 3, 4, dtype=bool), g.input("b", 4, dtype=bool)))


@pytest.mark.parametrize("to", [1, 6, 7, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, bool, np.uint8])
def test_cast(to: int, dtype: type) -> None:
    g = GraphBuilder()
    check(g, g.op("Cast", g.input("x", 5, 7, dtype=dtype), to=to), scale=3.0)


def test_clip_of_integers_is_exact() -> None:
    g = GraphBuilder()
    x = g.input("x", 50, dtype=np.int64)
    big = g.op("Mul", x, np.array([2**40 + 1], np.int64))
    check(g, g.op("Clip", big, np.int64(-(2**40) - 1), np.int64(2**41 + 2)))


POOLS = {
    "max": ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "max-dilated": ("MaxPool", {"kernel_shape": [2, 3], "dilations": [2, 2]}),
    "max-ceil": ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}),
    "average": ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "average-include": ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 0, 1, 2], "count_include_pad": 1}),
    "average-ceil": ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "average-same": ("AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "global-average": ("GlobalAveragePool", {}),
    "global-max": ("GlobalMaxPool", {}),
}


@pytest.mark.parametrize("case", POOLS)
def test_pool(case: str) -> None:
    op, attributes = POOLS[case]
    g = GraphBuilder()
    check(g, g.op(op, g.input("x", 2, 5, 10, 9), **attributes))


RESIZES = {
    f"{mode}-{coordinates}-{nearest}": {
        "mode": mode,
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": nearest,
    }
    for mode in ("nearest", "linear")
    for coordinates in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
    for nearest in (("round_prefer_floor", "floor", "ceil", "round_prefer_ceil") if mode == "nearest" else ("floor",))
}


@pytest.mark.parametrize("scales", [[1, 1, 2, 2], [1, 1, 1.5, 0.7]])
@pytest.mark.parametrize("case", RESIZES)
def test_resize(case: str, scales: list[float]) -> None:
    g = GraphBuilder()
    check(g, g.op("Resize", g.input("x", 1, 3, 6, 7), None, np.array(scales, np.float32), **RESIZES[case]), rtol=1e-4)


def test_resize_by_sizes_keeping_proportions() -> None:
    g = GraphBuilder()
    x = g.input("x", 1, 2, 6, 8)
    sizes = np.array([9, 9], np.int64)
    attributes = {"mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}
    check(g, g.op("Resize", x, None, None, sizes, **attributes), rtol=1e-4)


VIEWS: dict[str, Callable[[GraphBuilder, str], str]] = {
    "transpose": lambda g, x: g.op("Transpose", x, perm=[0, 2, 3, 1]),
    "reshape": lambda g, x: g.op("Reshape", x, np.array([2, 12, 5], np.int64)),
    "reshape-of-transpose": lambda g, x: g.op(
        "Reshape", g.op("Transpose", x, perm=[3, 1, 0, 2]), np.array([-1, 8], np.int64)
    ),
    "flatten": lambda g, x: g.op("Flatten", x, axis=2),
    "squeeze-unsqueeze": lambda g, x: g.op(
        "Squeeze", g.op("Unsqueeze", x, np.array([0, 3], np.int64)), np.array([0], np.int64)
    ),
    "slice": lambda g, x: g.op(
        "Slice",
        x,
        np.array([1, -1], np.int64),
        np.array([3, -100], np.int64),
        np.array([1, 3], np.int64),
        np.array([1, -2]),
    ),
    "expand": lambda g, x: g.op("Expand", g.op("Slice", x, [0], [1], [2]), np.array([2, 3, 7, 5], np.int64)),
    "tile": lambda g, x: g.op("Tile", x, np.array([1, 2, 1, 3], np.int64)),
    "depth-to-space": lambda g, x: g.op("DepthToSpace", g.op("Tile", x, [1, 4, 1, 1]), blocksize=2),
    "depth-to-space-crd": lambda g, x: g.op("DepthToSpace", g.op("Tile", x, [1, 4, 1, 1]), blocksize=2, mode="CRD"),
    "space-to-depth": lambda g, x: g.op("SpaceToDepth", g.op("Slice", x, [0], [4], [3]), blocksize=2),
    "pad": lambda g, x: g.op("Pad", x, np.array([0, 1, 2, 0, 1, 0, 0, -1], np.int64), np.float32(1.5)),
    "pad-axes": lambda g, x: g.op("Pad", x, np.array([1, 2], np.int64), None, np.array([-1], np.int64)),
    "pad-reflect": lambda g, x: g.op("Pad", x, np.array([0, 0, 2, 1, 0, 0, 1, 3], np.int64), mode="reflect"),
    "pad-edge": lambda g, x: g.op("Pad", x, np.array([0, 2, 0, 1, 0, 0, 1, 3], np.int64), mode="edge"),
    "pad-wrap": lambda g, x: g.op("Pad", x, np.array([0, 2, 0, 1, 0, 0, 1, 3], np.int64), mode="wrap"),
    "gather": lambda g, x: g.op("Gather", x, np.array([[2, 0], [-1, 1]], np.int64), axis=1),
    "gather-scalar": lambda g, x: g.op("Gather", x, np.array(-2, np.int64), axis=2),
    "gather-slice": lambda g, x: g.op("Gather", x, np.array([3, 1], np.int64), axis=3),
    "identity": lambda g, x: g.op("Identity", x),
}


@pytest.mark.parametrize("case", VIEWS)
def test_view(case: str) -> None:
    g = GraphBuilder()
    x = g.input("x", 2, 3, 4, 5)
    check(g, VIEWS[case](g, x), VIEWS[case](g, g.op("Relu", x)))


def test_gather_by_computed_indices() -> None:
    g = GraphBuilder()
    x, i = g.input("x", 7, 3), g.input("i", 4, 2, dtype=np.int64)
    check(g, g.op("Gather", x, i), g.op("Gather", g.op("Transpose", x, perm=[1, 0]), g.op("Abs", i), axis=1))


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize(
    "kind", ["Mean", "Max", "Min", "Sum", "Prod", "L1", "L2", "SumSquare", "LogSumExp"]
)  # fmt: skip
def test_reduce(kind: str, keepdims: int) -> None:
    g = GraphBuilder()
    x = g.input("x", 3, 4, 5, 6)
    some = g.op(f"Reduce{kind}", x, np.array([-1, 1], np.int64), keepdims=keepdims)
    every = g.op(f"Reduce{kind}", g.op("Slice", x, [0], [2], [3]), keepdims=keepdims)
    check(g, some, every, rtol=1e-4)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis: int) -> None:
    g = GraphBuilder()
    x = g.input("x", 3, 4, 5)
    check(g, g.op("Softmax", x, axis=axis), g.op("LogSoftmax", x, axis=axis))


@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_norm(axis: int) -> None:
    g = GraphBuilder()
    x = g.input("x", 3, 4, 5)
    shape = (5,) if axis == -1 else (4, 5)
    check(g, g.op("LayerNormalization", x, g.weights(*shape), g.weights(*shape), axis=axis), rtol=1e-4)


def test_other_norms() -> None:
    g = GraphBuilder()
    x = g.input("x", 2, 6, 5, 4)
    parameters = g.weights(6), g.weights(6)
    instance = g.op("InstanceNormalization", x, *parameters)
    group = g.declare(g.op("GroupNormalization", x, *parameters, num_groups=3), 2, 6, 5, 4)
    statistics = g.weights(6), np.abs(g.weights(6)) + np.float32(0.1)
    batch = g.op("BatchNormalization", x, *parameters, *statistics)
    check(g, instance, group, batch, g.op("LpNormalization", x, axis=1), rtol=1e-4)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
def test_arg_reduce(op: str, last: int) -> None:
    g = GraphBuilder()
    x = g.op("Round", g.input("x", 3, 9, 4))
    check(g, g.op(op, x, axis=1, keepdims=0, select_last_index=last), g.op(op, x, axis=-1))


@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(largest: int) -> None:
    g = GraphBuilder()
    values, indices = g.op("TopK", g.input("x", 3, 9, 4), np.array([3], np.int64), axis=1, largest=largest, outputs=2)
    check(g, values, indices)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstm(direction: str) -> None:
    g = GraphBuilder()
    d, hidden = (2 if direction == "bidirectional" else 1), 5
    x = g.input("x", 7, 2, 3)
    weights = g.weights(d, 4 * hidden, 3), g.weights(d, 4 * hidden, hidden), g.weights(d, 8 * hidden)
    states = g.weights(d, 2, hidden), g.weights(d, 2, hidden)
    y = g.op("LSTM", x, *weights, None, *states, hidden_size=hidden, direction=direction, outputs=3)
    check(g, *y, rtol=1e-4)


GEMMS = {
    "plain": ((4, 6), (6, 5), (5,), {}),
    "transposed": ((4, 6), (5, 6), (1, 5), {"transB": 1, "alpha": 0.5}),
    "transposed-a": ((6, 4), (6, 5), (5,), {"transA": 1}),
    "beta": ((4, 6), (6, 5), (4, 5), {"beta": 0.5, "alpha": 2.0}),
    "column": ((4, 6), (6, 5), (4, 1), {}),
    "no-bias": ((4, 6), (6, 5), None, {}),
    "scalar": ((4, 6), (6, 5), (), {}),
}


@pytest.mark.parametrize("case", GEMMS)
def test_gemm(case: str) -> None:
    a, b, c, attributes = GEMMS[case]
    g = GraphBuilder()
    operands = [g.input("x", *a), g.weights(*b)] + ([] if c is None else [g.weights(*c)])
    check(g, g.op("Gemm", *operands, **attributes))


@pytest.mark.parametrize(
    "shapes",
    [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 6)), ((4,), (4, 5)), ((2, 3, 4), (4,)), ((4,), (4,))],
)
@pytest.mark.parametrize("constant", [False, True])
def test_matmul(shapes: tuple[tuple[int, ...], tuple[int, ...]], constant: bool) -> None:
    g = GraphBuilder()
    right = g.weights(*shapes[1]) if constant else g.input("b", *shapes[1])
    check(g, g.op("MatMul", g.input("a", *shapes[0]), right))


def test_matmul_takes_in_bias_activation_and_residual() -> None:
    g = GraphBuilder()
    x = g.input("x", 2, 7, 6)
    y = g.op("Gelu", g.op("Add", g.weights(9), g.op("MatMul", x, g.weights(6, 9))))
    y = g.op("Add", x, g.op("MatMul", y, g.weights(9, 6)))
    assert check(g, y) == ["conv_f32", "conv_f32"]


def test_conv_takes_in_activation_and_residual_in_either_order() -> None:
    g = GraphBuilder()
    x = g.op("Conv", g.input("x", 1, 3, 8, 8), g.weights(6, 3, 1, 1))
    first = g.op("Relu", g.op("Add", g.op("Conv", x, g.weights(6, 6, 1, 1)), x))
    second = g.op(
        "Add", first, g.op("Silu", g.op("Conv", first, g.weights(6, 1, 3, 3), group=6, pads=[1] * 4), domain="edgekit")
    )
    assert check(g, second) == ["copy", "conv_f32", "conv_f32", "depthwise_f32", "copy"]
