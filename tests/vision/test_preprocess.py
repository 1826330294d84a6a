"""The fused pass against real-number interpolation in numpy, against OpenCV, and its ISAs against each other."""

import numpy as np
import pytest

from edgekit import _native
from edgekit.package.specs import PreprocessSpec, Quantization, TensorSpec
from edgekit.vision.frame import Frame
from edgekit.vision.image_transform import Preparer, prepare

RNG_SEED = 20
# 0.5 for rounding to a grey level and a little for weights of 14 and 15 bits (preprocess.h, definition 4).
LEVEL_TOLERANCE = 0.52


def input_spec(height, width, *, layout="nchw", dtype="float32", channels=3, quantization=None):
    shape = (1, channels, height, width) if layout == "nchw" else (1, height, width, channels)
    return TensorSpec("x", dtype, shape, layout, quantization)


def positions(source, target):
    return (np.arange(target) + 0.5) * source / target - 0.5


def bilinear_matrix(source, target):
    """Rows of interpolation weights, in float64."""
    matrix = np.zeros((target, source))
    for row, position in enumerate(positions(source, target)):
        position = min(max(position, 0), source - 1)
        left = int(np.floor(position))
        share = position - left
        matrix[row, left] += 1 - share
        matrix[row, min(left + 1, source - 1)] += share
    return matrix


def nearest_matrix(source, target):
    matrix = np.zeros((target, source))
    for row, position in enumerate(positions(source, target)):
        matrix[row, min(int(np.floor(position + 0.5 + 1e-9)), source - 1)] = 1
    return matrix


def area_matrix(source, target):
    matrix = np.zeros((target, source))
    for row in range(target):
        low, high = row * source / target, (row + 1) * source / target
        for column in range(source):
            matrix[row, column] = max(0.0, min(high, column + 1) - max(low, column))
    return matrix / matrix.sum(axis=1, keepdims=True)


MATRICES = {"bilinear": bilinear_matrix, "nearest": nearest_matrix, "area": area_matrix}


def resized_real(image, height, width, interpolation="bilinear"):
    """float64 (height, width, channels), not rounded."""
    make = MATRICES[interpolation]
    rows, columns = make(image.shape[0], height), make(image.shape[1], width)
    return np.einsum("yr,rcd,xc->yxd", rows, image.astype(np.float64), columns, optimize=True)


def levels(frame, height, width, *, interpolation="bilinear", color="rgb", force_scalar=False):
    spec = PreprocessSpec(color=color, resize="stretch", interpolation=interpolation, scale=1.0)
    target = input_spec(height, width, layout="nhwc", dtype="uint8", channels=1 if color == "gray" else 3)
    return Preparer(spec, target, force_scalar=force_scalar).prepare(frame)[0][0]


SIZES = [
    ((720, 1280), (360, 640)), ((64, 48), (64, 48)), ((37, 53), (20, 31)), ((5, 7), (40, 33)), ((1, 1), (9, 11)),
    ((1, 200), (13, 3)), ((241, 1), (17, 5)), ((97, 131), (96, 130)), ((480, 640), (224, 224)), ((33, 35), (32, 17)),
]  # fmt: skip


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest", "area"])
@pytest.mark.parametrize(("source", "target"), SIZES)
def test_resize_is_within_the_stated_tolerance_of_real_interpolation(source, target, interpolation):
    image = np.random.default_rng(RNG_SEED).integers(0, 256, (*source, 3), dtype=np.uint8)
    image[: source[0] // 2 : 2] = 255 * (image[: source[0] // 2 : 2] > 127)
    got = levels(image, *target, interpolation=interpolation)
    expected = resized_real(image, *target, interpolation)
    assert np.abs(got - expected).max() <= LEVEL_TOLERANCE


@pytest.mark.parametrize(("source", "target"), SIZES)
def test_bilinear_is_within_one_level_of_opencv(source, target):
    cv2 = pytest.importorskip("cv2")
    image = np.random.default_rng(RNG_SEED).integers(0, 256, (*source, 3), dtype=np.uint8)
    expected = cv2.resize(image, target[::-1], interpolation=cv2.INTER_LINEAR)
    assert np.abs(levels(image, *target).astype(int) - expected.astype(int)).max() <= 1


def test_halving_equals_opencv_exactly():
    cv2 = pytest.importorskip("cv2")
    image = np.random.default_rng(RNG_SEED).integers(0, 256, (256, 512, 3), dtype=np.uint8)
    assert np.array_equal(levels(image, 128, 256), cv2.resize(image, (256, 128), interpolation=cv2.INTER_LINEAR))


def test_checkerboard_of_one_pixel_to_a_quarter():
    """Bilinear at half-pixel centres takes two pixels a side here, so it is grey as the area average is."""
    board = (np.indices((512, 512)).sum(axis=0) % 2 * 255).astype(np.uint8)
    for interpolation in ("bilinear", "area"):
        got = levels(board, 128, 128, interpolation=interpolation, color="gray")[:, :, 0]
        assert np.array_equal(np.unique(got), [128])
    shifted = levels(board[:, :508], 127, 127, color="gray")[:, :, 0]
    assert np.abs(shifted - resized_real(board[:, :508, None], 127, 127)[:, :, 0]).max() <= LEVEL_TOLERANCE
    nearest = levels(board, 128, 128, interpolation="nearest", color="gray")[:, :, 0]
    assert np.array_equal(nearest, board[2::4, 2::4])


def yuv_frame(kind, y, u, v, matrix="601", value_range="studio"):
    planes = (y, u, v) if kind == "i420" else (y, np.stack([u, v], axis=-1).reshape(u.shape[0], -1))
    return Frame(planes, kind, y.shape[1], y.shape[0], matrix, value_range)


def random_yuv(kind, height, width, matrix="601", value_range="full"):
    rng = np.random.default_rng(RNG_SEED)
    half = ((height + 1) // 2, (width + 1) // 2)
    y, u, v = (rng.integers(0, 256, size, dtype=np.uint8) for size in ((height, width), half, half))
    return yuv_frame(kind, y, u, v, matrix, value_range)


FORMATS = ["rgb", "bgr", "gray", "nv12", "i420"]


def random_frame(kind, height, width):
    if kind in ("nv12", "i420"):
        return random_yuv(kind, height, width)
    shape = (height, width) if kind == "gray" else (height, width, 3)
    image = np.random.default_rng(RNG_SEED).integers(0, 256, shape, dtype=np.uint8)
    return Frame.from_array(image, "bgr" if kind == "bgr" else "rgb")


@pytest.mark.skipif(_native.Preprocessor.isa == "scalar", reason="this machine has only the scalar rows")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("interpolation", ["bilinear", "nearest", "area"])
@pytest.mark.parametrize("resize", ["letterbox", "center-crop", "stretch"])
def test_every_isa_equals_the_scalar_reference_bit_for_bit(kind, interpolation, resize):
    for index, (height, width) in enumerate([(1, 1), (2, 3), (33, 47), (101, 64), (150, 199)]):
        frame = random_frame(kind, height, width)
        for layout, dtype in [("nchw", "float32"), ("nhwc", "float32"), ("nchw", "uint8"), ("nhwc", "int8")]:
            color = ("rgb", "bgr", "gray")[index % 3]
            quantization = None if dtype == "float32" else Quantization(0.031, 3)
            target = input_spec(
                45, 61, layout=layout, dtype=dtype, channels=1 if color == "gray" else 3, quantization=quantization
            )
            spec = PreprocessSpec(color, resize, interpolation, mean=(0.4, 0.5, 0.6)[: 1 if color == "gray" else 3])
            spec = spec if color != "gray" else PreprocessSpec(color, resize, interpolation, mean=(0.4,), std=(0.3,))
            fast = Preparer(spec, target).prepare(frame)[0]
            reference = Preparer(spec, target, force_scalar=True).prepare(frame)[0]
            assert np.array_equal(fast.view(np.uint8), reference.view(np.uint8))


COEFFICIENTS = {"601": (0.299, 0.114), "709": (0.2126, 0.0722)}


def rgb_real(y, u, v, matrix, value_range):
    """ITU-R BT.601 / BT.709 in float64."""
    red, blue = COEFFICIENTS[matrix]
    green = 1 - red - blue
    if value_range == "studio":
        y, u, v = (y - 16) * 255 / 219, (u - 128) * 255 / 224, (v - 128) * 255 / 224
    else:
        u, v = u - 128.0, v - 128.0
    r = y + 2 * (1 - red) * v
    b = y + 2 * (1 - blue) * u
    g = (y - red * r - blue * b) / green
    return np.clip(np.stack([r, g, b], axis=-1), 0, 255)


BARS = np.array(
    [[255, 255, 255], [255, 255, 0], [0, 255, 255], [0, 255, 0], [255, 0, 255], [255, 0, 0], [0, 0, 255], [0, 0, 0],
     [128, 128, 128], [20, 200, 90]]
)  # fmt: skip


def bars_as_yuv(matrix, value_range):
    red, blue = COEFFICIENTS[matrix]
    rgb = BARS.astype(np.float64)
    y = rgb @ [red, 1 - red - blue, blue]
    u, v = (rgb[:, 2] - y) / (2 * (1 - blue)), (rgb[:, 0] - y) / (2 * (1 - red))
    if value_range == "studio":
        y, u, v = 16 + y * 219 / 255, u * 224 / 255, v * 224 / 255
    return [np.rint(np.clip(plane, 0, 255)).astype(np.uint8) for plane in (y, u + 128, v + 128)]


@pytest.mark.parametrize("kind", ["nv12", "i420"])
@pytest.mark.parametrize("matrix", ["601", "709"])
@pytest.mark.parametrize("value_range", ["studio", "full"])
def test_colour_bars(kind, matrix, value_range):
    y, u, v = (np.repeat(plane, 16)[None] for plane in bars_as_yuv(matrix, value_range))
    y = np.repeat(y, 32, axis=0)
    u, v = (np.repeat(plane[:, ::2], 16, axis=0) for plane in (u, v))
    rgb = yuv_frame(kind, y, u, v, matrix, value_range).to_rgb()
    centres = rgb[16, 8::16].astype(int)
    assert np.abs(centres - BARS).max() <= 2  # 8-bit YUV alone costs up to 2 levels


@pytest.mark.parametrize("kind", ["nv12", "i420"])
@pytest.mark.parametrize("size", [(36, 50), (35, 51), (1, 1), (2, 1), (7, 8)])
def test_yuv_is_resized_by_planes_then_converted(kind, size):
    frame = random_yuv(kind, *size, matrix="709", value_range="studio")
    half = ((size[0] + 1) // 2, (size[1] + 1) // 2)
    y = frame.planes[0]
    u, v = (
        frame.planes[1:]
        if kind == "i420"
        else (frame.planes[1].reshape(*half, 2)[:, :, 0], frame.planes[1].reshape(*half, 2)[:, :, 1])
    )
    target = (20, 26)

    def chroma(plane):
        matrices = []
        for source, samples, count in zip(size, half, target, strict=True):
            centre = (np.arange(count) + 0.5) * source / count / 2 - 0.5
            matrix = np.zeros((count, samples))
            for row, position in enumerate(np.clip(centre, 0, samples - 1)):
                left = int(position)
                matrix[row, left] += 1 - (position - left)
                matrix[row, min(left + 1, samples - 1)] += position - left
            matrices.append(matrix)
        return np.rint(matrices[0] @ plane @ matrices[1].T)

    luma = np.rint(resized_real(y[:, :, None], *target)[:, :, 0])
    expected = rgb_real(luma, chroma(u), chroma(v), "709", "studio")
    got = levels(frame, *target).astype(np.float64)
    # A plane that rounds to the other level moves a channel by at most 2.1 * 1 + 1.2; most are exact to 0.51.
    difference = np.abs(got - expected)
    assert difference.max() <= 3.9
    assert np.quantile(difference, 0.95) <= 0.6


def test_red_square_stays_red_whatever_the_order():
    rgb = np.zeros((40, 60, 3), dtype=np.uint8)
    rgb[10:30, 20:40] = (255, 0, 0)
    bgr = Frame.from_array(rgb[:, :, ::-1].copy(), "bgr")
    for frame in (Frame.from_array(rgb), bgr):
        assert np.array_equal(frame.to_rgb(), rgb)
        assert np.array_equal(levels(frame, 40, 60, color="rgb"), rgb)
        assert np.array_equal(levels(frame, 40, 60, color="bgr"), rgb[:, :, ::-1])


def test_i420_of_704_in_rows_of_768_never_reads_the_padding():
    rng = np.random.default_rng(RNG_SEED)

    def plane(rows, columns, stride, poison):
        whole = np.full((rows, stride), poison, dtype=np.uint8)
        whole[:, :columns] = content[(rows, columns)]
        return whole[:, :columns]

    shapes = [(576, 704, 768), (288, 352, 384)]
    content = {shape[:2]: rng.integers(0, 256, shape[:2], dtype=np.uint8) for shape in shapes}
    results = []
    for poison in (0, 255):
        y = plane(*shapes[0], poison)
        u, v = plane(*shapes[1], poison), plane(*shapes[1], poison)
        assert y.strides == (768, 1)
        results.append(levels(yuv_frame("i420", y, u, v), 320, 400))
    assert np.array_equal(*results)
    dense = [np.ascontiguousarray(content[shape[:2]]) for shape in (shapes[0], shapes[1], shapes[1])]
    assert np.array_equal(results[0], levels(yuv_frame("i420", *dense), 320, 400))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_quantized_input_equals_quantize_linear_of_the_float_input(dtype, layout):
    image = np.arange(256, dtype=np.uint8).reshape(16, 16)
    image = np.stack([image, image[::-1], image.T], axis=-1)
    spec = PreprocessSpec(resize="none", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    quantization = Quantization(0.0186, 114 if dtype == "uint8" else -14)
    real, _ = prepare(image, spec, input_spec(16, 16, layout=layout))
    got, _ = prepare(image, spec, input_spec(16, 16, layout=layout, dtype=dtype, quantization=quantization))
    expected = np.rint(real / np.float32(quantization.scale)) + quantization.zero_point
    limits = np.iinfo(dtype)
    assert np.array_equal(got, np.clip(expected, limits.min, limits.max).astype(dtype))


def test_normalisation_matches_the_formula_in_double():
    image = np.random.default_rng(RNG_SEED).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    spec = PreprocessSpec("bgr", "none", scale=1 / 255, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    got, _ = prepare(image, spec, input_spec(8, 8))
    expected = (image[:, :, ::-1] / 255 - [0.1, 0.2, 0.3]) / [0.5, 0.6, 0.7]
    assert np.abs(got[0] - expected.transpose(2, 0, 1)).max() < 1e-6


def test_letterbox_pads_exactly_around_the_picture():
    image = np.full((50, 100, 3), 7, dtype=np.uint8)
    spec = PreprocessSpec(resize="letterbox", scale=1.0, pad_value=114.0)
    got, transform = prepare(image, spec, input_spec(64, 64))
    assert transform.offset_xy == (0, 16)
    assert np.all(got[0, :, 16:48] == 7)
    assert np.all(got[0, :, :16] == 114)
    assert np.all(got[0, :, 48:] == 114)


def test_null_padding_is_zero_of_the_network():
    spec = PreprocessSpec(color="bgr", resize="fixed-height", mean=(0.5,) * 3, std=(0.5,) * 3, pad_value=None)
    image = np.full((24, 50, 3), 255, dtype=np.uint8)
    got, _ = prepare(image, spec, input_spec(48, 160))
    assert np.all(got[..., :100] == 1.0)
    assert np.all(got[..., 100:] == 0.0)
    quantized, _ = prepare(image, spec, input_spec(48, 160, dtype="uint8", quantization=Quantization(1 / 127, 128)))
    assert np.all(quantized[..., 100:] == 128)


def test_a_bottom_up_picture_is_read_through_its_negative_stride():
    image = np.random.default_rng(RNG_SEED).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    assert np.array_equal(levels(image[::-1], 17, 19), levels(image[::-1].copy(), 17, 19))


def test_native_pass_refuses_short_planes():
    frame = Frame((np.zeros((4, 8), np.uint8), np.zeros((2, 3), np.uint8), np.zeros((2, 4), np.uint8)), "i420", 8, 4)
    with pytest.raises(ValueError, match="plane 1"):
        levels(frame, 4, 4)
