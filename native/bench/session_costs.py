"""What a session costs besides its arithmetic: CPU time while idle, models chained, denormal weights.

    python native/bench/session_costs.py idle A.ekpkg
    python native/bench/session_costs.py chain A.ekpkg B.ekpkg C.ekpkg
    python native/bench/session_costs.py denormals model.onnx

idle: CPU seconds of the process in the two seconds after a run. chain: the time of the models one after the other
against the sum of their times alone. denormals: the float program with all its products' weights times 1e-39 against
the float program. All on --threads threads; ratios are medians over interleaved rounds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import edgekit

ROUNDS = 15
RUNS = 8  # of each in a round
SETTLE_S = 0.1


def timed_ms(run: Callable[[], object]) -> float:
    """Milliseconds of one call, the mean over a round."""
    start = time.perf_counter()
    for _ in range(RUNS):
        run()
    return (time.perf_counter() - start) * 1e3 / RUNS


def runner(model: edgekit.Model) -> Callable[[], object]:
    """A call that runs the model once."""
    feeds = model.example_feeds()
    session = model.compiled.create_session()
    return lambda: session.run(feeds)


def idle(paths: list[Path], threads: int) -> dict[str, float]:
    """CPU seconds after a run."""
    with edgekit.load(paths[0], engine="native", threads=threads) as model:
        run = runner(model)
        timed_ms(run)
        before = time.process_time()
        time.sleep(2.0)
        return {"cpu_ms_in_2_s": (time.process_time() - before) * 1e3}


def chain(paths: list[Path], threads: int) -> dict[str, float]:
    """Models in series against the sum of their times alone."""
    runs = [runner(edgekit.load(path, engine="native", threads=threads)) for path in paths]

    def series() -> None:
        for run in runs:
            run()

    ratios = []
    for _ in range(ROUNDS):
        alone = []
        for run in runs:
            time.sleep(SETTLE_S)
            run()
            alone.append(timed_ms(run))
        time.sleep(SETTLE_S)
        series()
        ratios.append(timed_ms(series) / sum(alone))
    return {"chained_over_sum": float(np.median(ratios))}


def denormals(paths: list[Path], threads: int) -> dict[str, float]:
    """Weights around 1e-39 against those of the model."""
    import onnx
    from onnx import numpy_helper

    from edgekit.converters.pipeline import ConvertOptions, convert

    with tempfile.TemporaryDirectory() as folder:
        network = onnx.load(paths[0])
        onnx.save(network, Path(folder) / "normal.onnx")
        for tensor in network.graph.initializer:
            values = numpy_helper.to_array(tensor)
            if values.ndim >= 2 and values.dtype == np.float32:
                scaled = (values / np.abs(values).max() * 1e-39).astype(np.float32)
                tensor.CopyFrom(numpy_helper.from_array(scaled, tensor.name))
        onnx.save(network, Path(folder) / "denormal.onnx")
        runs = []
        for name in ("normal", "denormal"):
            package = Path(folder) / f"{name}.ekpkg"
            model = Path(folder) / f"{name}.onnx"
            options = ConvertOptions(model=model, output=package, precision="fp32", engines=("native",))
            convert(options)
            runs.append(runner(edgekit.load(package, engine="native", threads=threads)))
        ratios = []
        for _ in range(ROUNDS):
            normal, denormal = (timed_ms(run) for run in runs)
            ratios.append(denormal / normal)
    return {"denormal_over_normal": float(np.median(ratios))}


def main() -> None:
    """Measures one of them, prints one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("idle", "chain", "denormals"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    measure = {"idle": idle, "chain": chain, "denormals": denormals}[args.what]
    print(json.dumps(measure(args.paths, args.threads)))


if __name__ == "__main__":
    main()
