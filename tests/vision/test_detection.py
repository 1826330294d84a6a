"""Detector outputs to boxes: every form against loops written from the papers, suppression against a plain one."""

import math

import numpy as np
import pytest

from edgekit import _native
from edgekit.errors import PackageError, TensorError
from edgekit.package.manifest import Manifest
from edgekit.package.specs import PostprocessSpec, TensorSpec
from edgekit.vision.frame_transform import FrameTransform
from edgekit.vision.tasks import make_task

IDENTITY = FrameTransform((320, 320), (320, 320), (1.0, 1.0), (0, 0))


def manifest(spec, outputs, labels=()):
    return Manifest(
        1, 0, "test", "0", "m.onnx", "p", "0", inputs=(), outputs=tuple(outputs), variants=(), members={},
        postprocess=spec, labels=labels,
    )  # fmt: skip


def output(name, array):
    return TensorSpec(name, "float32", array.shape)


def run(spec, *arrays, transform=IDENTITY, labels=()):
    names = [f"o{i}" for i in range(len(arrays))]
    specs = [output(n, a) for n, a in zip(names, arrays, strict=True)]
    return make_task(manifest(spec, specs, labels)).postprocess(dict(zip(names, arrays, strict=True)), transform)


def plain_iou(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def plain_nms(boxes, scores, ids, threshold, most=10**9, agnostic=False):
    kept = []
    for i in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        rivals = [k for k in kept if agnostic or ids[k] == ids[i]]
        if len(kept) < most and all(plain_iou(boxes[i].tolist(), boxes[k].tolist()) <= threshold for k in rivals):
            kept.append(i)
    return kept


def random_boxes(rng, count, extent=300.0):
    corner = rng.uniform(0, extent, (count, 2))
    return np.concatenate([corner, corner + rng.uniform(5, extent / 4, (count, 2))], axis=1).astype(np.float32)


@pytest.mark.parametrize("agnostic", [False, True])
@pytest.mark.parametrize("extent", [100.0, 300.0, 20_000.0])
def test_suppression_equals_the_plain_one(agnostic, extent):
    rng = np.random.default_rng(1)
    for count in (0, 1, 2, 40, 250):
        boxes = random_boxes(rng, count, extent)
        scores = rng.choice(np.float32([0.3, 0.5, 0.7, 0.9]), count)  # many ties
        ids = rng.integers(0, 5, count, dtype=np.int32)
        got = _native.nms(boxes, scores, ids, 0.45, 300, agnostic)
        assert got.tolist() == plain_nms(boxes, scores, ids, np.float32(0.45), 300, agnostic)


def test_two_classes_on_one_place_both_stay_whatever_the_offset():
    """Offset tricks (class * 4096 added to boxes) lose precision far from the origin, or merge classes."""
    for shift in (0, 100_000, 10_000_000):
        boxes = np.float32([[10, 10, 50, 50], [11, 11, 51, 51], [10, 10, 50, 50]]) + np.float32(shift)
        ids = np.int32([0, 1, 79])
        assert _native.nms(boxes, np.float32([0.9, 0.8, 0.7]), ids, 0.5, 300, False).tolist() == [0, 1, 2]
        assert _native.nms(boxes, np.float32([0.9, 0.8, 0.7]), ids, 0.5, 300, True).tolist() == [0]


def test_suppression_of_hostile_values():
    boxes = np.float32([[0, 0, 10, 10], [np.nan, 0, 1, 1], [10, 10, 0, 0], [-np.inf, 0, np.inf, 9]])
    ids = np.zeros(4, np.int32)
    kept = _native.nms(boxes, np.float32([np.nan, 0.5, 0.4, 0.3]), ids, 0.5, 300, False)
    assert 0 not in kept.tolist()
    assert _native.nms(boxes, np.ones(4, np.float32), ids, 0.5, 2, False).size == 2


def plain_yolov8(array, threshold):
    boxes, scores, ids = [], [], []
    for column in array[0].T.astype(np.float64):
        best = int(np.argmax(column[4:]))
        if column[4 + best] >= np.float32(threshold):
            cx, cy, w, h = column[:4]
            boxes.append([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2])
            scores.append(column[4 + best])
            ids.append(best)
    return np.array(boxes, np.float64).reshape(-1, 4), scores, ids


def check(result, boxes, scores, ids, threshold=0.45):
    kept = plain_nms(boxes, scores, ids, threshold)
    assert len(kept) > 3
    assert result.class_id.tolist() == [ids[k] for k in kept]
    np.testing.assert_allclose(result.confidence, [scores[k] for k in kept], rtol=1e-5)
    np.testing.assert_allclose(result.xyxy, np.clip(boxes[kept], 0, 320), atol=2e-3)


def test_yolov8_one_output():
    rng = np.random.default_rng(2)
    for anchors in (1, 255, 256, 257, 2100):
        array = rng.uniform(0, 0.5, (1, 12, anchors)).astype(np.float32)
        array[0, :4] *= 500
        array[0, 4:, rng.integers(0, anchors, 30)] += 0.4
        boxes, scores, ids = plain_yolov8(array, 0.7)
        result = run(PostprocessSpec("detect", "yolov8", score_threshold=0.7), array)
        if anchors > 1000:
            check(result, boxes, scores, ids)
        else:
            assert len(result) <= len(scores)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_yolov8_heads():
    rng = np.random.default_rng(3)
    bins, classes = 16, 8
    heads = [rng.normal(0, 2, (1, 4 * bins + classes, n, n + 1)).astype(np.float32) for n in (20, 10, 5)]
    for head in heads:
        head[0, 4 * bins :] -= 3
    boxes, scores, ids = [], [], []
    for head, stride in zip(heads, (8, 16, 32), strict=True):
        for y in range(head.shape[2]):
            for x in range(head.shape[3]):
                cell = head[0, :, y, x].astype(np.float64)
                best = int(np.argmax(cell[4 * bins :]))
                score = sigmoid(cell[4 * bins + best])
                if score < 0.3:
                    continue
                weights = np.exp(cell[: 4 * bins].reshape(4, bins))
                left, top, right, bottom = (weights / weights.sum(1, keepdims=True)) @ np.arange(bins)
                boxes.append(
                    [
                        (x + 0.5 - left) * stride,
                        (y + 0.5 - top) * stride,
                        (x + 0.5 + right) * stride,
                        (y + 0.5 + bottom) * stride,
                    ]
                )
                scores.append(score)
                ids.append(best)
    result = run(PostprocessSpec("detect", "yolov8-heads", score_threshold=0.3), *heads)
    check(result, np.array(boxes), scores, ids)


def test_yolov5_rows():
    rng = np.random.default_rng(4)
    array = rng.uniform(0, 1, (1, 500, 10)).astype(np.float32)
    array[..., :4] *= 200
    boxes, scores, ids = [], [], []
    for row in array[0].astype(np.float64):
        best = int(np.argmax(row[5:]))
        if row[4] * row[5 + best] >= 0.6:
            boxes.append([row[0] - row[2] / 2, row[1] - row[3] / 2, row[0] + row[2] / 2, row[1] + row[3] / 2])
            scores.append(row[4] * row[5 + best])
            ids.append(best)
    result = run(PostprocessSpec("detect", "yolov5", score_threshold=0.6), array)
    check(result, np.array(boxes), scores, ids)


@pytest.mark.parametrize("channels_first", [True, False])
def test_yolov5_raw_heads(channels_first):
    rng = np.random.default_rng(5)
    classes, anchors = 4, (10.0, 13.0, 16.0, 30.0, 33.0, 23.0, 30.0, 61.0, 62.0, 45.0, 59.0, 119.0)
    strides, sizes = (8, 16), ((12, 9), (6, 5))
    heads, boxes, scores, ids = [], [], [], []
    for level, (stride, (height, width)) in enumerate(zip(strides, sizes, strict=True)):
        head = rng.normal(0, 1.5, (1, 3, height, width, 5 + classes)).astype(np.float32)
        for anchor in range(3):
            anchor_w, anchor_h = anchors[6 * level + 2 * anchor : 6 * level + 2 * anchor + 2]
            for y in range(height):
                for x in range(width):
                    v = [sigmoid(value) for value in head[0, anchor, y, x].tolist()]
                    best = int(np.argmax(v[5:]))
                    if v[4] * v[5 + best] < 0.5:
                        continue
                    cx, cy = (2 * v[0] - 0.5 + x) * stride, (2 * v[1] - 0.5 + y) * stride
                    w, h = (2 * v[2]) ** 2 * anchor_w, (2 * v[3]) ** 2 * anchor_h
                    boxes.append([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2])
                    scores.append(v[4] * v[5 + best])
                    ids.append(best)
        if channels_first:
            head = head.transpose(0, 1, 4, 2, 3).reshape(1, 3 * (5 + classes), height, width)
        heads.append(head)
    spec = PostprocessSpec("detect", "yolov5-heads", score_threshold=0.5, strides=strides, anchors=anchors)
    check(run(spec, *heads), np.array(boxes), scores, ids)


@pytest.mark.parametrize("with_anchors", [True, False])
@pytest.mark.parametrize("scores_first", [True, False])
def test_ssd(with_anchors, scores_first):
    rng = np.random.default_rng(6)
    anchors = np.concatenate([rng.uniform(0.1, 0.9, (200, 2)), rng.uniform(0.05, 0.3, (200, 2))], axis=1)
    codes = rng.normal(0, 1, (1, 200, 4)).astype(np.float32)
    logits = rng.normal(0, 2, (1, 200, 6))
    probabilities = (np.exp(logits) / np.exp(logits).sum(2, keepdims=True)).astype(np.float32)
    boxes, scores, ids = [], [], []
    for anchor, code, row in zip(anchors, codes[0].astype(float), probabilities[0].astype(float), strict=True):
        if with_anchors:
            cx, cy = anchor[:2] + code[:2] * 0.1 * anchor[2:]
            w, h = anchor[2:] * np.exp(code[2:] * 0.2)
            box = [cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2]
        else:
            box = code.tolist()
        for c in range(1, 6):
            if row[c] >= 0.4:
                boxes.append(np.array(box) * [320, 320, 320, 320])
                scores.append(row[c])
                ids.append(c - 1)
    flat = tuple(anchors.astype(np.float32).ravel().tolist()) if with_anchors else ()
    spec = PostprocessSpec("detect", "ssd", score_threshold=0.4, anchors=flat)
    arrays = (probabilities, codes) if scores_first else (codes, probabilities)
    check(run(spec, *arrays), np.array(boxes), scores, ids)


def test_boxes_come_back_in_source_pixels_and_with_names():
    array = np.zeros((1, 6, 3), np.float32)
    array[0, :, 1] = [320, 320, 100, 50, 0.1, 0.9]
    transform = FrameTransform((720, 1280), (640, 640), (0.5, 0.5), (0, 140))
    result = run(PostprocessSpec("detect", "yolov8"), array, transform=transform, labels=("cat", "dog"))
    assert result.labels == ["dog"]
    np.testing.assert_allclose(result.boxes_xyxy_px, [[540, 310, 740, 410]])
    assert result.to_dict()["detections"][0]["label"] == "dog"


def test_labels_fall_back_to_numbers():
    array = np.zeros((1, 8, 1), np.float32)
    array[0, 7] = 1
    assert run(PostprocessSpec("detect", "yolov8"), array, labels=("only",)).labels == ["3"]


def test_conversion_to_supervision():
    pytest.importorskip("supervision")
    array = np.zeros((1, 6, 1), np.float32)
    array[0, :, 0] = [100, 100, 20, 20, 0.1, 0.9]
    converted = run(PostprocessSpec("detect", "yolov8"), array, labels=("cat", "dog")).to_supervision()
    assert converted.data["class_name"].tolist() == ["dog"]
    assert converted.xyxy.tolist() == [[90, 90, 110, 110]]


@pytest.mark.parametrize(
    ("spec", "arrays"),
    [
        (PostprocessSpec("detect", "yolov8"), [np.zeros((1, 4, 10), np.float32)]),
        (PostprocessSpec("detect", "yolov8"), [np.zeros((2, 8, 10), np.float32)]),
        (PostprocessSpec("detect", "yolov8-heads"), [np.zeros((1, 64, 4, 4), np.float32)] * 3),
        (PostprocessSpec("detect", "yolov8-heads"), [np.zeros((1, 72, 4, 4), np.float32)] * 2),
        (PostprocessSpec("detect", "ssd"), [np.zeros((1, 10, 4), np.float32)]),
        (PostprocessSpec("detect", "yolov5"), [np.zeros((1, 10, 5), np.float32)]),
    ],
)
def test_outputs_of_another_form_are_one_line(spec, arrays):
    with pytest.raises(TensorError) as caught:
        run(spec, *arrays)
    assert "\n" not in str(caught.value)


def test_unknown_form():
    with pytest.raises(PackageError, match="yolov8-heads"):
        make_task(manifest(PostprocessSpec("detect", "yolov99"), []))


def test_no_box_at_all():
    result = run(PostprocessSpec("detect", "yolov8"), np.zeros((1, 8, 100), np.float32))
    assert len(result) == 0
    assert result.xyxy.shape == (0, 4)
