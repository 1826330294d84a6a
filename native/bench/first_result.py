"""How long engines take from a file to their first result, and how much memory a process needs that does just that.

    python native/bench/first_result.py edgekit=A.ekpkg onnxruntime=A.onnx openvino=A.xml litert=A.tflite

Every measurement is a process of its own, and the engines take turns, once without being counted: files are then in
the page cache, and Python's modules compiled, as in any process of an application but its very first. Prints one JSON
line an engine: medians of the import, of the load, of the first run, of both together, and of the peak of resident
memory (numpy included).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

OF_ONE_PROCESS = "--of-one-process"  # what the children are called with: engine, file, threads


Inputs = dict[str, tuple[tuple[int, ...], str]]  # shape and dtype by name
Run = Callable[[dict[str, Any]], object]


def import_edgekit() -> Any:
    """The package with its loader, which comes when it is asked for."""
    import edgekit

    edgekit.load  # noqa: B018
    return edgekit


def load_edgekit(edgekit: Any, file: str, threads: int) -> tuple[Inputs, Run]:
    """As applications load, without the run that warms up: the first result is what is timed."""
    model = edgekit.load(file, engine="native", threads=threads, warm_up=False)
    return {spec.name: (spec.shape, spec.dtype) for spec in model.inputs}, model.run


def import_onnxruntime() -> Any:
    """The library."""
    import onnxruntime

    return onnxruntime


def load_onnxruntime(onnxruntime: Any, file: str, threads: int) -> tuple[Inputs, Run]:
    """A session of the CPU provider."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    inputs = {each.name: (tuple(each.shape), "float32") for each in session.get_inputs()}
    return inputs, lambda feeds: session.run(None, feeds)


def import_openvino() -> Any:
    """The library."""
    import openvino

    return openvino


def load_openvino(openvino: Any, file: str, threads: int) -> tuple[Inputs, Run]:
    """A model compiled for latency on the CPU, in one stream."""
    config = {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads}
    request = openvino.Core().compile_model(file, "CPU", config).create_infer_request()
    inputs = {port.any_name: (tuple(port.shape), "float32") for port in request.model_inputs}
    return inputs, request.infer


def import_litert() -> Any:
    """The interpreter's class."""
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter


def load_litert(interpreter_class: Any, file: str, threads: int) -> tuple[Inputs, Run]:
    """An interpreter with XNNPACK."""
    interpreter = interpreter_class(file, num_threads=threads)
    interpreter.allocate_tensors()
    details = {each["name"]: each for each in interpreter.get_input_details()}

    def run(feeds: dict[str, Any]) -> None:
        for name, values in feeds.items():
            interpreter.set_tensor(details[name]["index"], values)
        interpreter.invoke()

    return {name: (tuple(each["shape"]), np.dtype(each["dtype"]).name) for name, each in details.items()}, run


ENGINES = {
    "edgekit": (import_edgekit, load_edgekit),
    "onnxruntime": (import_onnxruntime, load_onnxruntime),
    "openvino": (import_openvino, load_openvino),
    "litert": (import_litert, load_litert),
}


def noise(inputs: Inputs) -> dict[str, Any]:
    """Values for all inputs: never zeros, since some kernels are faster on zeros."""
    random = np.random.default_rng(0)
    feeds: dict[str, Any] = {}
    for name, (shape, dtype) in inputs.items():
        is_float = np.dtype(dtype).kind == "f"
        feeds[name] = (random.random(shape) if is_float else random.integers(-100, 101, shape)).astype(dtype)
    return feeds


def of_one_process(engine: str, file: str, threads: int) -> dict[str, float]:
    """Imports, loads, runs once. Inputs are made in between, which counts for none of these."""
    import_engine, load = ENGINES[engine]
    start = time.perf_counter()
    library = import_engine()
    imported = time.perf_counter()
    inputs, run = load(library, file, threads)
    loaded = time.perf_counter()
    feeds = noise(inputs)
    ready = time.perf_counter()
    run(feeds)
    end = time.perf_counter()
    status = Path("/proc/self/status").read_text()
    return {
        "import_ms": (imported - start) * 1e3,
        "load_ms": (loaded - imported) * 1e3,
        "run_ms": (end - ready) * 1e3,
        "first_result_ms": (loaded - imported + end - ready) * 1e3,
        "peak_rss_mib": int(status.split("VmHWM:")[1].split()[0]) / 1024,
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
    # Without compiled modules every import would count the compiler.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for counted in [False, *[True] * args.rounds]:
        for (engine, file), found in results.items():
            words = [sys.executable, __file__, OF_ONE_PROCESS, engine, file, str(args.threads)]
            done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
            if done.returncode != 0:
                parser.exit(1, f"{engine} {file}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}\n")
            if counted:
                found.append(json.loads(done.stdout.splitlines()[-1]))
    for (engine, file), found in results.items():
        medians = {name: round(float(np.median([each[name] for each in found])), 2) for name in found[0]}
        print(json.dumps({"engine": engine, "file": Path(file).name, **medians}))


if __name__ == "__main__":
    if sys.argv[1:2] == [OF_ONE_PROCESS]:
        print(json.dumps(of_one_process(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        main()
