"""Geometry: every resize mode, and the way there and back for ten thousand frame sizes."""

import numpy as np
import pytest

from edgekit.errors import ImageError, TensorError, UsageError
from edgekit.package.presets import PREPROCESS
from edgekit.package.specs import PreprocessSpec, TensorSpec
from edgekit.vision.geometry import InputSizes, place
from edgekit.vision.image_transform import Preparer, _transform, prepare


def nchw(height, width, channels=3):
    return TensorSpec("x", "float32", (1, channels, height, width), "nchw")


class Sized:
    def __init__(self, height, width):
        self.size_hw, self.height, self.width = (height, width), height, width


@pytest.mark.parametrize("resize", ["letterbox", "stretch", "center-crop", "limit-side"])
def test_round_trip_of_ten_thousand_frame_sizes(resize):
    rng = np.random.default_rng(3)
    spec = PreprocessSpec(resize=resize)
    sizes = InputSizes.of(nchw(640, 640))
    for height, width in rng.integers(1, 4097, (10_000, 2)):
        height, width = int(height), int(width)
        transform = _transform(Sized(height, width), place((height, width), spec, sizes))
        corners = np.array([[0, 0], [width, height], [width / 3, height / 7]])
        back = transform.to_source(transform.to_input(corners))
        assert np.abs(back - corners).max() <= 0.5


def test_a_drawn_box_comes_back_where_it_was():
    """Not only the formula: the pixels themselves are where the transform says."""
    rng = np.random.default_rng(4)
    for height, width in rng.integers(200, 1300, (40, 2)):
        image = np.zeros((height, width), dtype=np.uint8)
        x0, y0 = int(width * 0.3), int(height * 0.2)
        x1, y1 = int(width * 0.7), int(height * 0.9)
        image[y0:y1, x0:x1] = 255
        spec = PreprocessSpec(color="gray", resize="letterbox", mean=(0.0,), std=(1.0,), pad_value=0.0)
        array, transform = prepare(image, spec, nchw(416, 416, channels=1))
        profile_x, profile_y = array[0, 0].max(axis=0), array[0, 0].max(axis=1)
        # The sum of a profile is the length of the box in input pixels, with the blended edges counted by share.
        left = int(np.argmax(profile_x > 0))
        top = int(np.argmax(profile_y > 0))
        box = [
            left + 1 - profile_x[left], top + 1 - profile_y[top],
            left + 1 - profile_x[left] + profile_x.sum(), top + 1 - profile_y[top] + profile_y.sum(),
        ]  # fmt: skip
        found = transform.boxes_to_source(np.array([box]))[0]
        tolerance = 0.5 + 0.5 / min(transform.scale_xy)
        assert np.abs(found - [x0, y0, x1, y1]).max() <= tolerance


def test_letterbox_matches_the_rule_of_ultralytics():
    for height, width in [(1080, 810), (720, 1280), (333, 500), (640, 641), (3, 4000)]:
        ratio = min(640 / height, 640 / width)
        new_width, new_height = max(1, round(width * ratio)), max(1, round(height * ratio))
        left, top = round((640 - new_width) / 2 - 0.1), round((640 - new_height) / 2 - 0.1)
        placement = place((height, width), PREPROCESS["yolo"], InputSizes.of(nchw(640, 640)))
        assert placement.resized_hw == (new_height, new_width)
        assert placement.offset_xy == (left, top)


def test_center_crop_is_that_of_torchvision():
    placement = place((480, 640), PREPROCESS["imagenet"], InputSizes.of(nchw(224, 224)))
    assert placement.resized_hw == (256, 341)
    assert placement.offset_xy == (-59, -16)


def test_limit_side_of_ppocr():
    dynamic = InputSizes.of(TensorSpec("x", "float32", (1, 3, "h", "w"), "nchw"))
    assert place((720, 1280), PREPROCESS["ppocr-det"], dynamic).input_hw == (736, 1312)
    assert place((1000, 750), PREPROCESS["ppocr-det"], dynamic).input_hw == (992, 736)
    limited = PreprocessSpec(resize="limit-side", side_limit_type="max", side_limit_px=960)
    assert place((1080, 1920), limited, dynamic).input_hw == (544, 960)


def test_limit_side_into_buckets():
    spec = TensorSpec("x", "float32", (1, 3, "h", "w"), "nchw")
    buckets = [{"h": 736, "w": 992}, {"h": 992, "w": 736}, {"h": 736, "w": 736}]
    sizes = InputSizes.of(spec, buckets)
    preset = PREPROCESS["ppocr-det"]
    assert place((750, 1000), preset, sizes).input_hw == (736, 992)
    assert place((1000, 750), preset, sizes).input_hw == (992, 736)
    wide = place((700, 2800), preset, sizes)  # must shrink, keeps the proportions within a multiple of 32
    assert wide.input_hw == (736, 992)
    assert wide.resized_hw[1] <= 992
    assert wide.resized_hw[0] % 32 == 0


def test_fixed_height_into_width_buckets():
    spec = TensorSpec("x", "float32", (1, 3, 48, "w"), "nchw")
    buckets = [{"w": 320}, {"w": 640}, {"w": 960}]
    preparer = Preparer(PREPROCESS["ppocr-rec"], spec, buckets)
    for width, expected in [(10, 320), (100, 320), (101, 640), (300, 960), (2000, 960)]:
        array, transform = preparer.prepare(np.zeros((15, width, 3), dtype=np.uint8))
        assert array.shape == (1, 3, 48, expected)
        assert transform.scale_xy[1] == 48 / 15


def test_free_sizes_without_buckets():
    spec = TensorSpec("x", "float32", (1, 3, 48, "w"), "nchw")
    array, _ = prepare(np.zeros((20, 101, 3), np.uint8), PREPROCESS["ppocr-rec"], spec)
    assert array.shape == (1, 3, 48, 243)
    with pytest.raises(TensorError, match="fixed size"):
        prepare(np.zeros((20, 101, 3), np.uint8), PREPROCESS["yolo"], spec)


def test_bucket_fits_are_smallest():
    sizes = InputSizes(((100, 100), (100, 200), (300, 300)), (None, None))
    assert sizes.choose((90, 120)) == (100, 200)
    assert sizes.choose((90, 90)) == (100, 100)
    assert sizes.choose((900, 900)) == (300, 300)


def test_output_array_is_used_and_checked():
    preparer = Preparer(PREPROCESS["yolo"], nchw(64, 64))
    out = np.full((1, 3, 64, 64), np.nan, dtype=np.float32)
    array, _ = preparer.prepare(np.zeros((30, 40, 3), np.uint8), out)
    assert array is out
    assert not np.isnan(out).any()
    for wrong in (out[0], out.astype(np.float64), np.empty((1, 64, 64, 3), np.float32), out[:, :, :, ::-1]):
        with pytest.raises(TensorError, match="output array"):
            preparer.prepare(np.zeros((30, 40, 3), np.uint8), wrong)


@pytest.mark.parametrize(
    ("spec", "target", "error"),
    [
        (PreprocessSpec(), TensorSpec("x", "float32", (1, 10), "plain"), TensorError),
        (PreprocessSpec(), nchw(8, 8, channels=1), TensorError),
        (PreprocessSpec(), TensorSpec("x", "float32", (2, 3, 8, 8), "nchw"), TensorError),
        (PreprocessSpec(), TensorSpec("x", "int64", (1, 3, 8, 8), "nchw"), TensorError),
        (PreprocessSpec(std=(1.0, 0.0, 1.0)), nchw(8, 8), UsageError),
        (PreprocessSpec(mean=(1.0, 0.0)), nchw(8, 8), UsageError),
    ],
)
def test_specs_that_do_not_fit_are_refused(spec, target, error):
    with pytest.raises(error):
        Preparer(spec, target)


def test_wrong_size_without_resizing():
    with pytest.raises(TensorError, match="got 41x30, expected 40x30"):
        prepare(np.zeros((30, 41, 3), np.uint8), PreprocessSpec(resize="none"), nchw(30, 40))


@pytest.mark.parametrize(
    "array", [np.zeros((4, 4, 4), np.uint8), np.zeros((4, 0, 3), np.uint8), np.zeros((4, 4), np.float32)]
)
def test_bad_arrays_are_one_line(array):
    with pytest.raises(ImageError) as caught:
        prepare(array, PREPROCESS["yolo"], nchw(64, 64))
    assert "\n" not in str(caught.value)
