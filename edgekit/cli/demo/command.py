"""`edgekit demo`: converts a small detector for this machine, runs it on a generated clip, compares engines."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgekit.cli.convert import convert_model
from edgekit.cli.demo.clip import CLASS_NAMES, Scene, scenes
from edgekit.cli.demo.scoring import AveragePrecision
from edgekit.cli.output import Progress, human_bytes, print_json, print_table, progress_bar
from edgekit.errors import EnvironmentFaultError, StorageError, UsageError
from edgekit.package.storage import check_output, make_folder

if TYPE_CHECKING:
    from edgekit.runtime.model import Model

CLIP_SEEDS, CALIBRATION_SEEDS = (11, 12, 13), range(100, 116)
CALIBRATION_FRAMES_A_SEED = 4
FPS = 25.0
SCORE_EVERY = 3  # frames between two that are scored


@dataclass(frozen=True)
class DemoRow:
    """One line of the comparison.

    Attributes:
        name: Engine and precision.
        average_precision: AP at an overlap of 0.5 on the clip, 0..1.
        size_bytes: Size of the variant.
        latency_ms: Median of single inferences.
        frames_per_second: Of the whole pipeline on the clip.
    """

    name: str
    average_precision: float
    size_bytes: int
    latency_ms: float
    frames_per_second: float


def demo_command(
    *,
    out: Path = Path("edgekit-demo"),
    frames: int = 300,
    threads: int = 0,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Runs the main job from end to end on generated pictures; nothing is downloaded.

    Args:
        out: Folder for the clip, the packages, the annotated video and the picture.
        frames: Length of the clip.
        threads: Threads within an inference; 0: as many as there are usable cores.
        json: Print the comparison as JSON.
    """
    if frames < 30:
        raise UsageError("the clip is too short", where="--frames", got=frames, expected="30 or more")
    try:
        make_folder(out)
        make_folder(out / "calib")
        check_output(out / "clip.mp4")
    except StorageError as error:
        raise StorageError(error.what, where=out, got=error.got, hint="name another folder with --out") from error
    with progress_bar("Demo") as progress:
        clip = _make_clip(out, frames, progress)
        packages = _convert(out, progress)
        rows = _compare(packages, clip, out, threads, progress)
        _annotate(packages["int8"], out, threads, progress)
    if json:
        print_json([row.__dict__ for row in rows])
    else:
        _print(rows, out)


def _make_clip(out: Path, frames: int, progress: Progress) -> list[Scene]:
    """Draws the clip and the calibration pictures; returns the scenes of the clip."""
    from edgekit.vision.images import save_image
    from edgekit.vision.video_writer import VideoWriter

    calibration = out / "calib"
    for seed in CALIBRATION_SEEDS:
        for index, scene in enumerate(scenes(seed, CALIBRATION_FRAMES_A_SEED)):
            save_image(calibration / f"{seed}_{index}.png", scene.image_hwc)
    clip: list[Scene] = []
    with VideoWriter(out / "clip.mp4", fps=FPS) as writer:
        for seed in CLIP_SEEDS:
            count = frames // len(CLIP_SEEDS) + (seed == CLIP_SEEDS[0]) * (frames % len(CLIP_SEEDS))
            for scene in scenes(seed, count):
                writer.write(scene.image_hwc)
                clip.append(scene)
                progress("drawing the clip", len(clip) / frames)
    return clip


def _convert(out: Path, progress: Progress) -> dict[str, Path]:
    """Converts the detector in INT8 and in float; returns the packages by precision."""
    packages = {}
    with as_file(files("edgekit") / "samples" / "models" / "shapes_det.onnx") as model:
        for precision in ("int8", "fp32"):
            packages[precision] = out / f"shapes-{precision}.ekpkg"
            convert_model(
                {
                    "model": model,
                    "output": packages[precision],
                    "device": "this-machine",
                    "precision": precision,
                    "calibration": str(out / "calib") if precision == "int8" else None,
                    "preprocess": "yolo",
                    "task": "detect",
                    "labels": CLASS_NAMES,
                    "progress": progress,
                }
            )
    return packages


def _compare(
    packages: dict[str, Path], clip: list[Scene], out: Path, threads: int, progress: Progress
) -> list[DemoRow]:
    import edgekit

    contestants = [("fp32", "onnxruntime"), ("int8", "native"), ("int8", "onnxruntime"), ("int8", "openvino")]
    rows = []
    for index, (precision, engine) in enumerate(contestants):
        progress(f"measuring {engine} {precision}", index / len(contestants))
        try:
            with edgekit.load(packages[precision], engine=engine, threads=threads) as model:
                rows.append(_measure(model, f"{engine} {precision}", clip, out))
        except EnvironmentFaultError as error:
            print(f"note: {engine} is left out: {error}")
    return rows


def _measure(model: Model, name: str, clip: list[Scene], out: Path) -> DemoRow:
    import time

    import numpy as np

    from edgekit.bench.runner import bench_inputs
    from edgekit.bench.scenarios import single_stream

    precision = AveragePrecision()
    start, count = time.perf_counter(), 0
    with model.stream(out / "clip.mp4", live=False) as stream:
        for found in stream:
            scene = clip[found.frame_id]
            if count % SCORE_EVERY == 0:
                precision.add(
                    found.boxes_xyxy_px,
                    found.scores,
                    found.class_id.astype(np.int64),
                    scene.boxes_xyxy_px,
                    scene.class_ids,
                )
            count += 1
    seconds = time.perf_counter() - start
    latencies = single_stream(model.compiled, bench_inputs(model, 0), 1.0).latencies_ms
    size = sum(model.manifest.members[member].size_bytes for member in model.variant.members)
    return DemoRow(name, precision.value(), size, float(np.median(latencies)), count / seconds)


def _annotate(package: Path, out: Path, threads: int, progress: Progress) -> None:
    """Writes the annotated video and its middle frame as a picture."""
    import edgekit
    from edgekit.vision.drawing import draw
    from edgekit.vision.images import save_image
    from edgekit.vision.video_writer import VideoWriter

    progress("writing the annotated video", 0.9)
    pictures: list[Any] = []
    with (
        edgekit.load(package, engine="native", threads=threads) as model,
        model.stream(out / "clip.mp4", live=False) as stream,
        VideoWriter(out / "annotated.mp4", fps=FPS) as writer,
    ):
        for found in stream:
            picture = draw(found.frame.to_rgb(), found.result)
            writer.write(picture)
            if found.frame_id == 15:
                pictures.append(picture)
    save_image(out / "annotated.png", pictures[0])


def _print(rows: list[DemoRow], out: Path) -> None:
    cells = [
        (
            row.name,
            f"{row.average_precision:.1%}",
            human_bytes(row.size_bytes),
            f"{row.latency_ms:.2f}",
            f"{row.frames_per_second:.0f}",
        )
        for row in rows
    ]
    columns = ("engine", "AP50", "size", "latency ms (median)", "pipeline frames/s")
    print_table("Shapes detector, 320 x 320, on a 640 x 480 clip", columns, cells, right=(1, 2, 3, 4))
    for name in ("clip.mp4", "annotated.mp4", "annotated.png", "shapes-int8.ekpkg", "shapes-int8.ekpkg's report"):
        print(
            f"{out / name}"
            if "'s" not in name
            else f"the conversion's report: edgekit inspect {out / 'shapes-int8.ekpkg'}"
        )
