"""Figures against plain numpy, parts of mixed outputs, agreement by task, the gate, coverage and the report."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from edgekit.converters.contracts import LayerAudit, LayerPlan
from edgekit.converters.passes.shapes import infer_shapes
from edgekit.converters.verify.accuracy import CAP_DB, Part, PartAccuracy, compare, sqnr_of
from edgekit.converters.verify.agreement import Agreement, edit_distance, overlap
from edgekit.converters.verify.audit import audit, check_overrides
from edgekit.converters.verify.gate import check_gate
from edgekit.converters.verify.parts import parts_of
from edgekit.converters.verify.report import REPORT_FORMAT, EngineReport, Report, parse_report, report_json
from edgekit.converters.verify.report_html import report_html
from edgekit.errors import InternalError
from edgekit.package.specs import PostprocessSpec, TensorSpec


def figures(references, candidates, part=None) -> PartAccuracy:
    part = part or Part("y", "y")
    pairs = iter(zip(references, candidates, strict=True))
    current = {}

    def reference(feeds):
        current["a"], current["b"] = next(pairs)
        return {"y": current["a"]}

    samples = [{}] * len(references)
    names = [f"s{i}" for i in range(len(references))]
    return compare(reference, lambda feeds: {"y": current["b"]}, samples, names, [part])[0]


def test_figures_equal_their_definitions():
    rng = np.random.default_rng(0)
    a = [rng.normal(size=(1, 50)).astype(np.float32) for _ in range(5)]
    b = [
        x + rng.normal(size=x.shape).astype(np.float32) * scale
        for x, scale in zip(a, (0.1, 0.01, 0.5, 0.1, 0.1), strict=True)
    ]
    got = figures(a, b)
    flat_a, flat_b = np.concatenate(a, 1).astype(np.float64).ravel(), np.concatenate(b, 1).astype(np.float64).ravel()
    assert got.sqnr_db == pytest.approx(10 * np.log10((flat_a**2).sum() / ((flat_a - flat_b) ** 2).sum()))
    assert got.cosine == pytest.approx(flat_a @ flat_b / np.linalg.norm(flat_a) / np.linalg.norm(flat_b))
    assert got.max_abs == pytest.approx(np.abs(flat_a - flat_b).max())
    assert got.worst_sample == "s2"
    each = [sqnr_of(x, y) for x, y in zip(a, b, strict=True)]
    assert got.worst_sqnr_db == pytest.approx(min(each))
    assert got.p99_sqnr_db == pytest.approx(np.quantile(each, 0.01))
    assert got.samples == 5


def test_equal_and_broken_outputs_stay_finite():
    ones = np.ones((1, 4), np.float32)
    assert figures([ones], [ones]).sqnr_db == CAP_DB
    broken = figures([ones], [np.full((1, 4), np.nan, np.float32)])
    assert broken.sqnr_db == -CAP_DB
    assert all(np.isfinite(v) for v in msgspec.to_builtins(broken).values() if isinstance(v, float))


def test_infinities_of_the_float_model_are_no_error():
    array = np.array([[1.0, -np.inf, np.nan, 2.0]], np.float32)
    near = np.array([[1.1, -np.inf, np.nan, 2.0]], np.float32)
    assert figures([array], [array]).sqnr_db == CAP_DB
    assert figures([array], [near]).sqnr_db == pytest.approx(10 * np.log10(5 / 0.01), abs=0.01)
    assert figures([array], [np.ones_like(array)]).sqnr_db == -CAP_DB


def test_boxes_do_not_hide_the_scores():
    """Fault "all detection scores 0 after int8: one scale for boxes and scores"."""
    output = np.concatenate([np.full((1, 4, 10), 300.0), np.full((1, 2, 10), 0.9)], 1).astype(np.float32)
    broken = output.copy()
    broken[:, 4:] = 0
    whole = figures([output], [broken])
    assert whole.sqnr_db > 40
    scores = figures([output], [broken], Part("y/scores", "y", 1, 4, 6))
    assert scores.sqnr_db == pytest.approx(0.0)
    assert check_gate("native", [scores], None, "int8", None) is not None


def test_parts_by_form_and_by_concat(build):
    spec = TensorSpec("y", "float32", (1, 12, 100))
    text = """g (float[1,4,100] a, float[1,8,100] b) => (float[1,12,100] y)
        { s = Sigmoid (b) y = Concat <axis = 1> (a, s) }"""
    model = build(text)
    infer_shapes(model)
    declared = parts_of(model, [spec], PostprocessSpec(task="detect", form="yolov8"))
    assert [(p.name, p.start, p.stop) for p in declared] == [("y/boxes", 0, 4), ("y/scores", 4, 12)]
    found = parts_of(model, [spec], PostprocessSpec())
    assert [(p.name, p.axis, p.start, p.stop) for p in found] == [("y/0", 1, 0, 4), ("y/1", 1, 4, 12)]


def agreement(spec: PostprocessSpec, expected: np.ndarray, got: np.ndarray) -> float | None:
    counter = Agreement(spec)
    counter.observe({"y": expected}, {"y": got})
    return counter.result(())


def test_agreement_of_classes_and_text():
    classify = PostprocessSpec(task="classify", form="logits")
    logits = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    assert agreement(classify, logits, logits) == 100
    assert agreement(classify, logits, logits[::-1]) == 0
    ctc = PostprocessSpec(task="text-recognize", form="ctc")
    steps = np.eye(4)[[1, 1, 0, 1, 2, 3]][None]
    other = np.eye(4)[[1, 1, 0, 1, 2, 2]][None]
    assert agreement(ctc, steps, steps) == 100
    assert agreement(ctc, steps, other) == pytest.approx(75)


def test_agreement_of_detections_and_masks():
    detect = PostprocessSpec(task="detect", form="yolov8", score_threshold=0.25)
    output = np.zeros((1, 6, 4))
    output[0, :4] = np.array([[50, 50, 20, 20], [100, 100, 20, 20], [10, 10, 5, 5], [1, 1, 1, 1]]).T
    output[0, 4] = [0.9, 0.1, 0.8, 0.0]
    moved = output.copy()
    moved[0, 0, 0] += 30
    assert agreement(detect, output, output) == 100
    assert agreement(detect, output, moved) == pytest.approx(50)
    assert agreement(detect, output * 0, output * 0) is None
    near = output.copy()
    near[0, 4] = [0.24, 0.1, 0.26, 0.0]
    assert agreement(detect, output, near) == 100
    near[0, 4, 0] = 0.1
    assert agreement(detect, output, near) == pytest.approx(100 * 2 / 3)
    mask = PostprocessSpec(task="text-detect", form="dbnet", score_threshold=0.3)
    a = np.array([[[[0.9, 0.9, 0.0, 0.0]]]])
    b = np.array([[[[0.9, 0.0, 0.9, 0.0]]]])
    assert agreement(mask, a, b) == pytest.approx(50)


def test_distance_and_overlap():
    assert edit_distance([1, 2, 3], [1, 3]) == 1
    assert edit_distance([], [1, 2]) == 2
    boxes = np.array([[5.0, 5, 10, 10], [0, 0, 0, 0]])
    assert overlap(boxes, boxes + np.array([5, 0, 0, 0])).tolist() == pytest.approx([1 / 3, 0.0])


def part(sqnr_db: float, cosine: float = 0.999, high: float = 1.0) -> PartAccuracy:
    return PartAccuracy("y", 5, sqnr_db, cosine, 0.1, 0.01, 0.0, high, "s0", sqnr_db, sqnr_db)


def test_gate_floors_and_drop():
    assert check_gate("native", [part(30)], None, "int8", None) is None
    assert "5.0 dB" in check_gate("native", [part(5)], None, "int8", None)
    assert "cosine" in check_gate("native", [part(30, 0.5)], None, "int8", None)
    assert check_gate("native", [part(25)], None, "fp32", None) is not None
    silent = part(-200, 0.0, high=0.0)
    assert "zeros" in check_gate("native", [silent], None, "int8", None)
    assert check_gate("native", [msgspec.structs.replace(silent, max_abs=1e-5)], None, "int8", None) is None
    assert check_gate("native", [part(5)], 99.5, "int8", 1.0) is None
    assert "drop of 2.00" in check_gate("native", [part(30)], 98.0, "int8", 1.0)


def test_coverage_and_overrides():
    layers = [
        LayerAudit("a", "conv_q8", 900, "int8", "int8"),
        LayerAudit("b+c", "conv_f32", 100, "int8", "fp32", "native", "bias overflows"),
        LayerAudit("d", "NonZero", 0, "fp32", "fp32", "onnxruntime", "not in the core"),
        LayerAudit("e", "copy", 0, "int", "int8"),
    ]
    coverage = audit(layers)
    assert coverage.int8_macs_share == pytest.approx(0.9)
    assert coverage.onnxruntime_layers == ("d",)
    assert [(row.name, row.reason) for row in coverage.differing] == [("b+c", "bias overflows")]
    check_overrides(layers, [LayerPlan("b", "Conv", "fp32")], ["b"])
    with pytest.raises(InternalError, match="a"):
        check_overrides(layers, [], ["a"])
    with pytest.raises(InternalError, match="planned"):
        check_overrides([], [LayerPlan("x", "Conv", "int8")], ["x"])


def test_report_comes_back_and_its_page_needs_nothing_else():
    engine = EngineReport("native-x", "native", "x", 5, (part(30),), 99.0, 1.5, 2, 1000, {"arena": 5})
    coverage = audit([LayerAudit("<script>", "conv_q8", 9, "int8", "int8")])
    report = Report(
        REPORT_FORMAT, "0.1", "m & m.onnx", "0" * 64, "p", "x", "int8", 8, 5, 2.0, (), (), coverage, (engine,),
        {"arena_bytes": 5.0}, ("a note",),
    )  # fmt: skip
    assert parse_report(report_json(report)) == report
    page = report_html(report).decode()
    assert "<script" not in page
    assert "http" not in page
    assert "m &amp; m.onnx" in page
    assert "native-x" in page
