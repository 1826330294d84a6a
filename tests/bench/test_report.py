import json

import numpy as np

from edgekit.bench.report import Row, as_json, layer_rows
from edgekit.bench.roofline import Peaks, classify, short_name
from edgekit.bench.scenarios import Measurement
from edgekit.engines.base import LayerTime


def measurement(count):
    return Measurement("single-stream", np.linspace(1.0, 2.0, count), count * 1.5e-3, count * 1e-3, 1, 15, True)


def test_rows_have_the_fields_of_google_benchmark_and_ours_nested():
    rows = [Row("net", "native", "x86_avx2", 1, measurement(100), index) for index in range(2)]
    document = json.loads(json.dumps(as_json(rows, repetitions=2)))
    assert set(document) == {"context", "benchmarks"}
    assert {"date", "num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "caches", "load_avg"} <= set(document["context"])
    first, second = document["benchmarks"]
    assert first["name"] == second["run_name"] == "net/native/single-stream/threads:1"
    assert (first["repetition_index"], second["repetition_index"], first["repetitions"]) == (0, 1, 2)
    assert first["run_type"] == "iteration" and first["time_unit"] == "ms" and first["iterations"] == 100
    assert abs(first["real_time"] - 1.5) < 1e-9 and abs(first["cpu_time"] - 1.0) < 1e-9
    ours = first["edgekit"]
    assert ours["latency_ns"]["p50"] == 1_494_949 and ours["latency_ns"]["p99"] is None
    assert {"stages", "memory", "engine", "isa"} <= set(ours)


def test_layers_keep_their_full_names_in_json_and_short_ones_in_tables():
    bound = classify(LayerTime("a/Conv+a/Relu+a/Add", "conv_q8", "k", 10.0, 1_000_000, 100), Peaks(100.0, 50.0, 10.0))
    (row,) = layer_rows([bound])
    assert row["name"] == "a/Conv+a/Relu+a/Add" and row["bound"] == "compute"
    assert short_name(row["name"]) == "a/Conv +2"
    assert short_name("Softmax") == "Softmax"
