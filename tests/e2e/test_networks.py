"""Five well-known networks with random weights: native INT8 against simulated quantization and against float."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import edgekit
from edgekit.converters import pipeline
from edgekit.converters.emitters.onnx_qdq import QdqOptions, emit_onnx
from edgekit.converters.pipeline import ConvertOptions, convert

ROOT = Path(__file__).resolve().parents[3] / "shared" / "peerbench"
NETS = (
    "mobilenetv2",
    pytest.param("effnetlite0", marks=pytest.mark.nightly),
    pytest.param("resnet18", marks=pytest.mark.nightly),
    pytest.param("resnet50", marks=pytest.mark.nightly),
    "yolov8n",
)
# What ONNX Runtime's own INT8 (static QDQ, u8 activations, s8 weights per channel) reached in the engine race on a CPU
# with AVX2 alone, where its products may saturate: a floor, not the best that its models can do.
ORT_INT8_DB = {"mobilenetv2": 20.0, "effnetlite0": 22.0, "resnet18": 31.0, "resnet50": 33.0, "yolov8n": 15.0}


def sqnr_db(reference, got):
    """Signal-to-noise ratio of an output, its mean along the last axis taken out as the race does."""
    signal = np.square(reference - reference.mean(-1, keepdims=True), dtype=np.float64).sum()
    noise = np.square(reference - got, dtype=np.float64).sum()
    return 10 * np.log10(signal / max(noise, signal * 1e-12))


def simulated(model_bytes, feeds):
    """Runs a QDQ model in float32, every Q and DQ as written: ONNX Runtime without graph optimisation."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model_bytes, options, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


@pytest.fixture(scope="module")
def nets():
    for package in ("cv2", "onnx"):
        pytest.importorskip(package)
    if not ROOT.is_dir():
        pytest.skip("peerbench is not here")
    sys.path.append(str(ROOT))
    return importlib.import_module("nets")


@pytest.mark.parametrize("name", NETS)
def test_native_int8_equals_simulated_quantization(name, nets, tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx")
    model, _ = nets.build(name)
    path = tmp_path / f"{name}.onnx"
    onnx.save(model, str(path))
    rng = np.random.default_rng(0)
    samples = np.concatenate([nets.random_input(name, rng) for _ in range(9)])
    np.savez(tmp_path / "calibration.npz", images=samples[:8])
    canonical = {}
    original = pipeline.quantize

    def keep(model, calibration, options):
        quantized = original(model, calibration, options)
        canonical["model"] = quantized.model
        return quantized

    monkeypatch.setattr(pipeline, "quantize", keep)
    output = tmp_path / f"{name}.ekpkg"
    convert(
        ConvertOptions(
            model=path,
            output=output,
            precision="int8",
            calibration=str(tmp_path / "calibration.npz"),
            engines=("native",),
        )
    )
    feeds = {"images": samples[8:]}
    results = []
    for threads in (1, 2):
        with edgekit.load(output, engine="native", threads=threads) as loaded:
            results.append(next(iter(loaded.run(feeds).values())))
    assert np.array_equal(*results), "one and two threads differ"
    reference = simulated(emit_onnx(canonical["model"], QdqOptions("s8", seven_bit_weights=False)), feeds)
    floats = simulated(path.read_bytes(), feeds)
    # Signal to noise of the whole output. The scores of the random yolov8n alone are no measure of exactness: one
    # rounding in 100,000 that falls the other way in float32 sums grows to 20 dB on its way through 60 layers.
    close, to_float = sqnr_db(reference, results[0]), sqnr_db(floats[scores(name)], results[0][scores(name)])
    print(f"{name}: {close:.1f} dB to simulated quantization, {to_float:.1f} dB to float")
    assert close >= 30.0
    assert to_float >= ORT_INT8_DB[name]


def scores(name):
    """What the race compares with float: the scores of YOLO, as its boxes are mostly the grid; otherwise everything."""
    return (slice(None), slice(4, None)) if name == "yolov8n" else ()
