"""Runs edgekit as a candidate of an engine race: converts a float ONNX model once, times it, prints one JSON line.

    --candidate 'edgekit=python native/bench/race_one.py latency {net} {threads} {seconds} {onnx} {calibration} {input}'

Modes: latency (one inference after the other), throughput (as many one-thread sessions as {threads} says). Packages
are kept by name in .peerbench/edgekit and made anew when this edgekit's version or the model changes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path

import numpy as np

import edgekit
from edgekit.bench.scenarios import single_stream, throughput

CACHE = Path(".peerbench") / "edgekit"


def package_for(args: argparse.Namespace) -> Path:
    """Converts the model, or finds it converted.

    Args:
        args: net, onnx, calibration (.npy, float32 [samples, 3, H, W]), device, precision.

    Returns:
        Path of the package.
    """
    from edgekit.converters.pipeline import ConvertOptions, convert

    recipe = f"{edgekit.__version__} {args.device} {args.precision}"
    key = hashlib.sha256(args.onnx.read_bytes() + recipe.encode()).hexdigest()[:12]
    package = CACHE / f"{args.net}-{key}.ekpkg"
    if not package.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            samples = Path(folder) / "calibration.npz"
            np.savez(samples, images=np.load(args.calibration))
            options = ConvertOptions(
                model=args.onnx,
                output=package,
                device=args.device,
                precision=args.precision,
                calibration=None if args.precision == "fp32" else str(samples),
                engines=("native",),
            )
            convert(options)
    return package


def main() -> None:
    """Converts, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("latency", "throughput"))
    parser.add_argument("net")
    parser.add_argument("threads", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("onnx", type=Path)
    parser.add_argument("calibration", type=Path)
    parser.add_argument("input", type=Path)
    parser.add_argument("--device", default="this-machine")
    parser.add_argument("--precision", default="int8")
    args = parser.parse_args()
    package = package_for(args)
    feeds = {"images": np.load(args.input)}
    if args.mode == "throughput":
        with edgekit.load(package, engine="native", threads=1) as model:
            print(json.dumps({"fps": throughput(model.compiled, feeds, args.threads, args.seconds).per_second}))
        return
    with edgekit.load(package, engine="native", threads=args.threads) as model:
        latencies = single_stream(model.compiled, feeds, args.seconds).latencies_ms
        output = CACHE / f"{args.net}.output.npy"
        np.save(output, next(iter(model.run(feeds).values())))
    median, p99 = float(np.median(latencies)), float(np.percentile(latencies, 99))
    print(json.dumps({"median_ms": median, "p99_ms": p99, "n": len(latencies), "output": str(output)}))


if __name__ == "__main__":
    main()
