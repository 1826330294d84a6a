"""Text: DBNet boxes against OpenCV's contours, CTC against a plain loop, crops against the pixels themselves."""

import numpy as np
import pytest

from edgekit import _native
from edgekit.errors import TensorError
from edgekit.package.manifest import Manifest
from edgekit.package.specs import PostprocessSpec, TensorSpec
from edgekit.vision.frame_transform import FrameTransform
from edgekit.vision.results import TextBoxes
from edgekit.vision.tasks import make_task
from edgekit.vision.text_crop import crop_line, crop_lines

shapely = pytest.importorskip("shapely")


def task(form, task_name, shape, labels=(), **settings):
    return make_task(
        Manifest(
            1, 0, "test", "0", "m.onnx", "p", "0", inputs=(), outputs=(TensorSpec("y", "float32", shape),), variants=(),
            members={}, postprocess=PostprocessSpec(task_name, form, **settings), labels=labels,
        )
    )  # fmt: skip


def random_map(seed, height=200, width=300, count=12):
    """Rotated bars of high probability on a noisy ground, some touching each other and the border."""
    cv2 = pytest.importorskip("cv2")
    rng = np.random.default_rng(seed)
    chart = rng.uniform(0, 0.25, (height, width)).astype(np.float32)
    for _ in range(count):
        centre = (float(rng.uniform(0, width)), float(rng.uniform(0, height)))
        size = (float(rng.uniform(8, 80)), float(rng.uniform(3, 14)))
        corners = cv2.boxPoints((centre, size, float(rng.uniform(-40, 40))))
        cv2.fillPoly(chart, [np.rint(corners).astype(np.int32)], float(rng.uniform(0.4, 1.0)))
    return chart


def boxes_by_opencv(chart, dilate):
    """PaddleOCR's recipe with OpenCV's regions and rectangles; growing a rectangle is moving its sides."""
    cv2 = pytest.importorskip("cv2")
    mask = (chart > 0.3).astype(np.uint8)
    if dilate:
        mask = cv2.dilate(mask, np.ones((2, 2), np.uint8))
    count, labels = cv2.connectedComponents(mask, connectivity=8)
    found = []
    for label in range(1, count):
        ys, xs = np.nonzero(labels == label)
        (cx, cy), (w, h), angle = cv2.minAreaRect(np.stack([xs, ys], 1).astype(np.float32))
        if min(w, h) < 3:
            continue
        wide = shapely.Polygon(cv2.boxPoints(((cx, cy), (w + 1, h + 1), angle))).buffer(1e-4)
        x0, y0, x1, y1 = (int(v) for v in wide.bounds)
        pixels = [(x, y) for y in range(max(0, y0), y1 + 1) for x in range(max(0, x0), x1 + 1)]
        pixels = [(x, y) for x, y in pixels if x < chart.shape[1] and y < chart.shape[0]]
        inside = shapely.contains_xy(wide, pixels)
        score = float(np.mean([chart[y, x] for (x, y), hit in zip(pixels, inside, strict=True) if hit]))
        grow = w * h * 1.6 / (2 * (w + h))
        found.append((cv2.boxPoints(((cx, cy), (w + 2 * grow, h + 2 * grow), angle)), score))
    return found


def iou(a, b):
    a, b = shapely.Polygon(a), shapely.Polygon(b)
    return a.intersection(b).area / a.union(b).area


@pytest.mark.parametrize("dilate", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_boxes_match_those_of_opencv(seed, dilate):
    chart = random_map(seed)
    expected = boxes_by_opencv(chart, dilate)
    corners, scores = _native.dbnet_boxes(chart, 0.3, 0.0, 1.6, dilate)
    assert len(corners) == len(expected) > 0
    for polygon, score in expected:
        overlaps = [iou(polygon, other) for other in corners]
        best = int(np.argmax(overlaps))
        assert overlaps[best] > 0.99
        assert abs(scores[best] - score) < 0.01  # a pixel on the very edge may count in one and not the other


def test_corners_are_clockwise_from_the_top_left():
    corners, _ = _native.dbnet_boxes(random_map(3), 0.3, 0.0, 1.6, True)
    for polygon in corners:
        edges = np.roll(polygon, -1, axis=0) - polygon
        assert np.all(
            edges[:, 0] * np.roll(edges, -1, axis=0)[:, 1] - edges[:, 1] * np.roll(edges, -1, axis=0)[:, 0] > 0
        )
        assert polygon[0].sum() <= polygon[2].sum()


def test_an_upright_box_is_exact():
    chart = np.zeros((64, 96), np.float32)
    chart[20:30, 10:50] = 0.8
    corners, scores = _native.dbnet_boxes(chart, 0.3, 0.5, 1.6, False)
    width, height = 39.0, 9.0  # between pixel centres
    grow = width * height * 1.6 / (2 * (width + height))
    x0, y0, x1, y1 = 10 - grow, 20 - grow, 49 + grow, 29 + grow
    np.testing.assert_allclose(corners[0], [[x0, y0], [x1, y0], [x1, y1], [x0, y1]], atol=1e-4)
    assert scores[0] == pytest.approx(0.8)


def test_low_scores_and_specks_are_dropped():
    chart = np.zeros((40, 40), np.float32)
    chart[5:15, 5:25] = 0.4
    chart[30:32, 30:32] = 1.0
    assert len(_native.dbnet_boxes(chart, 0.3, 0.5, 1.6, False)[0]) == 0
    assert len(_native.dbnet_boxes(chart, 0.3, 0.3, 1.6, False)[0]) == 1


def test_hostile_maps():
    for value in (np.nan, np.inf, -np.inf, 1.0):
        _native.dbnet_boxes(np.full((50, 70), value, np.float32), 0.3, 0.5, 1.6, True)
    checker = (np.indices((80, 80)).sum(axis=0) % 4 == 0).astype(np.float32)
    _native.dbnet_boxes(checker, 0.3, 0.0, 1.6, True)
    dots = np.zeros((200, 200), np.float32)
    dots[::3, ::3] = 1
    assert len(_native.dbnet_boxes(dots, 0.3, 0.0, 1.6, False)[0]) == 0


def test_text_boxes_in_source_pixels():
    chart = np.zeros((1, 1, 160, 160), np.float32)
    chart[0, 0, 40:60, 20:100] = 0.9
    transform = FrameTransform((200, 400), (320, 320), (0.8, 1.6), (0, 0))
    result = task("dbnet", "text-detect", (1, 1, 160, 160), score_threshold=0.3).postprocess({"y": chart}, transform)
    centre = result.polygons[0].mean(axis=0)
    np.testing.assert_allclose(centre, [60.0 * 2 / 0.8, 50.0 * 2 / 1.6], atol=2)
    assert result.boxes_xyxy_px.shape == (1, 4)
    assert result.polygons.max() <= 399
    with pytest.raises(TensorError):
        task("dbnet", "text-detect", (1,)).postprocess({"y": chart[0]}, transform)


def plain_ctc(rows, blank):
    ids, scores, previous = [], [], None
    for row in rows:
        best = int(np.argmax(row))
        if best not in (blank, previous):
            ids.append(best)
            scores.append(row[best])
        previous = best
    return ids, scores


@pytest.mark.parametrize("classes", [2, 63, 64, 65, 6625])
def test_ctc_equals_the_plain_loop(classes):
    rng = np.random.default_rng(classes)
    rows = rng.integers(0, 4 if classes > 64 else 3, (40, classes)).astype(np.float32)  # ties: the first one wins
    rows[5:8] = rows[4]
    for blank in (0, classes - 1):
        ids, scores = _native.ctc_greedy(rows, blank)
        assert (ids.tolist(), scores.tolist()) == plain_ctc(rows, blank)


def test_ctc_of_nan_does_not_run_away():
    ids, _ = _native.ctc_greedy(np.full((3, 100), np.nan, np.float32), 0)
    assert ids.size <= 3


def test_recognised_text_and_confidence():
    labels = ("<blank>", "a", "b", " ")
    rows = np.full((1, 7, 4), 0.0, np.float32)
    for step, (best, value) in enumerate([(1, 0.9), (1, 0.8), (0, 1.0), (1, 0.7), (3, 0.6), (2, 0.5), (2, 0.9)]):
        rows[0, step, best] = value
    result = task("ctc", "text-recognize", (1, 7, 4), labels).postprocess({"y": rows}, None)
    assert result.text == "aa b"
    assert result.confidence == pytest.approx((0.9 + 0.7 + 0.6 + 0.5) / 4)
    assert len(result.character_confidence) == 4
    logits = task("ctc-logits", "text-recognize", (1, 7, 4), labels).postprocess({"y": rows * 20}, None)
    assert logits.text == "aa b"
    assert 0.9 < logits.confidence <= 1
    with pytest.raises(TensorError, match="fewer labels"):
        task("ctc", "text-recognize", (1, 7, 4), labels[:2]).postprocess({"y": rows}, None)


def test_an_upright_crop_is_the_pixels_themselves():
    image = np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    polygon = np.float32([[10, 20], [70, 20], [70, 45], [10, 45]])
    assert np.array_equal(crop_line(image, polygon), image[20:45, 10:70])


def test_a_tilted_crop_is_straight():
    cv2 = pytest.importorskip("cv2")
    image = np.zeros((200, 300, 3), np.uint8)
    corners = cv2.boxPoints(((150.0, 100.0), (120.0, 30.0), 25.0))
    corners = corners[np.argsort(corners[:, 0] - corners[:, 1])][[2, 0, 1, 3]]
    by_x = corners[np.argsort(corners[:, 0])]
    left, right = by_x[:2][np.argsort(by_x[:2, 1])], by_x[2:][np.argsort(by_x[2:, 1])]
    polygon = np.float32([left[0], right[0], right[1], left[1]])
    cv2.fillPoly(image, [np.rint(polygon).astype(np.int32)], (255, 255, 255))
    crop = crop_line(image, polygon)
    assert crop.shape == (30, 120, 3)
    assert crop[3:-3, 3:-3].min() == 255


def test_tall_boxes_are_turned():
    image = np.zeros((100, 40, 3), np.uint8)
    image[:50] = 200
    crop = crop_line(image, np.float32([[0, 0], [40, 0], [40, 100], [0, 100]]))
    assert crop.shape == (40, 100, 3)
    assert np.array_equal(crop, np.rot90(image))


def test_degenerate_polygons_are_one_line():
    for polygon in (np.zeros((4, 2), np.float32), np.full((4, 2), np.nan, np.float32)):
        with pytest.raises((TensorError, ValueError)):
            _native.warp_quad(np.zeros((5, 5, 3), np.uint8), polygon, 4, 4)


def test_crops_come_in_reading_order():
    image = np.zeros((100, 200, 3), np.uint8)
    places = [(10, 60), (100, 12), (10, 10), (100, 58)]
    polygons = []
    for value, (x, y) in enumerate(places):
        image[y : y + 20, x : x + 60] = value + 1
        polygons.append([[x, y], [x + 60, y], [x + 60, y + 20], [x, y + 20]])
    boxes = TextBoxes(np.float32(polygons), np.ones(4, np.float32))
    assert [int(crop[0, 0, 0]) for crop in crop_lines(image, boxes)] == [3, 2, 1, 4]
    assert crop_lines(image, TextBoxes(np.zeros((0, 4, 2), np.float32), np.zeros(0, np.float32))) == []


def test_classification_softmax_and_top_k():
    logits = np.float32([[1.0, 3.0, 2.0, 3.0]])
    result = task("logits", "classify", (1, 4), ("a", "b", "c", "d"), top_k=3).postprocess({"y": logits}, None)
    assert result.labels == ["b", "d", "c"]
    expected = np.exp(logits[0]) / np.exp(logits[0]).sum()
    np.testing.assert_allclose(result.confidence, expected[[1, 3, 2]], rtol=1e-6)
    plain = task("probabilities", "classify", (1, 4), top_k=9).postprocess({"y": logits}, None)
    assert plain.confidence.tolist() == [3, 3, 2, 1]
    assert plain.labels == ["1", "3", "2", "0"]
