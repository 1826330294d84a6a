"""Writes an .ekpkg: hashes every member, completes the manifest, checks it as the reader does, writes atomically."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from edgekit.errors import PackageError, StorageError
from edgekit.package.archive import safe_name
from edgekit.package.layout import MANIFEST_MEMBER, MAX_PACKAGE_BYTES, MemberKey, plan_layout
from edgekit.package.manifest import Manifest, MemberRecord
from edgekit.package.manifest_rules import check_manifest
from edgekit.package.reader import MAX_MANIFEST_BYTES, parse_manifest
from edgekit.package.storage import atomic_file
from edgekit.records import replace, to_builtins

_BLOCK_BYTES = 1 << 20


def write_package(path: str | Path, manifest: Manifest, members: Mapping[str, bytes | Path]) -> Manifest:
    """Writes a package atomically.

    Args:
        path: The .ekpkg file; an existing one is replaced only when the new one is complete.
        manifest: Its members field is ignored and filled in.
        members: Member name to its bytes, or to a file that holds them; everything but manifest.json.

    Returns:
        The manifest as written.

    Raises:
        PackageError: The manifest contradicts itself or the members, or the package would exceed 4 GiB.
        StorageError: Disk full or no permission; an older package at that path is as it was.
    """
    keys = []
    records = {}
    for name, source in members.items():
        if not safe_name(name) or name == MANIFEST_MEMBER:
            raise PackageError("member name is not allowed", where=path, got=ascii(name))
        key, sha256 = _measure(name, source)
        keys.append(key)
        records[name] = MemberRecord(key.size_bytes, sha256)
    completed = replace(manifest, members=records)
    check_manifest(completed, path)
    text = manifest_json(completed)
    parse_manifest(text, path)
    if len(text) > MAX_MANIFEST_BYTES:
        raise PackageError("manifest is too large", where=path, got=len(text), expected=f"at most {MAX_MANIFEST_BYTES}")
    key = MemberKey(MANIFEST_MEMBER, len(text), zlib.crc32(text))
    layout = plan_layout([key, *keys], hashlib.sha256(text).hexdigest())
    if layout.size_bytes > MAX_PACKAGE_BYTES:
        raise PackageError("package would be too large", where=path, got=layout.size_bytes, expected="under 4 GiB")
    with atomic_file(path, size_bytes=layout.size_bytes) as file:
        sources: dict[str, bytes | Path] = {MANIFEST_MEMBER: text, **members}
        for placed in layout.members:
            file.write(placed.header)
            crc32 = 0
            for block in _blocks(sources[placed.key.name]):
                crc32 = zlib.crc32(block, crc32)
                file.write(block)
            if crc32 != placed.key.crc32 or file.tell() != placed.data_offset + placed.key.size_bytes:
                raise StorageError("changed while it was being packed", where=sources[placed.key.name])
        file.write(layout.end)
    return completed


def manifest_json(manifest: Manifest) -> bytes:
    """Returns manifest.json: UTF-8, indented, the same bytes for the same manifest."""
    value = to_builtins(manifest)
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _measure(name: str, source: bytes | Path) -> tuple[MemberKey, str]:
    sha256 = hashlib.sha256()
    crc32 = 0
    size_bytes = 0
    for block in _blocks(source):
        sha256.update(block)
        crc32 = zlib.crc32(block, crc32)
        size_bytes += len(block)
    return MemberKey(name, size_bytes, crc32), sha256.hexdigest()


def _blocks(source: bytes | Path) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    try:
        with source.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                yield block
    except OSError as error:
        raise StorageError(f"can't be read: {error.strerror or error}", where=source) from error
