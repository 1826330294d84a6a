"""Strict reading of zip archives: the one routine in edgekit that opens one, be it a package or an .npz file.

Format: APPNOTE.TXT 6.3.10 of PKWARE. Accepted is what numpy, Python's zipfile and edgekit's own writer produce: one
disk, members stored or deflated, no encryption, no data descriptors. Everything the format says twice has to agree, and
every byte of the file has to belong to exactly one thing, so that two readers can't see two archives in one file.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from typing import BinaryIO

from edgekit.errors import IntegrityError, PackageError, printable
from edgekit.records import Record

STORED = 0
DEFLATED = 8
END_OF_ARCHIVE = "end of archive"
CENTRAL_DIRECTORY = "central directory"

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_ZIP64_EXTRA = 1
_MAX_32 = 0xFFFFFFFF
_UTF8_NAME = 0x800
_UNSAFE = frozenset("\\:\x7f") | frozenset(map(chr, range(32)))


class ArchiveLimits(Record):
    """What an archive may be at most; more is refused before anything is allocated.

    Attributes:
        members: Number of members.
        member_bytes: Unpacked size of one member.
        total_bytes: Unpacked size of all members.
        directory_bytes: Size of the central directory.
        methods: Compression methods accepted.
    """

    members: int = 4096
    member_bytes: int = 4 << 30
    total_bytes: int = 8 << 30
    directory_bytes: int = 4 << 20
    methods: tuple[int, ...] = (STORED,)


class ArchiveMember(Record):
    """One member as the central directory and its local header agree on it. Offsets and sizes in bytes of the file."""

    name: str
    method: int
    crc32: int
    packed_bytes: int
    size_bytes: int
    header_offset: int
    data_offset: int


class Archive(Record):
    """Members in file order, the archive's comment, and where the central directory starts."""

    members: tuple[ArchiveMember, ...]
    comment: bytes
    directory_offset: int


def read_archive(file: BinaryIO, where: object, limits: ArchiveLimits) -> Archive:
    """Reads and checks the structure of a zip archive, not the contents of its members.

    Args:
        file: Opened for reading; its size must not change.
        where: Path for messages.
        limits: What it may be at most.

    Returns:
        Its members, sorted by offset.

    Raises:
        PackageError: Not an archive, or one that breaks a rule; the message names the member.
        IntegrityError: Truncated or damaged.
    """
    size = os.fstat(file.fileno()).st_size
    count, directory_offset, directory_bytes, comment = _read_end(file, size, where, limits)
    directory = _read_at(file, directory_offset, directory_bytes, where, CENTRAL_DIRECTORY)
    members = []
    position = 0
    for _ in range(count):
        member, position = _parse_central(directory, position, where, limits)
        members.append(_with_local_header(file, member, directory_offset, where))
    if position != len(directory):
        raise _damaged(where, CENTRAL_DIRECTORY, "holds more than its members")
    members.sort(key=lambda member: member.header_offset)
    _check_names(members, where)
    _check_layout(members, directory_offset, where, limits)
    return Archive(tuple(members), comment, directory_offset)


def read_member(file: BinaryIO, member: ArchiveMember, where: object) -> bytes:
    """Reads one member, unpacks it within its stated size and checks its CRC-32.

    Raises:
        IntegrityError: Its size or CRC-32 differs from what the archive says.
    """
    packed = _read_at(file, member.data_offset, member.packed_bytes, where, member.name)
    if member.method == DEFLATED:
        packed = _inflate(packed, member, where)
    if len(packed) != member.size_bytes or zlib.crc32(packed) != member.crc32:
        raise _damaged(where, member.name, "size or CRC-32 differs")
    return packed


def safe_name(name: str) -> bool:
    """Tells whether a member name stays inside its folder on every system, and is plain text of at most 255 bytes."""
    if not 0 < len(name.encode(errors="replace")) <= 255 or not _UNSAFE.isdisjoint(name):
        return False
    return all(part not in ("", ".", "..") for part in name.split("/"))


def _inflate(packed: bytes, member: ArchiveMember, where: object) -> bytes:
    engine = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        data = engine.decompress(packed, member.size_bytes + 1)  # one more, so that a lie about the size shows
    except zlib.error as error:
        raise _damaged(where, member.name, "can't be unpacked") from error
    if not engine.eof or engine.unused_data or engine.unconsumed_tail:
        raise _damaged(where, member.name, "unpacks to another size than stated")
    return data


def _read_end(file: BinaryIO, size: int, where: object, limits: ArchiveLimits) -> tuple[int, int, int, bytes]:
    tail_bytes = min(size, _END.size + 0xFFFF)
    tail = _read_at(file, size - tail_bytes, tail_bytes, where, END_OF_ARCHIVE)
    start = tail.rfind(b"PK\x05\x06")
    if start < 0 and _read_at(file, 0, min(2, size), where, END_OF_ARCHIVE) != b"PK":
        raise PackageError("is not an archive", where=where, got=f"a file of {size} bytes", expected="a zip file")
    if start < 0 or len(tail) - start < _END.size:
        raise _damaged(where, END_OF_ARCHIVE, "is missing: the file is truncated or damaged")
    _, disk, first_disk, here, count, directory_bytes, directory_offset, comment_bytes = _END.unpack_from(tail, start)
    comment = tail[start + _END.size :]
    if disk or first_disk or here != count or comment_bytes != len(comment):
        raise _damaged(where, END_OF_ARCHIVE, "is inconsistent: the file is truncated or damaged")
    if count > limits.members or directory_bytes > limits.directory_bytes:
        label = f"{where}: {END_OF_ARCHIVE}"
        raise PackageError("too many members", where=label, got=count, expected=f"at most {limits.members}")
    end_offset = size - tail_bytes + start
    if directory_bytes > end_offset or directory_offset != end_offset - directory_bytes:
        raise _damaged(where, CENTRAL_DIRECTORY, "is not where the archive says")
    return count, directory_offset, directory_bytes, comment


def _parse_central(data: bytes, position: int, where: object, limits: ArchiveLimits) -> tuple[ArchiveMember, int]:
    if len(data) - position < _CENTRAL.size or data[position : position + 4] != b"PK\x01\x02":
        raise _damaged(where, CENTRAL_DIRECTORY, "is damaged")
    fields = _CENTRAL.unpack_from(data, position)
    _, _, _, flags, method, _, _, crc32, packed_bytes, size_bytes, *lengths, disk, _, attributes, offset = fields
    name_bytes, extra_bytes, comment_bytes = lengths
    start = position + _CENTRAL.size
    end = start + name_bytes + extra_bytes + comment_bytes
    if end > len(data) or disk:
        raise _damaged(where, CENTRAL_DIRECTORY, "is damaged")
    name = _decode_name(data[start : start + name_bytes], where)
    extra = data[start + name_bytes : start + name_bytes + extra_bytes]
    if _MAX_32 in (packed_bytes, size_bytes, offset) or _zip64_sizes(extra, where, name) is not None:
        raise PackageError("member over 4 GiB is not supported", where=f"{where}: {name}")
    if flags & ~_UTF8_NAME or method not in limits.methods:
        raise PackageError(
            "member is encrypted, streamed or compressed in a way not accepted", where=f"{where}: {name}"
        )
    kind = stat.S_IFMT(attributes >> 16)
    if kind not in (0, stat.S_IFREG):
        raise PackageError("member is a link or special file", where=f"{where}: {name}")
    if method == STORED and packed_bytes != size_bytes:
        raise _damaged(where, name, "has two different sizes")
    if size_bytes > limits.member_bytes:
        raise PackageError(
            "member is too large", where=f"{where}: {name}", got=size_bytes, expected=f"at most {limits.member_bytes}"
        )
    return ArchiveMember(name, method, crc32, packed_bytes, size_bytes, offset, 0), end


def _with_local_header(file: BinaryIO, member: ArchiveMember, directory_offset: int, where: object) -> ArchiveMember:
    if directory_offset < _LOCAL.size or member.header_offset > directory_offset - _LOCAL.size:
        raise _damaged(where, member.name, "lies outside the archive")
    header = _read_at(file, member.header_offset, _LOCAL.size, where, member.name)
    magic, _, flags, method, _, _, crc32, packed_bytes, size_bytes, name_bytes, extra_bytes = _LOCAL.unpack(header)
    rest_offset = member.header_offset + _LOCAL.size
    rest = _read_at(file, rest_offset, name_bytes + extra_bytes, where, member.name)
    if (packed_bytes, size_bytes) == (_MAX_32, _MAX_32):  # numpy.savez always writes the sizes this way
        size_bytes, packed_bytes = _zip64_sizes(rest[name_bytes:], where, member.name) or (-1, -1)
    agreed = (member.method, member.crc32, member.packed_bytes, member.size_bytes, member.name.encode())
    found = (method, crc32, packed_bytes, size_bytes, rest[:name_bytes])
    if magic != b"PK\x03\x04" or flags & ~_UTF8_NAME or found != agreed:
        raise _damaged(where, member.name, "local header differs from the central directory")
    data_offset = rest_offset + name_bytes + extra_bytes
    if data_offset > directory_offset or member.packed_bytes > directory_offset - data_offset:
        raise _damaged(where, member.name, "reaches beyond the archive")
    return ArchiveMember(member.name, method, crc32, packed_bytes, size_bytes, member.header_offset, data_offset)


def _zip64_sizes(extra: bytes, where: object, name: str) -> tuple[int, int] | None:
    position = 0
    while len(extra) - position >= 4:
        tag, length = struct.unpack_from("<HH", extra, position)
        position += 4
        if length > len(extra) - position:
            raise _damaged(where, name, "has a damaged extra field")
        if tag == _ZIP64_EXTRA and length >= 16:
            size_bytes, packed_bytes = struct.unpack_from("<QQ", extra, position)
            return size_bytes, packed_bytes
        position += length
    return None


def _check_names(members: list[ArchiveMember], where: object) -> None:
    seen: set[str] = set()
    for member in members:
        if not safe_name(member.name):
            raise PackageError("member name leaves its folder", where=f"{where}: {ascii(member.name)[:120]}")
        if member.name.casefold() in seen:
            raise PackageError("member is there twice", where=f"{where}: {member.name}")
        seen.add(member.name.casefold())


def _check_layout(members: list[ArchiveMember], end: int, where: object, limits: ArchiveLimits) -> None:
    position = 0
    for member in members:
        if member.header_offset != position:
            raise _damaged(where, member.name, "overlaps another member or leaves a gap")
        position = member.data_offset + member.packed_bytes
    if position != end:
        raise _damaged(where, CENTRAL_DIRECTORY, "does not follow the last member")
    total = sum(member.size_bytes for member in members)
    if total > limits.total_bytes:
        raise PackageError(
            "unpacks to too much", where=where, got=total, expected=f"at most {limits.total_bytes} bytes"
        )


def _decode_name(name: bytes, where: object) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise _damaged(where, CENTRAL_DIRECTORY, "holds a name that is not UTF-8") from error


def _read_at(file: BinaryIO, offset: int, size: int, where: object, member: str) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            chunk = os.pread(file.fileno(), size - len(data), offset + len(data))
        except OSError as error:
            raise _damaged(where, member, f"can't be read: {error.strerror}") from error
        if not chunk:
            raise _damaged(where, member, "is truncated")
        data += chunk
    return bytes(data)


def _damaged(where: object, member: str, what: str) -> IntegrityError:
    return IntegrityError(what, where=f"{where}: {printable(member)}")
