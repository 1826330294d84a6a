"""`edgekit convert`: a trained model into a package for a device."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from edgekit.cli.output import human_bytes, print_json, print_table, progress_bar
from edgekit.errors import MissingDependencyError, UsageError

if TYPE_CHECKING:
    from edgekit.converters.pipeline import ConvertOptions, ConvertResult

Repeated = Annotated[tuple[str, ...], Parameter(negative=(), consume_multiple=False, show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True)
class ConvertArguments:
    """Options of the command line.

    Attributes:
        output: Package to write; by default the model's name with .ekpkg in the current folder.
        device: Device profile, see `edgekit devices list`, or the path of a profile's TOML.
        precision: int8: everything the rules allow. auto: int8 with sensitive layers left float; fp32 without --calib.
        calib: Calibration data: a folder of images, a folder of .npz files, one .npz with a leading sample axis, or
            module:function that yields dictionaries of arrays.
        shape: Input shape, such as images=1x3x640x640; again for further shape buckets.
        preprocess: A preset (imagenet, yolo, ppocr-det, ppocr-rec, unit) or a TOML file.
        mean: Overrides of the preprocessing: one number a channel, such as 0.485,0.456,0.406.
        std: Likewise.
        scale: Factor on pixels before mean and std, such as 1/255.
        color: Channel order of the network: rgb, bgr or gray.
        resize: stretch, letterbox, center-crop, limit-side, fixed-height or none.
        task: What model(image) returns: classify, detect, text-detect, text-recognize or raw.
        form: Form of the outputs, where it can't be told from them: yolov8, yolov8-heads, yolov5, ssd, logits, ...
        labels: Text file with one class name a line.
        max_drop: Greatest loss allowed on the task's fidelity, in points; a conversion that misses it writes nothing.
        method: How ranges of activations are chosen.
        keep_float: Name of a layer that stays float; again for more.
        skip_pass: Name of a graph pass to skip; again for more.
        engine: Variants to write: native, onnx, openvino; all by default.
        max_samples: Most calibration samples used.
        seed: Seed of everything random.
    """

    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
    device: str = "this-machine"
    precision: Literal["fp32", "int8", "auto"] = "auto"
    calib: str | None = None
    shape: Repeated = ()
    preprocess: str | None = None
    mean: str | None = None
    std: str | None = None
    scale: str | None = None
    color: str | None = None
    resize: str | None = None
    task: str | None = None
    form: str | None = None
    labels: Path | None = None
    max_drop: float | None = None
    method: Literal["auto", "minmax", "percentile", "mse"] = "auto"
    keep_float: Repeated = ()
    skip_pass: Repeated = ()
    engine: Repeated = ()
    max_samples: int = 300
    seed: int = 0

    def for_converter(self, model: Path) -> dict[str, Any]:
        """The fields of ConvertOptions; the converter is not imported.

        Raises:
            UsageError: Unknown engine.
        """
        overrides = {key: getattr(self, key) for key in _OVERRIDES}
        same = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _RENAMED | _OVERRIDES}
        return {
            **same,
            "model": model,
            "output": self.output or Path(f"{model.stem}.ekpkg"),
            "calibration": self.calib,
            "shapes": self.shape,
            "preprocess_overrides": {key: value for key, value in overrides.items() if value is not None},
            "skip_passes": self.skip_pass,
            "engines": _engines(self.engine),
        }


_OVERRIDES = {"mean", "std", "scale", "color", "resize"}
_RENAMED = {"output", "calib", "shape", "skip_pass", "engine"}


def convert_command(
    model: Path,
    /,
    *,
    options: ConvertArguments = ConvertArguments(),
    json: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Converts a model for a device: cleans, quantizes, packs, verifies against the float model, writes one file.

    Args:
        model: Float model, ONNX.
        options: See ConvertArguments.
        json: Print the report as JSON.
    """
    with progress_bar(f"Converting {model.name}") as progress:
        result = convert_model(options.for_converter(model) | {"progress": progress})
    if json:
        print_json(report_as_builtins(result))
    else:
        _print(result)


def convert_model(options: dict[str, Any]) -> ConvertResult:
    """Calls the converter, which lives behind the [convert] extra.

    Args:
        options: Fields of ConvertOptions.

    Raises:
        MissingDependencyError: The extra is not installed.
    """
    try:
        from edgekit.converters.pipeline import ConvertOptions, convert
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "converting needs more packages", got=f"no module {error.name}", hint='pip install "edgekit[convert]"'
        ) from error
    made: ConvertOptions = ConvertOptions(**options)
    return convert(made)


def report_as_builtins(result: ConvertResult) -> Any:
    """The report as plain dictionaries and lists."""
    import msgspec

    return msgspec.to_builtins(result.report)


def _engines(names: tuple[str, ...]) -> tuple[str, ...]:
    known = ("native", "onnx", "openvino")
    if unknown := set(names) - set(known):
        raise UsageError("unknown engine", where="--engine", got=sorted(unknown)[0], expected=", ".join(known))
    return tuple(names) or known


def _print(result: ConvertResult) -> None:
    manifest = result.manifest
    rows = []
    for variant in manifest.variants:
        size = sum(manifest.members[member].size_bytes for member in variant.members)
        rows.append((variant.name, variant.precision, f"{variant.int8_macs_share:.1%}", human_bytes(size)))
    print_table("", ("variant", "precision", "INT8 MACs", "size"), rows, right=(2, 3))
    for name, value in sorted(manifest.metrics.items()):
        print(f"{name}: {value:.4g}")
    for note in result.notes:
        print(f"note: {note}")
    print(f"{result.output}: {human_bytes(result.output.stat().st_size)}")
