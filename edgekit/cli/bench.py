"""`edgekit bench`: how fast a package runs here, and why not faster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgekit.cli.output import human_bytes, note_untuned, print_json, print_table
from edgekit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgekit.bench.report import Row
    from edgekit.bench.roofline import LayerBound, Peaks
    from edgekit.bench.runner import BenchOptions, BenchResult

Flag = Annotated[bool, Parameter(negative=())]

ABOVE_THE_ROOFLINE = (
    "above 100% of the roofline: the layer's data came from the caches, which are faster than the memory measured, "
    "or the machine was slower while its peaks were measured"
)


def bench_command(
    package: Path,
    /,
    *,
    engine: str = "auto",
    device: str | None = None,
    threads: int = 0,
    scenario: Annotated[tuple[str, ...], Parameter(negative=(), consume_multiple=False, show_default=False)] = (),
    seconds: float = 3.0,
    repetitions: int = 1,
    sessions: int = 0,
    bucket: int = 0,
    layers: Flag = False,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    json: Flag = False,
) -> None:
    """Measures latency, throughput and cold start, and holds each layer against the machine's roofline.

    Args:
        package: The .ekpkg file.
        engine: auto, native, onnxruntime, openvino or simulated; several, separated by commas, are
            measured one after the other.
        device: The engine's device.
        threads: Threads within an inference; 0: as many as a load takes by itself. Throughput has one in each session.
        scenario: cold, single-stream or throughput; again for more. All three by default.
        seconds: Length of each measurement.
        repetitions: How often each is repeated.
        sessions: Sessions side by side for throughput; 0: one a usable core.
        bucket: Shape bucket to measure.
        layers: Also measure every layer: its kernel, and its bound: compute, memory or overhead.
        output: File for the results as Google Benchmark JSON.
        json: Print them as Google Benchmark JSON.
    """
    from edgekit.bench.runner import SCENARIOS, BenchOptions
    from edgekit.package.storage import check_output
    from edgekit.runtime.governor import default_threads

    _check_range("--threads", threads, 0, 256)
    _check_range("--seconds", seconds, 0.001, 86400)
    _check_range("--repetitions", repetitions, 1, 256)
    _check_range("--sessions", sessions, 0, 256)
    if output is not None:
        check_output(output, [package])
    options = BenchOptions(tuple(scenario) or SCENARIOS, seconds, repetitions, sessions, bucket, layers)
    count = threads or default_threads()
    results = {name: _measure(package, name, device, count, options) for name in engine.split(",")}
    if {"auto", "native"} & results.keys():
        note_untuned(package, options.thread_counts(count))
    document = _document(results, repetitions)
    if output is not None:
        _write_json(output, document)
    if json:
        print_json(document)
        return
    for name, result in results.items():
        print_result(name, result)


def _measure(package: Path, engine: str, device: str | None, threads: int, options: BenchOptions) -> BenchResult:
    import edgekit
    from edgekit.bench.runner import bench

    def open_model(count: int) -> edgekit.Model:
        return edgekit.load(package, engine=engine, threads=count, device=device)

    return bench(package, open_model, threads, options, lambda: machine_peaks(threads))


def _document(results: dict[str, BenchResult], repetitions: int) -> dict[str, Any]:
    """Google Benchmark JSON of all engines, with what it has no place for in its context."""
    from edgekit.bench.report import as_json, layer_rows

    document = as_json([row for result in results.values() for row in result.rows], repetitions)
    context = document["context"]["edgekit"]
    context["cold"] = {name: result.cold for name, result in results.items()}
    context["layers"] = {name: layer_rows(result.layers) for name, result in results.items()}
    return document


def _write_json(path: Path, document: dict[str, Any]) -> None:
    import json

    from edgekit.package.storage import write_atomic

    write_atomic(path, (json.dumps(document, indent=1) + "\n").encode())


def _check_range(option: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:  # false for nan as well
        raise UsageError("option is out of range", where=option, got=value, expected=f"{least:g} to {most:g}")


def machine_peaks(threads: int) -> Peaks:
    """Measures the peaks of this machine on that many threads."""
    from edgekit.bench.roofline import Peaks
    from edgekit.target.measure import measure_machine

    found = measure_machine(threads=threads)
    return Peaks(found.int8_gmac_s, found.fp32_gmac_s, found.read_gb_s)


def print_result(engine: str, result: BenchResult) -> None:
    """Prints the tables of one engine; that of scenarios fits a terminal of 80 columns."""
    if result.rows:
        print(f"engine {result.rows[0].engine} on {result.rows[0].isa}")
        columns = ("scenario", "threads", "p50 ms", "p90 ms", "p99 ms", "per second", "CPU ms")
        print_table("", columns, [_cells(row) for row in result.rows], right=range(1, 7))
        for line in _below_the_table(result.rows):
            print(line)
    if result.cold:
        cold = result.cold
        print(
            f"cold start ({engine}): import {cold['import_ms']:.1f} ms; load {cold['load_ms']:.1f} ms, first inference "
            f"{cold['run_ms']:.1f} ms, together {cold['first_result_ms']:.1f} ms; "
            f"peak memory {human_bytes(int(cold['peak_rss_bytes']))}"
        )
    if result.layers:
        headings = ("layer", "kernel", "time us", "share", "MMAC", "KiB", "of roofline", "bound")
        print_table("", headings, layer_cells(result.layers), right=range(2, 7))
        if any(entry.roofline_share > 1 for entry in result.layers):
            print(ABOVE_THE_ROOFLINE)
    for finding in result.findings:
        print(f"{finding.text}; try: {finding.advice}")


def layer_cells(layers: tuple[LayerBound, ...]) -> list[tuple[str, ...]]:
    """Cells of the layer table, in the order the layers run."""
    from edgekit.bench.roofline import short_name

    total_us = sum(entry.layer.time_us for entry in layers)
    return [
        (
            short_name(entry.layer.name),
            entry.layer.kernel or entry.layer.op,
            f"{entry.layer.time_us:.1f}",
            f"{entry.layer.time_us / total_us:.1%}",
            f"{entry.layer.macs / 1e6:.2f}",
            f"{entry.layer.bytes_moved / 1024:.0f}",
            f"{entry.roofline_share:.0%}",
            entry.bound,
        )
        for entry in layers
    ]


def _cells(row: Row) -> tuple[str, ...]:
    from edgekit.bench.statistics import summarize

    summary = summarize(row.measurement.latencies_ms)
    return (
        row.measurement.scenario,
        str(row.threads),
        *(summary.text(percentile) for percentile in (50.0, 90.0, 99.0)),
        f"{row.measurement.per_second:.1f}",
        f"{row.measurement.cpu_s * 1e3 / summary.count:.2f}",
    )


def _below_the_table(rows: Sequence[Row]) -> list[str]:
    """What has no place in the table: what its short cells mean, and the memory of each scenario's last repetition."""
    lines = []
    if few := sorted({cell for row in rows for cell in _cells(row) if cell.startswith("n < ")}):
        lines.append(f"{', '.join(few)}: insufficient samples; raise --seconds")
    for scenario, memory in {row.measurement.scenario: row.memory_bytes for row in rows}.items():
        sizes = ", ".join(f"{name} {human_bytes(size)}" for name, size in memory.items())
        lines.append(f"memory, {scenario}: {sizes}")
    return lines
