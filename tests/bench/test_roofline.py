import pytest

from edgekit.bench.diagnosis import diagnose
from edgekit.bench.roofline import Peaks, classify
from edgekit.engines.base import LayerTime

PEAKS = Peaks(int8_gmac_s=100.0, fp32_gmac_s=25.0, read_gb_s=10.0)


def layer(name="l", op="conv_q8", time_us=1000.0, macs=0, bytes_moved=0):
    return LayerTime(name, op, "", time_us, macs, bytes_moved)


def test_arithmetic_bound_layer():
    bound = classify(layer(macs=90_000_000, bytes_moved=1_000_000), PEAKS)
    assert bound.bound == "compute"
    assert bound.compute_us == pytest.approx(900.0)
    assert bound.memory_us == pytest.approx(100.0)
    assert bound.roofline_share == pytest.approx(0.9)


def test_float_layers_are_held_against_the_float_peak():
    assert classify(layer(op="conv_f32", macs=10_000_000), PEAKS).compute_us == pytest.approx(400.0)


def test_traffic_bound_and_overhead_layers():
    assert classify(layer(bytes_moved=8_000_000), PEAKS).bound == "memory"
    assert classify(layer(macs=1_000_000), PEAKS).bound == "overhead"
    assert classify(layer(), PEAKS).bound == "unknown"


def test_diagnosis_names_the_longest_layers_and_the_greatest_share_first():
    layers = [
        classify(layer("a", time_us=300.0, macs=29_000_000), PEAKS),
        classify(layer("b", time_us=700.0, bytes_moved=6_000_000), PEAKS),
    ]
    findings = diagnose(layers, {})
    assert [finding.cause for finding in findings] == ["memory", "compute"]
    assert "b" in findings[0].text and "70%" in findings[0].text


def test_only_what_is_still_float_is_to_be_quantized():
    int8 = [
        classify(layer(f"int8 {index}", op="conv_q8", time_us=500.0 + index, macs=index % 2 * 60_000_000,
                       bytes_moved=4_000_000), PEAKS)
        for index in range(6)
    ]  # fmt: skip
    in_float = [
        classify(layer("float memory", op="conv_f32", time_us=400.0, bytes_moved=3_000_000), PEAKS),
        classify(layer("float compute", op="conv_f32", time_us=400.0, macs=9_000_000), PEAKS),
    ]
    for found in diagnose(int8, {}):
        assert found.cause in ("memory", "compute") and "quantize" not in found.advice and "int8" not in found.advice
    for found in diagnose(int8 + in_float, {}):
        if found.cause in ("memory", "compute"):
            assert f"what is still float: float {found.cause};" in found.advice and "int8" not in found.advice


def test_where_all_is_float_no_layer_is_singled_out():
    layers = [classify(layer(name, op="conv_f32", time_us=400.0, bytes_moved=3_000_000), PEAKS) for name in "ab"]
    (found,) = diagnose(layers, {})
    assert found.advice.startswith("quantize to INT8 (a quarter of the traffic), then ")


def test_stages_outside_inference_are_named_when_they_matter():
    findings = diagnose([], {"capture": 1.0, "preprocess": 30.0, "infer": 20.0, "postprocess": 1.0})
    assert [finding.cause for finding in findings] == ["preprocess"]
    assert findings[0].share == pytest.approx(30 / 52)
