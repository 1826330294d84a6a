"""`edgekit tune`: measures on the device how each layer runs fastest, and keeps it beside the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from edgekit.cli.output import print_json, print_table
from edgekit.errors import UsageError, printable

if TYPE_CHECKING:
    from edgekit.bench.tune import BucketTuning
    from edgekit.engines.native import NativeModel
    from edgekit.engines.tuning import LayerChoice
    from edgekit.package.reader import Package

Flag = Annotated[bool, Parameter(negative=())]


def tune_command(package: Path, /, *, threads: int = 0, seconds: float = 5.0, json: Flag = False) -> None:
    """Measures in which way each layer runs fastest here, and keeps that beside the package if the network gains.

    The file PACKAGE.tune.json is used by every later load with the same number of threads on the same device; results
    are the same with and without it. It holds one tuning for each number of threads.

    Args:
        package: The .ekpkg file; it has to hold a variant for the native engine.
        threads: Threads within an inference; 0: as many as a load takes by itself.
        seconds: About how long each of the three measurements of a shape bucket takes.
        json: Print JSON.
    """
    from edgekit.package.reader import open_package
    from edgekit.package.storage import check_output
    from edgekit.runtime.governor import default_threads
    from edgekit.runtime.tuning import TuningRun, store_run, stored_devices, thread_count, tuning_file

    if not 0 <= threads <= 256:
        raise UsageError("option is out of range", where="--threads", got=threads, expected="0 to 256")
    if not 0.001 <= seconds <= 86400:  # false for nan as well
        raise UsageError("option is out of range", where="--seconds", got=seconds, expected="0.001 to 86400")
    count = threads or default_threads()
    with open_package(package) as opened:
        stored_devices(opened)  # refuses what lies in the file's place and is none of ours
        check_output(Path(tuning_file(opened.path)), [package])
        found = _measure(opened, count, seconds)
        kept = [bucket for bucket in found if bucket.kept]
        run = None
        if kept:
            choices = tuple(choice for bucket in kept for choice in bucket.choices)
            run = TuningRun(sum(each.default_ms for each in kept), sum(each.tuned_ms for each in kept), choices)
        stored = store_run(opened, count, run)
    if json:
        buckets = [_as_json(each) for each in found]
        print_json({"threads": count, "file": stored.path or None, "notes": list(stored.notes), "buckets": buckets})
        return
    for bucket in found:
        _print_bucket(bucket, thread_count(count))
    for note in stored.notes:
        print(printable(note))
    if run is not None:
        print(f"kept in {stored.path}, for loads on this device with {thread_count(count)}")


def _measure(opened: Package, threads: int, seconds: float) -> list[BucketTuning]:
    import edgekit
    from edgekit.bench.runner import bench_inputs
    from edgekit.bench.tune import tune
    from edgekit.engines.artefacts import package_artefact
    from edgekit.engines.base import EngineOptions
    from edgekit.engines.registry import get_engine

    with edgekit.load(opened.path, engine="native", threads=threads, tuning=False) as model:
        artefact = package_artefact(opened, model.variant)
        feeds = [bench_inputs(model, bucket) for bucket in range(max(1, len(model.manifest.buckets)))]

    def compile_with(choices: tuple[LayerChoice, ...]) -> NativeModel:
        compiled = get_engine("native").compile(artefact, EngineOptions(threads, tuning=choices))
        return cast("NativeModel", compiled)

    return tune(compile_with, feeds, threads, seconds)


def _print_bucket(found: BucketTuning, threads: str) -> None:
    from edgekit.bench.roofline import short_name

    head = f"bucket {found.bucket}, {threads}: "
    if not found.choices:
        print(f"{head}no layer gains more than noise; nothing is kept")
        return
    figures = f"{found.default_ms:.4g} ms by itself, {found.tuned_ms:.4g} ms tuned"
    figures += f", a gain of {found.gain_ms:.4g} ms (noise {found.noise_ms:.4g} ms)"
    if not found.kept:
        print(f"{head}{figures}: {len(found.choices)} layers gain alone, the network does not; nothing is kept")
        return
    rows = [(short_name(choice.layer), choice.kernel, choice.tasks or "by cost") for choice in found.choices]
    print_table("", ("layer", "kernel", "tasks"), rows)
    print(f"{head}{figures}: {found.gain_ms / found.default_ms:.1%} less")


def _as_json(found: BucketTuning) -> dict[str, Any]:
    from edgekit.records import to_builtins

    return {
        "bucket": found.bucket,
        "default_ms": found.default_ms,
        "tuned_ms": found.tuned_ms,
        "gain_ms": found.gain_ms,
        "noise_ms": found.noise_ms,
        "kept": found.kept,
        "choices": to_builtins(found.choices),
    }
