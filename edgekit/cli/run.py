"""`edgekit run`: a package on an image, a folder, a video, a camera, a stream or raw tensors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgekit.cli.output import note_untuned, print_json, print_table
from edgekit.errors import UsageError

if TYPE_CHECKING:
    from edgekit.runtime.model import Model
    from edgekit.runtime.stream_result import StreamResult
    from edgekit.vision.frame import ImageArray

Flag = Annotated[bool, Parameter(negative=())]
_PICTURES, _VIDEOS, _TENSORS = (".png", ".jpg", ".jpeg"), (".mp4", ".mkv", ".avi"), (".npz",)


def run_command(
    package: Path,
    source: str,
    /,
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
            pattern: size, most frames a second, frames; all optional, without #FRAMES it goes on until Ctrl-C), or an
            .npz file with one array an input.
        engine: auto, native, onnxruntime, openvino or simulated.
        device: The engine's device: CPU, GPU, NPU, AUTO, or an execution provider.
        threads: Threads within an inference; 0: as many as there are usable cores.
        live: Take the newest frame and drop older ones, as for a camera; files and test patterns are run in full
            otherwise.
        frames: Stop after that many frames.
        output: Annotated video (.mp4), the last frame as an annotated image (.png, .jpg), or .npz for raw tensors.
        json: One JSON object a frame and line.
    """
    tensors = source.endswith(".npz")
    if frames is not None and frames < 1:
        raise UsageError("option is out of range", where="--frames", got=frames, expected="1 or more")
    if tensors and (live or frames is not None):
        raise UsageError("tensors are run once", where=source, got="--live or --frames", expected="neither")
    if output is not None:
        _check_output(output, _TENSORS if tensors else _VIDEOS + _PICTURES, [package, *_files_of(source)])
    import edgekit

    with edgekit.load(package, engine=engine, threads=threads, device=device) as model:
        print(f"engine {model.engine_name} on {model.isa}, {model.threads} threads", file=sys.stderr)
        for reason in model.skipped:
            print(f"note: not run: {reason}", file=sys.stderr)
        if model.engine_name == "native":
            note_untuned(package, {model.threads})
        if tensors:
            _run_tensors(model, Path(source), output, json)
        else:
            _run_frames(model, source, output, live, frames, json)


def _check_output(output: Path, suffixes: tuple[str, ...], sources: list[Path]) -> None:
    from edgekit.package.storage import check_output

    if output.suffix.lower() not in suffixes:
        raise UsageError("unknown kind of output", where=output, got=output.suffix, expected=" or ".join(suffixes))
    check_output(output, sources)


def _files_of(source: str) -> Iterator[Path]:
    """Yields the files and folders that a source is read from; of a camera or an address there are none."""
    import glob

    yield Path(source)
    yield from map(Path, glob.glob(source, recursive=True))  # noqa: PTH207 - see edgekit.vision.sources


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
    """Writes annotated frames into a video or, for the last frame, a picture; a run that fails leaves neither.

    Args:
        path: The file; None: nothing is written.
        fps: Frames a second of a video.
    """

    def __init__(self, path: Path | None, fps: float) -> None:
        self._path = path
        self._writer: Any = None
        self._last: ImageArray | None = None
        if path is not None and path.suffix.lower() in _VIDEOS:
            from edgekit.vision.video_writer import VideoWriter

            self._writer = VideoWriter(path, fps=fps)

    def write(self, result: StreamResult) -> None:
        """Adds one frame."""
        if self._path is None:
            return
        from edgekit.vision.drawing import draw

        picture = draw(result.frame.to_rgb(), result.result)
        if self._writer is None:
            self._last = picture
        else:
            self._writer.write(picture)

    def __enter__(self) -> _Sink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Ctrl-C and a reader that has gone, such as head, end a run; they don't make it fail.
        failed = kind is not None and issubclass(kind, Exception) and not issubclass(kind, BrokenPipeError)
        if self._writer is not None:
            self._writer.discard() if failed else self._writer.close()
        elif self._path is not None and self._last is not None and not failed:
            from edgekit.vision.images import save_image

            save_image(self._path, self._last)


def _run_frames(model: Model, source: str, output: Path | None, live: bool, most: int | None, as_json: bool) -> None:
    from edgekit.vision.sources import open_source

    count, lost = 0, 0
    stages: dict[str, list[float]] = {}
    try:
        with (
            open_source(int(source) if source.isdigit() else source) as frames,
            _Sink(output, frames.fps or 25.0) as sink,
            model.stream(frames, live=live or frames.live) as stream,
        ):
            for result in stream:
                sink.write(result)  # before it is told: what was told is in the file, wherever a signal ends the run
                _print_result(result, as_json)
                # Of a live source: frames that were never run, and results that newer ones replaced before they were
                # read.
                count, lost = count + 1, result.dropped + result.skipped
                for stage, ms in result.stage_ms.items():
                    stages.setdefault(stage, []).append(ms)
                if count == most:
                    break
    except KeyboardInterrupt:  # how a camera's run ends, by Ctrl-C or SIGTERM
        _print_summary(count, lost, stages)
        raise
    _print_summary(count, lost, stages)


def _print_result(result: StreamResult, as_json: bool) -> None:
    """Prints a line and flushes it: a reader at the other end of a pipe wants each result when it is new."""
    if as_json:
        import json

        record = {"frame_id": result.frame_id, "age_ms": round(result.age_ms, 3)}
        record |= {"dropped": result.dropped, "skipped": result.skipped}
        stages = {stage: round(ms, 3) for stage, ms in result.stage_ms.items()}
        print(json.dumps(record | {"stage_ms": stages, "result": result.result.to_dict()}), flush=True)
    else:
        print(f"frame {result.frame_id}: {result.result.summary()}", flush=True)


def _print_summary(count: int, lost: int, stages: dict[str, list[float]]) -> None:
    import numpy as np

    medians = ", ".join(f"{stage} {np.median(values):.2f}" for stage, values in stages.items())
    print(f"{count} frames, {lost} dropped; median ms a stage: {medians or 'none'}", file=sys.stderr)
