"""--calib: a folder of images, a folder of .npz, one .npz with a sample axis, or module:function.

Samples come one at a time, in a fixed order, and can be gone through again and again.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgekit.converters.contracts import Array
from edgekit.errors import CalibrationError, EdgekitError, ImageError, InputError, MissingDependencyError
from edgekit.package.arrays import format_npy, read_npy, read_npz
from edgekit.package.specs import PreprocessSpec, TensorSpec

UNREADABLE_SHARE = 0.1
"""Largest share of unreadable images that is skipped; above it the folder is refused."""

_NAMED = 5
_ENOUGH = "give at least a few, better a hundred or more"


@dataclass(frozen=True)
class CalibrationInputs:
    """What a sample must look like.

    Attributes:
        specs: The model's inputs.
        buckets: Sizes of their symbolic dims.
        preprocess: For pictures; None when the model takes none.
    """

    specs: tuple[TensorSpec, ...]
    buckets: tuple[Mapping[str, int], ...] = ()
    preprocess: PreprocessSpec | None = None


@dataclass(frozen=True)
class CalibrationData:
    """Samples by number.

    Attributes:
        load: Gives sample i as feeds.
        names: Name of each sample for reports, such as a file name.
        notes: Lines for the user.
        indices: The samples that this set has, into names.
    """

    load: Callable[[int], dict[str, Array]]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    indices: tuple[int, ...] = field(default=())

    def __len__(self) -> int:
        """Number of samples."""
        return len(self.indices)

    def __iter__(self) -> Iterator[dict[str, Array]]:
        """Yields the samples in order."""
        for index in self.indices:
            yield self.load(index)

    def sample_names(self) -> list[str]:
        """Names of the samples in the order of iteration."""
        return [self.names[index] for index in self.indices]

    def split(self, share: float, most: int, seed: int) -> tuple[CalibrationData, CalibrationData]:
        """Parts the samples by chance: the larger part to calibrate, the smaller held out to verify.

        Args:
            share: Share held out; at least one sample is, when there are two or more.
            most: Most samples held out.
            seed: Of the choice.

        Returns:
            (calibration, held out); with a single sample both are that one.
        """
        count = len(self.indices)
        if count < 2:
            return self, self
        held = min(max(1, round(count * share)), most, count - 1)
        order = np.random.default_rng(seed).permutation(count)
        chosen = {int(i) for i in order[:held]}
        rest = tuple(index for position, index in enumerate(self.indices) if position not in chosen)
        return replace(self, indices=rest), replace(self, indices=tuple(self.indices[i] for i in sorted(chosen)))


def open_calibration(source: str, inputs: CalibrationInputs, max_samples: int, seed: int) -> CalibrationData:
    """Opens calibration data; samples are checked as far as that needs no decoding twice.

    Args:
        source: Path of a folder or an .npz, or module:function.
        inputs: What samples must look like.
        max_samples: Most samples used, chosen by chance where there are more.
        seed: Of the choice.

    Raises:
        CalibrationError: Nothing there, too many unreadable images, or samples of a wrong shape.
    """
    path = Path(source)
    if path.is_dir():
        arrays = sorted(p for p in path.iterdir() if p.suffix.lower() == ".npz" and p.is_file())
        data = _npz_folder(arrays, inputs) if arrays else _image_folder(path, inputs, max_samples, seed)
    elif path.suffix.lower() == ".npz":
        data = _npz_file(path, inputs)
    elif ":" in source and not path.exists():
        data = _function(source, inputs, max_samples)
    else:
        raise CalibrationError(
            "no calibration data there",
            where=source,
            expected="a folder of images or .npz, an .npz, or module:function",
        )
    if not data.names:
        raise CalibrationError("no samples in it", where=source, hint=_ENOUGH)
    chosen = _choose(len(data.names), max_samples, seed) if not data.indices else data.indices
    data = replace(data, indices=chosen)
    data.load(data.indices[0])
    return data


def _choose(count: int, most: int, seed: int) -> tuple[int, ...]:
    if count <= most:
        return tuple(range(count))
    return tuple(sorted(int(i) for i in np.random.default_rng(seed).permutation(count)[:most]))


def _image_folder(folder: Path, inputs: CalibrationInputs, max_samples: int, seed: int) -> CalibrationData:
    from edgekit.vision.image_transform import Preparer
    from edgekit.vision.images import IMAGE_SUFFIXES, list_images, load_image

    paths = list_images(folder)
    if not paths:
        expected = f".npz or pictures ({', '.join(sorted(IMAGE_SUFFIXES))})"
        raise CalibrationError("folder has no calibration data", where=folder, expected=expected, hint=_ENOUGH)
    if inputs.preprocess is None:
        raise CalibrationError("pictures need a preprocessing", where=folder, hint="give --preprocess")
    pictures = [spec for spec in inputs.specs if spec.layout in ("nchw", "nhwc")]
    if len(inputs.specs) == 1 and not pictures:
        raise CalibrationError(
            f"pictures of color {inputs.preprocess.color} don't fit the model's input",
            where=inputs.specs[0].name,
            got=f"shape {list(inputs.specs[0].shape)}",
            expected="4 dims, one of 3 channels, or of 1 with --color gray",
        )
    if len(inputs.specs) != 1:
        raise CalibrationError(
            "pictures fit models with one picture input only",
            where=folder,
            got=len(inputs.specs),
            hint="give .npz files",
        )
    chosen = _choose(len(paths), max_samples, seed)
    unreadable = []
    for index in chosen:
        try:
            load_image(paths[index])
        except ImageError:
            unreadable.append(index)
    notes = _unreadable_notes(folder, [paths[i].name for i in unreadable], len(chosen))
    preparer = Preparer(inputs.preprocess, pictures[0], inputs.buckets)
    name = pictures[0].name

    def load(index: int) -> dict[str, Array]:
        return {name: preparer.prepare(paths[index])[0]}

    kept = tuple(i for i in chosen if i not in set(unreadable))
    return CalibrationData(load, tuple(p.name for p in paths), notes, kept)


def _unreadable_notes(folder: Path, names: Sequence[str], count: int) -> tuple[str, ...]:
    if not names:
        return ()
    listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    if len(names) > UNREADABLE_SHARE * count:
        raise CalibrationError(
            "too many unreadable images",
            where=folder,
            got=f"{len(names)} of {count}: {listed}",
            expected=f"at most {UNREADABLE_SHARE:.0%}",
        )
    return (f"{len(names)} of {count} calibration images can't be read and were left out: {listed}",)


def _npz_folder(paths: Sequence[Path], inputs: CalibrationInputs) -> CalibrationData:
    def load(index: int) -> dict[str, Array]:
        return check_sample(_read(paths[index]), inputs, paths[index])

    return CalibrationData(load, tuple(p.name for p in paths))


def _read(path: Path) -> dict[str, Array]:
    try:
        return read_npz(path)
    except InputError as error:
        raise CalibrationError(str(error)) from error


def _npz_file(path: Path, inputs: CalibrationInputs) -> CalibrationData:
    arrays = _read(path)
    counts = {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()}
    if len(set(counts.values())) > 1:
        raise CalibrationError("arrays differ in their number of samples", where=path, got=counts)

    def load(index: int) -> dict[str, Array]:
        return check_sample({name: array[index] for name, array in arrays.items()}, inputs, f"{path}[{index}]")

    return CalibrationData(load, tuple(f"{path.name}[{i}]" for i in range(next(iter(counts.values()), 0))))


def _function(source: str, inputs: CalibrationInputs, max_samples: int) -> CalibrationData:
    """Runs the function once and keeps its samples in a temporary folder, so that each pass sees the same."""
    folder = tempfile.TemporaryDirectory(prefix="edgekit-calibration-")
    names = sorted(spec.name for spec in inputs.specs)
    count = 0
    for sample in _iterate(source):
        if count == max_samples:
            break
        checked = check_sample(sample, inputs, f"{source}, sample {count}")
        for position, name in enumerate(names):
            Path(folder.name, f"{count}-{position}.npy").write_bytes(format_npy(checked[name]))
        count += 1

    def load(index: int) -> dict[str, Array]:
        # `folder` is held here: it is deleted with the last set that loads from it.
        return {name: read_npy(Path(folder.name, f"{index}-{position}.npy")) for position, name in enumerate(names)}

    return CalibrationData(load, tuple(f"{source}[{i}]" for i in range(count)))


def _iterate(source: str) -> Iterator[Mapping[str, Any]]:
    module_name, _, function_name = source.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        function = getattr(importlib.import_module(module_name), function_name)
        yield from function()
    except EdgekitError:
        raise
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "calibration needs a module", where=source, got=f"no module {error.name}"
        ) from error
    except Exception as error:
        raise CalibrationError(
            "the calibration function failed", where=source, got=f"{type(error).__name__}: {error}"
        ) from error


def check_sample(sample: Mapping[str, Any], inputs: CalibrationInputs, where: object) -> dict[str, Array]:
    """Checks one sample and brings it into the inputs' dtypes; a missing batch dim of 1 is added.

    Raises:
        CalibrationError: A name, shape or dtype is wrong, or a value is not finite.
    """
    if not isinstance(sample, Mapping) or set(sample) != {spec.name for spec in inputs.specs}:
        got = sorted(map(str, sample)) if isinstance(sample, Mapping) else type(sample).__name__
        raise CalibrationError(
            "wrong inputs in a sample", where=where, got=got, expected=[s.name for s in inputs.specs]
        )
    arrays = {spec.name: _checked(np.asarray(sample[spec.name]), spec, where) for spec in inputs.specs}
    buckets = inputs.buckets or ({},)
    if not any(_fits(arrays, inputs.specs, bucket) for bucket in buckets):
        shapes = {name: "x".join(map(str, array.shape)) for name, array in arrays.items()}
        wanted = [{s.name: "x".join(str(b.get(str(d), d)) for d in s.shape) for s in inputs.specs} for b in buckets]
        raise CalibrationError(
            "wrong shape of a sample", where=where, got=shapes, expected=" or ".join(map(str, wanted))
        )
    return arrays


def _checked(array: Array, spec: TensorSpec, where: object) -> Array:
    dtype = np.dtype(spec.dtype)
    if array.ndim == len(spec.shape) - 1 and spec.shape[0] == 1:
        array = array[None]
    kinds = {"f": "f", "u": "u", "i": "iu", "b": "b"}[dtype.kind]
    if array.dtype.kind not in kinds:
        raise CalibrationError(
            "wrong dtype of a sample", where=f"{where}: {spec.name}", got=array.dtype, expected=dtype
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise CalibrationError("a sample holds NaN or infinity", where=f"{where}: {spec.name}")
    return np.ascontiguousarray(array, dtype)


def _fits(arrays: Mapping[str, Array], specs: Sequence[TensorSpec], bucket: Mapping[str, int]) -> bool:
    return all(
        arrays[spec.name].shape == tuple(bucket.get(d, -1) if isinstance(d, str) else d for d in spec.shape)
        for spec in specs
    )
