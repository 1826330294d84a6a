"""How long engines take from a file to their first result, and how much memory a process needs that does just that.

    python native/bench/first_result.py edgekit=A.ekpkg onnxruntime=A.onnx openvino=A.xml litert=A.tflite

Every measurement is a process of its own, and the engines take turns. Prints one JSON line an engine: medians of the
import, of the load, of the first run, of both together, and of the peak of resident memory (numpy included).
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

OF_ONE_PROCESS = "--of-one-process"  # what the children are called with: engine, file, threads


def noise(shape: tuple[int, ...], dtype: str) -> Any:
    """An input: never zeros, since some kernels are faster on zeros."""
    random = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        return random.random(shape, np.float32).astype(dtype)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype)


def import_edgekit() -> Any:
    """The packages' loader."""
    import edgekit

    edgekit.load  # noqa: B018 - imported when it is asked for
    return edgekit


def load_edgekit(edgekit: Any, file: str, threads: int) -> Callable[[], object]:
    """As applications load, without the run that warms up: the first result is what is timed."""
    model = edgekit.load(file, engine="native", threads=threads, warm_up=False)
    feeds = {spec.name: noise(spec.shape, spec.dtype) for spec in model.inputs}
    return lambda: model.run(feeds)


def import_onnxruntime() -> Any:
    """The library."""
    import onnxruntime

    return onnxruntime


def load_onnxruntime(onnxruntime: Any, file: str, threads: int) -> Callable[[], object]:
    """A session of the CPU provider."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    feeds = {each.name: noise(tuple(each.shape), "float32") for each in session.get_inputs()}
    return lambda: session.run(None, feeds)


def import_openvino() -> Any:
    """The library."""
    import openvino

    return openvino


def load_openvino(openvino: Any, file: str, threads: int) -> Callable[[], object]:
    """A model compiled for latency on the CPU, in one stream."""
    config = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads}
    request = openvino.Core().compile_model(file, "CPU", config).create_infer_request()
    shape = tuple(request.model_inputs[0].shape)
    request.set_input_tensor(0, openvino.Tensor(noise(shape, "float32")))
    return request.infer


def import_litert() -> Any:
    """The interpreter's class."""
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter


def load_litert(interpreter_class: Any, file: str, threads: int) -> Callable[[], object]:
    """An interpreter with XNNPACK."""
    interpreter = interpreter_class(file, num_threads=threads)
    interpreter.allocate_tensors()
    first = interpreter.get_input_details()[0]
    interpreter.set_tensor(first["index"], noise(tuple(first["shape"]), np.dtype(first["dtype"]).name))
    return lambda: interpreter.invoke()


ENGINES = {
    "edgekit": (import_edgekit, load_edgekit),
    "onnxruntime": (import_onnxruntime, load_onnxruntime),
    "openvino": (import_openvino, load_openvino),
    "litert": (import_litert, load_litert),
}


def of_one_process(engine: str, file: str, threads: int) -> dict[str, float]:
    """Imports, loads, runs once."""
    import_engine, load = ENGINES[engine]
    times = [time.perf_counter()]
    library = import_engine()
    times.append(time.perf_counter())
    run = load(library, file, threads)
    times.append(time.perf_counter())
    run()
    times.append(time.perf_counter())
    import_ms, load_ms, run_ms = ((end - begin) * 1e3 for begin, end in itertools.pairwise(times))
    status = Path("/proc/self/status").read_text()
    peak_kib = int(status.split("VmHWM:")[1].split()[0])
    return {
        "import_ms": import_ms,
        "load_ms": load_ms,
        "run_ms": run_ms,
        "first_result_ms": load_ms + run_ms,
        "peak_rss_mib": peak_kib / 1024,
    }


def main() -> None:
    """Starts the processes in turns, prints the medians."""
    import argparse

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("contestants", nargs="+", metavar="ENGINE=FILE", help=", ".join(ENGINES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    pairs = [contestant.partition("=")[::2] for contestant in args.contestants]
    if unknown := {engine for engine, _ in pairs} - ENGINES.keys():
        parser.error(f"unknown engine {min(unknown)!r}; there are {', '.join(ENGINES)}")
    results: dict[tuple[str, str], list[dict[str, float]]] = {pair: [] for pair in pairs}
    for _ in range(args.rounds):
        for (engine, file), found in results.items():
            words = [sys.executable, __file__, OF_ONE_PROCESS, engine, file, str(args.threads)]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
    for (engine, file), found in results.items():
        medians = {name: round(float(np.median([each[name] for each in found])), 2) for name in found[0]}
        print(json.dumps({"engine": engine, "file": Path(file).name, **medians}))


if __name__ == "__main__":
    if sys.argv[1:2] == [OF_ONE_PROCESS]:
        print(json.dumps(of_one_process(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        main()
