import numpy as np
import pytest

from edgekit.cli.demo.clip import CLASS_NAMES, scenes
from edgekit.cli.demo.scoring import AveragePrecision, box_iou

pytest.importorskip("PIL")


def test_same_seed_same_clip_and_boxes_lie_in_the_picture():
    first, again, other = (list(scenes(seed, 3, (120, 160))) for seed in (5, 5, 6))
    for a, b in zip(first, again, strict=True):
        assert np.array_equal(a.image_hwc, b.image_hwc)
        assert np.array_equal(a.boxes_xyxy_px, b.boxes_xyxy_px)
    assert not np.array_equal(first[0].image_hwc, other[0].image_hwc)
    for scene in first:
        assert scene.image_hwc.shape == (120, 160, 3) and scene.image_hwc.dtype == np.uint8
        assert (scene.boxes_xyxy_px[:, :2] >= 0).all()
        assert (scene.boxes_xyxy_px[:, 2:] <= (160, 120)).all()
        assert (scene.boxes_xyxy_px[:, 2:] > scene.boxes_xyxy_px[:, :2]).all()
        assert set(scene.class_ids.tolist()) <= set(range(len(CLASS_NAMES)))


def test_objects_move():
    clip = list(scenes(1, 20, (240, 320)))
    assert np.abs(clip[0].boxes_xyxy_px[0] - clip[-1].boxes_xyxy_px[0]).max() > 2


BOXES = np.array([[0, 0, 10, 10], [20, 20, 40, 40]], np.float32)
IDS = np.array([1, 2])


def test_overlap_of_known_boxes():
    other = np.array([[0, 0, 10, 5], [100, 100, 110, 110]], np.float32)
    assert box_iou(BOXES[:1], other)[0] == pytest.approx([0.5, 0.0])


def test_perfect_detections_score_one_and_wrong_classes_zero():
    right, wrong = AveragePrecision(), AveragePrecision()
    right.add(BOXES, np.array([0.9, 0.8], np.float32), IDS, BOXES, IDS)
    wrong.add(BOXES, np.array([0.9, 0.8], np.float32), IDS[::-1], BOXES, IDS)
    assert right.value() == 1.0
    assert wrong.value() == 0.0


def test_a_false_alarm_above_the_truth_halves_the_precision():
    precision = AveragePrecision()
    boxes = np.array([[100, 100, 110, 110], [0, 0, 10, 10]], np.float32)
    precision.add(boxes, np.array([0.9, 0.5], np.float32), np.array([1, 1]), BOXES[:1], IDS[:1])
    assert precision.value() == pytest.approx(0.5)


def test_a_second_box_on_the_same_object_is_false():
    precision = AveragePrecision()
    precision.add(
        BOXES[[0, 0]],
        np.array([0.9, 0.8], np.float32),
        np.array([1, 1]),
        BOXES[[0, 0]] + [0, 0, 0, 0],
        np.array([1, 1]),
    )
    assert precision.value() == 1.0
    single = AveragePrecision()
    single.add(BOXES[[0, 0]], np.array([0.9, 0.8], np.float32), np.array([1, 1]), BOXES[:1], IDS[:1])
    assert single.value() == 1.0  # the duplicate comes after full recall
