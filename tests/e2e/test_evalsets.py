"""Accuracy of INT8 packages on real models with data: the native engine against the float model in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from e2e.evalsets import ROOT, evaluator, save_samples

import edgekit
from edgekit.converters.pipeline import ConvertOptions, convert

SAMPLES = 100
LINE_WIDTHS = (320, 480, 640, 960, 1280)


def converted(folder, model, device="this-machine", **options):
    """Converts to INT8; returns the package's path."""
    output = folder / f"{model.stem}-{device}.ekpkg"
    convert(ConvertOptions(model=model, output=output, device=device, precision="int8", max_samples=SAMPLES, **options))
    return output


def predictor(model):
    """The package as the evaluators call it; inputs narrower than the next shape bucket are padded with zeros."""
    name = model.manifest.inputs[0].name
    widths = sorted({shape[-1] for shape in _shapes(model)})

    def predict(x):
        return list(model.run({name: padded(x, widths)}).values())

    return predict


def padded(x, widths):
    """Pads a line with zeros on the right to the next of some widths, as the preprocessing does."""
    if x.shape[-1] in widths:
        return x
    wider = next(width for width in widths if width >= x.shape[-1])
    return np.pad(x, [(0, 0), (0, 0), (0, 0), (0, wider - x.shape[-1])])


def _shapes(model):
    spec = model.manifest.inputs[0]
    buckets = model.manifest.buckets or ({},)
    return [tuple(bucket.get(dim, dim) for dim in spec.shape) for bucket in buckets]


def losses(evaluate, package, float_predict, **kwargs):
    """Points lost against float on the dev split, and the float figure."""
    with edgekit.load(package, engine="native", threads=2) as model:
        assert model.engine_name == "native"
        assert model.variant.int8_macs_share > 0.5
        candidate = evaluate(predictor(model), "dev", **kwargs)
    reference = evaluate(float_predict, "dev", **kwargs)
    lost = 100 * (reference.metric() - candidate.metric())
    print(f"{reference.task} {reference.primary}: float {100 * reference.metric():.1f}, INT8 loses {lost:.1f} points")
    return lost


def float_model(path):
    from harness.contract import onnx_predict

    return onnx_predict(path)


def slow(name):
    """Slower than a CI run should be; run with --nightly."""
    return pytest.param(name, marks=pytest.mark.nightly)


@pytest.mark.parametrize("name", ["shapes_det", slow("shapes_det_heads")])
def test_shapes_detector_loses_at_most_one_and_a_half_points(name, tmp_path):
    shapes = evaluator("eval_shapes", "skimage", "sklearn", "PIL")
    model = ROOT / "models" / f"{name}.onnx"
    calib = save_samples(tmp_path / "calib", "images", shapes.inputs("calib", SAMPLES))
    package = converted(tmp_path, model, calibration=str(calib))
    assert losses(shapes.evaluate, package, float_model(model)) <= 1.5


@pytest.mark.parametrize("name", ["elpv_mobilenet_v2", slow("elpv_resnet_silu")])
def test_solar_cell_classifiers_lose_at_most_one_point(name, tmp_path):
    elpv = evaluator("eval_elpv", "elpv_dataset")
    model = ROOT / "models" / f"{name}.onnx"
    calib = save_samples(tmp_path / "calib", input_name(model), elpv.inputs("calib", SAMPLES))
    package = converted(tmp_path, model, calibration=str(calib))
    assert losses(elpv.evaluate, package, float_model(model)) <= 1.0


def test_text_recognition_loses_at_most_three_points(tmp_path):
    recognition = evaluator("eval_ocr_rec", "rapidocr_onnxruntime", "PIL")
    from ocr.paddle_models import RECOGNITION, model_path

    model = model_path(RECOGNITION)
    lines = (padded(x, LINE_WIDTHS) for x in recognition.inputs("calib", SAMPLES))
    calib = save_samples(tmp_path / "calib", "x", lines)
    shapes = tuple(f"x=1x3x48x{width}" for width in LINE_WIDTHS)
    package = converted(tmp_path, model, calibration=str(calib), shapes=shapes)
    assert losses(recognition.evaluate, package, float_model(model)) <= 3.0


@pytest.mark.nightly
def test_text_detection_loses_at_most_one_and_a_half_points(tmp_path):
    detection = evaluator("eval_ocr_det", "rapidocr_onnxruntime", "scipy", "PIL")
    from ocr.paddle_models import DETECTION, model_path

    model = model_path(DETECTION)
    calib = save_samples(tmp_path / "calib", "x", detection.inputs("calib", 40))
    shapes = ("x=1x3x736x736", "x=1x3x736x992", "x=1x3x992x736")
    package = converted(tmp_path, model, calibration=str(calib), shapes=shapes)
    assert losses(detection.evaluate, package, float_model(model)) <= 1.5


def input_name(model):
    import onnxruntime

    return onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).get_inputs()[0].name
