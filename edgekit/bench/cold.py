"""Load and first result, in a process of its own that edgekit.bench.scenarios.cold starts.

Prints one JSON line. A module of its own, so that nothing is imported before the clock starts.
"""

from __future__ import annotations

import sys
import time


def main(begin_s: float) -> None:
    """Loads, runs once, prints the times in milliseconds.

    Args:
        begin_s: time.perf_counter() before edgekit was imported; numpy, which brings the inputs, is
            not counted. Words of the command line: package, engine, threads, .npz file with the inputs.
    """
    import edgekit

    imported = time.perf_counter()
    import numpy as np

    path, engine, threads, inputs = sys.argv[1:5]
    with np.load(inputs, allow_pickle=False) as archive:
        feeds = {name: archive[name] for name in archive.files}
    start = time.perf_counter()
    model = edgekit.load(path, engine=engine, threads=int(threads), warm_up=False)
    loaded = time.perf_counter()
    model.run(feeds)
    first = time.perf_counter()
    from edgekit.bench.memory import peak_rss_bytes

    peak = peak_rss_bytes()
    import json

    numbers = {
        "import_ms": (imported - begin_s) * 1e3,
        "load_ms": (loaded - start) * 1e3,
        "run_ms": (first - loaded) * 1e3,
        "first_result_ms": (first - start) * 1e3,
        "peak_rss_bytes": peak,
    }
    print(json.dumps(numbers))
