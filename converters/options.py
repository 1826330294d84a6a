"""What a conversion is asked to do, and recipe.toml, which writes it down so that it can be repeated."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from edgekit.converters.contracts import Progress
from edgekit.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Method = Literal["auto", "minmax", "percentile", "mse"]
ENGINES = ("native", "onnx", "openvino")


@dataclass(frozen=True)
class ConvertOptions:
    """A conversion.

    Attributes:
        model: Float model, ONNX.
        output: Package to write.
        device: Id of a device profile, or the path of one.
        precision: int8: everything that the rules allow. auto: int8 with sensitive layers in float; float without
            calibration data. fp32: float.
        calibration: Folder of images or of .npz, an .npz, or module:function; see calibration_data.py.
        shapes: "name=1x3x48x320", several for one input are buckets.
        preprocess: Preset or TOML file; see preprocessing.py.
        preprocess_overrides: Key of PreprocessSpec to its text.
        task, form: What model(image) gives; by default what the preset says.
        labels: File with one name a line, or the names; by default those in the model's metadata.
        max_drop: Largest loss of task agreement in points of 100; None: the default floors.
        skip_passes: Names of passes to leave out.
        keep_float: Names of layers that stay in float.
        method: How ranges of activations are chosen.
        engines: Variants to write.
        seed: Of everything drawn by chance.
        max_samples: Most calibration samples.
        progress: Called as the work goes on.
    """

    model: Path
    output: Path
    device: str = "this-machine"
    precision: Literal["fp32", "int8", "auto"] = "auto"
    calibration: str | None = None
    shapes: tuple[str, ...] = ()
    preprocess: str | None = None
    preprocess_overrides: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    form: str | None = None
    labels: Path | tuple[str, ...] | None = None
    max_drop: float | None = None
    skip_passes: tuple[str, ...] = ()
    keep_float: tuple[str, ...] = ()
    method: Method = "auto"
    engines: tuple[str, ...] = ENGINES
    seed: int = 0
    max_samples: int = 300
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Checks what types alone don't.

        Raises:
            UsageError: An option is out of range or contradicts another.
        """
        if self.precision not in ("fp32", "int8", "auto"):
            raise UsageError(
                "unknown precision", where="--precision", got=self.precision, expected="fp32, int8 or auto"
            )
        if self.method not in ("auto", "minmax", "percentile", "mse"):
            raise UsageError("unknown method", where="--method", got=self.method)
        unknown = [name for name in self.engines if name not in ENGINES]
        if unknown or not self.engines:
            raise UsageError("unknown engine", where="--engine", got=unknown or "none", expected=", ".join(ENGINES))
        if self.max_drop is not None and not 0 <= self.max_drop <= 100:
            raise UsageError("out of range", where="--max-drop", got=self.max_drop, expected="0 to 100 points")
        if not 1 <= self.max_samples <= 100_000:
            raise UsageError("out of range", where="--max-samples", got=self.max_samples, expected="1 to 100000")
        if not 0 <= self.seed < 2**64:
            raise UsageError("out of range", where="--seed", got=self.seed, expected="0 to 2^64 - 1")
        if self.precision == "int8" and self.calibration is None:
            raise UsageError(
                "INT8 needs calibration data",
                where="--precision int8",
                hint="give --calib, or --precision auto or fp32",
            )
        if self.output.suffix != ".ekpkg":
            raise UsageError("a package's name ends in .ekpkg", where="--output", got=self.output)


def recipe_toml(options: ConvertOptions, source_sha256: str, version: str) -> bytes:
    """Writes the options as TOML, with the hash of the model that they were used on."""
    lines = [
        "# edgekit recipe: edgekit.converters.options.read_recipe gives the options back",
        f"edgekit = {_text(version)}",
        f"source_sha256 = {_text(source_sha256)}",
    ]
    table: list[str] = []
    for item in fields(options):
        value = getattr(options, item.name)
        if item.name == "progress" or value is None:
            continue
        if item.name == "preprocess_overrides":
            table = ["[preprocess_overrides]", *(f"{_text(k)} = {_text(v)}" for k, v in value.items())] if value else []
        elif isinstance(value, tuple):
            lines.append(f"{item.name} = [{', '.join(map(_text, value))}]")
        elif isinstance(value, (str, Path)):
            lines.append(f"{item.name} = {_text(str(value))}")
        else:
            lines.append(f"{item.name} = {value!r}")
    return ("\n".join([*lines, *table]) + "\n").encode()


def _text(value: str) -> str:
    # A JSON string is a valid TOML basic string once DEL is escaped too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_recipe(data: bytes, **changes: Any) -> ConvertOptions:
    """Makes options from a recipe.

    Args:
        data: Contents of recipe.toml.
        changes: Fields to set otherwise, such as output.

    Raises:
        UsageError: It is no recipe.
    """
    try:
        values = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError("not a recipe", got=str(error)) from error
    known = {item.name for item in fields(ConvertOptions)} - {"progress"}
    extra = set(values) - known - {"edgekit", "source_sha256"}
    if extra or not {"model", "output"} <= set(values):
        raise UsageError("not a recipe", got=f"keys {', '.join(sorted(values))}")
    chosen: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items() if key in known}
    for key in ("model", "output", "labels"):
        if isinstance(chosen.get(key), str):
            chosen[key] = Path(chosen[key])
    return ConvertOptions(**(chosen | changes))
