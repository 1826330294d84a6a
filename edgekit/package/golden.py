"""Golden data: inputs and expected outputs in the package, so that a device can prove it computes what the host did.

Members: golden/golden.json, then golden/input-<sample>-<index>.npy and golden/output-<sample>-<index>.npy, the index
being that of the tensor in the manifest (tensor names may hold characters that a member's name must not).
"""

# No `from __future__ import annotations`: decode() reads the annotations of GoldenIndex.
import json
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from edgekit.errors import InternalError, PackageError
from edgekit.package.arrays import format_npy, parse_npy
from edgekit.package.manifest import Manifest
from edgekit.package.reader import Package
from edgekit.package.specs import TensorSpec
from edgekit.package.strict_json import convert, parse_json
from edgekit.records import EMPTY, Record, to_builtins

GOLDEN_MEMBER = "golden/golden.json"
DEFAULT_MIN_SQNR_DB = 20.0
MAX_SAMPLES = 64


class GoldenIndex(Record):
    """golden/golden.json.

    Attributes:
        samples: Number of samples.
        min_sqnr_db: Output name to the least signal-to-noise ratio, in dB, at which the self-test passes.
    """

    samples: int
    min_sqnr_db: dict[str, float] = EMPTY


class GoldenSample(Record):
    """One sample: what goes in and what has to come out, by tensor name, as run() takes and gives it."""

    inputs: Mapping[str, NDArray[Any]]
    outputs: Mapping[str, NDArray[Any]]


class Golden(Record):
    """All golden data of a package, with the tolerance for each output in dB."""

    samples: tuple[GoldenSample, ...]
    min_sqnr_db: Mapping[str, float]


def golden_members(
    manifest: Manifest, samples: Sequence[GoldenSample], min_sqnr_db: Mapping[str, float] | None = None
) -> dict[str, bytes]:
    """Makes the members that hold golden data.

    Args:
        manifest: Names and order of inputs and outputs.
        samples: At most 64; every input and output of the manifest in each.
        min_sqnr_db: Output name to the tolerance; 20 dB where it says nothing.

    Raises:
        InternalError: A sample lacks a tensor.
    """
    if len(samples) > MAX_SAMPLES:
        raise InternalError("too many golden samples", got=len(samples), expected=f"at most {MAX_SAMPLES}")
    index = GoldenIndex(len(samples), dict(min_sqnr_db or {}))
    members = {GOLDEN_MEMBER: (json.dumps(to_builtins(index), indent=1, allow_nan=False) + "\n").encode()}
    for number, sample in enumerate(samples):
        for kind, specs, arrays in _groups(manifest, sample):
            for position, spec in enumerate(specs):
                if spec.name not in arrays:
                    raise InternalError("golden sample lacks a tensor", where=spec.name)
                members[_member(kind, number, position)] = format_npy(arrays[spec.name])
    return members


def read_golden(package: Package) -> Golden | None:
    """Reads the golden data of a package; None when it has none.

    Raises:
        PackageError: Malformed.
    """
    if GOLDEN_MEMBER not in package.manifest.members:
        return None
    label = f"{package.path}: {GOLDEN_MEMBER}"
    index = convert(parse_json(package.read(GOLDEN_MEMBER), label), GoldenIndex, label)
    if not 0 <= index.samples <= MAX_SAMPLES:
        raise PackageError("has an impossible number of samples", where=label, got=index.samples)
    samples = []
    for number in range(index.samples):
        groups: dict[str, dict[str, NDArray[Any]]] = {"input": {}, "output": {}}
        for kind, specs in (("input", package.manifest.inputs), ("output", package.manifest.outputs)):
            for position, spec in enumerate(specs):
                member = _member(kind, number, position)
                groups[kind][spec.name] = parse_npy(package.read(member), f"{package.path}: {member}")
        samples.append(GoldenSample(groups["input"], groups["output"]))
    return Golden(tuple(samples), index.min_sqnr_db)


def _groups(
    manifest: Manifest, sample: GoldenSample
) -> tuple[tuple[str, tuple[TensorSpec, ...], Mapping[str, NDArray[Any]]], ...]:
    return (("input", manifest.inputs, sample.inputs), ("output", manifest.outputs, sample.outputs))


def _member(kind: str, sample: int, position: int) -> str:
    return f"golden/{kind}-{sample}-{position}.npy"
