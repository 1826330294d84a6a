"""`edgekit run`: a package on an image, a folder, a video, a camera, a stream or raw tensors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgekit.cli.output import print_json, print_table
from edgekit.errors import UsageError

if TYPE_CHECKING:
    from edgekit.runtime.model import Model
    from edgekit.runtime.stream_result import StreamResult

Flag = Annotated[bool, Parameter(negative=())]


def run_command(
    package: Path,
    source: str,
    *,
    engine: str = "auto",
    device: str | None = None,
    threads: int = 0,
    live: Flag = False,
    frames: int | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    json: Flag = False,
) -> None:
    """Runs a package on a source and prints each result.

    Args:
        package: The .ekpkg file.
        source: Image, folder, glob, video file, camera index (0), rtsp:// address, test:640x480@30#300 (a test
            pattern), or an .npz file with one array an input.
        engine: auto, native, onnxruntime, openvino or simulated.
        device: The engine's device: CPU, GPU, NPU, AUTO, or an execution provider.
        threads: Threads within an inference; 0: as many as there are usable cores.
        live: Take the newest frame and drop older ones, as for a camera; files are read in full otherwise.
        frames: Stop after that many frames.
        output: Annotated video (.mp4), annotated image (.png, .jpg), or .npz for raw tensors.
        json: One JSON object a frame and line.
    """
    import edgekit

    with edgekit.load(package, engine=engine, threads=threads, device=device) as model:
        if source.endswith(".npz"):
            _run_tensors(model, Path(source), output, json)
        else:
            _run_frames(model, source, _Sink(output), live, frames, json)


def _run_tensors(model: Model, source: Path, output: Path | None, as_json: bool) -> None:
    import io

    import numpy as np

    from edgekit.package.arrays import read_npz
    from edgekit.package.storage import write_atomic

    outputs = model.run(read_npz(source))
    rows = [
        (name, str(y.dtype), "x".join(map(str, y.shape)), f"{y.min():.5g}", f"{y.max():.5g}")
        for name, y in outputs.items()
    ]
    if as_json:
        print_json([dict(zip(("name", "dtype", "shape", "min", "max"), row, strict=True)) for row in rows])
    else:
        print_table("", ("output", "dtype", "shape", "min", "max"), rows, right=(3, 4))
    if output is not None:
        buffer = io.BytesIO()
        np.savez(buffer, **outputs)  # type: ignore[arg-type]
        write_atomic(output, buffer.getvalue())


class _Sink:
    """Writes annotated frames into a video or, for the last frame, a picture."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._writer: Any = None
        self._is_image = path is not None and path.suffix.lower() in (".png", ".jpg", ".jpeg")
        if path is not None and not self._is_image and path.suffix.lower() not in (".mp4", ".mkv", ".avi"):
            raise UsageError(
                "unknown kind of output", where=path, got=path.suffix, expected=".mp4, .mkv, .avi, .png or .jpg"
            )

    def write(self, result: StreamResult, fps: float) -> None:
        """Adds one frame."""
        if self._path is None:
            return
        from edgekit.vision.drawing import draw

        picture = draw(result.frame.to_rgb(), result.result)
        if self._is_image:
            from edgekit.vision.images import save_image

            save_image(self._path, picture)
            return
        if self._writer is None:
            from edgekit.vision.video_writer import VideoWriter

            self._writer = VideoWriter(self._path, fps=fps)
        self._writer.write(picture)

    def close(self) -> None:
        """Finishes the file."""
        if self._writer is not None:
            self._writer.close()


def _run_frames(model: Model, source: str, sink: _Sink, live: bool, most: int | None, as_json: bool) -> None:
    from edgekit.vision.sources import open_source

    count, dropped = 0, 0
    stages: dict[str, list[float]] = {}
    with open_source(int(source) if source.isdigit() else source) as frames:
        fps = frames.fps or 25.0
        with model.stream(frames, live=live or frames.live) as stream:
            try:
                for result in stream:
                    _print_result(result, as_json)
                    sink.write(result, fps)
                    count, dropped = count + 1, result.dropped
                    for stage, ms in result.stage_ms.items():
                        stages.setdefault(stage, []).append(ms)
                    if count == most:
                        break
            finally:
                sink.close()
    _print_summary(count, dropped, stages)


def _print_result(result: StreamResult, as_json: bool) -> None:
    if as_json:
        import json

        record = {"frame_id": result.frame_id, "age_ms": round(result.age_ms, 3), "dropped": result.dropped}
        stages = {stage: round(ms, 3) for stage, ms in result.stage_ms.items()}
        print(json.dumps(record | {"stage_ms": stages, "result": result.result.to_dict()}))
    else:
        print(f"frame {result.frame_id}: {result.result.summary()}")


def _print_summary(count: int, dropped: int, stages: dict[str, list[float]]) -> None:
    import numpy as np

    medians = ", ".join(f"{stage} {np.median(values):.2f}" for stage, values in stages.items())
    print(f"{count} frames, {dropped} dropped; median ms a stage: {medians or 'none'}", file=sys.stderr)
