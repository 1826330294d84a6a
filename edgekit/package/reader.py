"""Opens an .ekpkg: checks the structure, the manifest and the hash of every member, then hands out byte ranges."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any, BinaryIO

from edgekit import _native
from edgekit.errors import IntegrityError, PackageError, PackageVersionError
from edgekit.package.archive import CENTRAL_DIRECTORY, Archive, ArchiveLimits, ArchiveMember, read_archive
from edgekit.package.layout import MANIFEST_MEMBER, MemberKey, manifest_sha256_of_comment, plan_layout
from edgekit.package.manifest import FORMAT_MAJOR, FORMAT_MINOR, Manifest
from edgekit.package.manifest_rules import check_manifest
from edgekit.package.strict_json import convert, parse_json

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

MAX_MANIFEST_BYTES = 8 << 20


class Package:
    """An opened package whose every byte has been checked. Close it, or use it in a with statement.

    Attributes:
        path: Where it lies.
        sha256: Of its manifest, which holds those of all other members.
        manifest: What it says about itself.
    """

    def __init__(
        self, path: str, sha256: str, file: BinaryIO, manifest: Manifest, members: dict[str, ArchiveMember]
    ) -> None:
        self.path = path
        self.sha256 = sha256
        self.manifest = manifest
        self._file = file
        self._members = members

    def file(self, member: str) -> tuple[str, int, int]:
        """Returns (path, offset, size) of a member, in bytes, for memory-mapping; the offset is a multiple of 64.

        Raises:
            PackageError: No such member.
        """
        found = self._member(member)
        return self.path, found.data_offset, found.size_bytes

    def read(self, member: str) -> bytes:
        """Reads a member into memory.

        Raises:
            PackageError: No such member, or the file was changed since it was opened.
        """
        found = self._member(member)
        data = os.pread(self._descriptor(), found.size_bytes, found.data_offset)
        if _native.sha256(data) != self.manifest.members[member].sha256:
            raise IntegrityError("changed while it was open", where=f"{self.path}: {member}")
        return data

    def check_unchanged(self) -> None:
        """Checks that the path still names the file that was verified; call it after others opened the path.

        Raises:
            IntegrityError: It was replaced or written to in between.
        """
        opened = os.fstat(self._descriptor())
        try:
            now = os.stat(self.path)  # noqa: PTH116 - pathlib costs milliseconds to import
        except OSError:
            now = None
        same = now is not None and _identity(now) == _identity(opened)
        if not same:
            raise IntegrityError("was replaced while it was being loaded", where=self.path, hint="load it again")

    def close(self) -> None:
        """Closes the file; safe to call twice."""
        self._file.close()

    def __enter__(self) -> Package:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _descriptor(self) -> int:
        if self._file.closed:
            raise PackageError("package is closed", where=self.path)
        return self._file.fileno()

    def _member(self, member: str) -> ArchiveMember:
        try:
            return self._members[member]
        except KeyError:
            raise PackageError("no such member", where=self.path, got=ascii(member)) from None


def open_package(path: str | Path) -> Package:
    """Opens and fully verifies a package.

    Args:
        path: The .ekpkg file.

    Returns:
        The package; memory needed is a few MiB whatever its size.

    Raises:
        PackageError: Missing, not a package, or one that breaks a rule.
        IntegrityError: A bit flipped or bytes are missing; the message names the member.
        PackageVersionError: Written by a newer edgekit.
    """
    where = os.fspath(path)
    file = _open_regular(where)
    try:
        archive = read_archive(file, where, ArchiveLimits())
        expected, data = _manifest_bytes(file, archive, where)
        _check_structure(file, archive, expected, where)
        manifest = parse_manifest(data, where)
        members = {member.name: member for member in archive.members}
        _check_members(file, manifest, members, where)
    except OSError as error:
        file.close()
        raise PackageError(f"can't be read: {error.strerror or error}", where=where) from error
    except BaseException:
        file.close()
        raise
    return Package(where, expected, file, manifest, members)


def parse_manifest(data: bytes, where: object) -> Manifest:
    """Parses and checks manifest.json.

    Args:
        data: Its bytes.
        where: Path of the package, for messages.

    Raises:
        PackageVersionError: Its major version is newer than this edgekit reads.
        PackageError: Malformed.
    """
    label = f"{where}: {MANIFEST_MEMBER}"
    value = parse_json(data, label)
    _check_version(value, label)
    manifest = convert(value, Manifest, label)
    check_manifest(manifest, where)
    return manifest


def _check_version(value: Any, label: str) -> None:
    major = value.get("format_major") if isinstance(value, dict) else None
    if not isinstance(major, int) or isinstance(major, bool) or major < 1:
        raise PackageError("has no format version", where=label, got=ascii(major)[:40])
    if major > FORMAT_MAJOR:
        raise PackageVersionError(
            "package is of a newer format",
            where=label,
            got=f"version {major}.{ascii(value.get('format_minor'))[:20]}",
            expected=f"at most {FORMAT_MAJOR}.{FORMAT_MINOR}",
            hint="update edgekit on this machine",
        )


def _open_regular(path: str) -> BinaryIO:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # non-blocking: a FIFO must not hang us
    except FileNotFoundError:
        raise PackageError("no such file", where=path) from None
    except PermissionError:
        hint = "let its owner change that: chmod a+r, and a+x on the folders above it"
        raise PackageError("no permission to read", where=path, hint=hint) from None
    except OSError as error:
        raise PackageError(f"can't be opened: {error.strerror or error}", where=path, hint="check the path") from error
    except ValueError as error:  # a zero byte in the name
        raise PackageError(f"can't be opened: {error}", where=ascii(path)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise PackageError("is not a regular file", where=path)
    return os.fdopen(descriptor, "rb")


def _manifest_bytes(file: BinaryIO, archive: Archive, where: str) -> tuple[str, bytes]:
    expected = manifest_sha256_of_comment(archive.comment)
    if expected is None:
        raise IntegrityError("comment with the manifest's hash is missing or damaged", where=f"{where}: end of archive")
    if not archive.members or archive.members[0].name != MANIFEST_MEMBER:
        raise PackageError("is not a package", where=where, expected=f"{MANIFEST_MEMBER} as the first member")
    member = archive.members[0]
    if member.size_bytes > MAX_MANIFEST_BYTES:
        raise PackageError("is too large", where=f"{where}: {MANIFEST_MEMBER}", got=member.size_bytes)
    data = os.pread(file.fileno(), member.size_bytes, member.data_offset)
    if _native.sha256(data) != expected:
        raise IntegrityError("SHA-256 differs: the file is damaged", where=f"{where}: {MANIFEST_MEMBER}")
    return expected, data


def _check_structure(file: BinaryIO, archive: Archive, manifest_sha256: str, where: str) -> None:
    keys = [MemberKey(member.name, member.size_bytes, member.crc32) for member in archive.members]
    layout = plan_layout(keys, manifest_sha256)
    for member in layout.members:
        if os.pread(file.fileno(), len(member.header), member.header_offset) != member.header:
            raise IntegrityError("local header is damaged", where=f"{where}: {member.key.name}")
    if os.pread(file.fileno(), len(layout.end) + 1, layout.end_offset) != layout.end:
        raise IntegrityError("is damaged", where=f"{where}: {CENTRAL_DIRECTORY}")


def _check_members(file: BinaryIO, manifest: Manifest, members: dict[str, ArchiveMember], where: str) -> None:
    listed = {MANIFEST_MEMBER, *manifest.members}
    for name in sorted(listed ^ set(members)):
        what = "is listed in the manifest but missing" if name in listed else "is not listed in the manifest"
        raise PackageError(what, where=f"{where}: {name}")
    for name, record in manifest.members.items():
        member = members[name]
        if member.size_bytes != record.size_bytes:
            raise IntegrityError("size differs from the manifest", where=f"{where}: {name}")
        sha256, crc32 = _native.digest_file(file.fileno(), member.data_offset, member.size_bytes)
        if sha256 != record.sha256 or crc32 != member.crc32:
            raise IntegrityError("SHA-256 differs: the file is damaged", where=f"{where}: {name}", hint="copy it again")


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
