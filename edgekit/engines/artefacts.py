"""From a variant to what an engine compiles: byte ranges inside a package, or files in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from edgekit.engines.base import Artefact
from edgekit.errors import InputError, PackageError
from edgekit.package.manifest import Variant
from edgekit.package.reader import Package
from edgekit.package.specs import TensorSpec

if TYPE_CHECKING:
    from pathlib import Path


def package_artefact(package: Package, variant: Variant) -> Artefact:
    """Describes a variant of an opened package; its members were verified when it was opened."""
    manifest = package.manifest
    files = {member: package.file(member) for member in variant.members}
    return Artefact(variant, files, manifest.inputs, manifest.outputs, manifest.buckets)


def files_artefact(
    variant: Variant,
    folder: str | Path,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    buckets: Sequence[Mapping[str, int]] = (),
) -> Artefact:
    """Describes a variant whose members are files in a folder, each named by the last part of the member's name.

    Raises:
        InputError: A file is missing.
    """
    from pathlib import Path

    files = {}
    for member in variant.members:
        path = Path(folder) / Path(member).name
        if not path.is_file():
            raise InputError("no such file", where=path)
        files[member] = (str(path), 0, path.stat().st_size)
    return Artefact(variant, files, tuple(inputs), tuple(outputs), tuple(buckets))


def read_member_bytes(artefact: Artefact, member: str) -> bytes:
    """Reads a member of an artefact into memory.

    Raises:
        PackageError: No such member, or the file became shorter.
    """
    if member not in artefact.files:
        raise PackageError("variant lacks a member", where=artefact.variant.name, got=ascii(member)[:120])
    path, offset, size = artefact.files[member]
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs milliseconds to import
            file.seek(offset)
            data = file.read(size)
    except OSError as error:
        raise PackageError(f"can't be read: {error.strerror or error}", where=f"{path}: {member}") from error
    if len(data) != size:
        raise PackageError("is truncated", where=f"{path}: {member}")
    return data
