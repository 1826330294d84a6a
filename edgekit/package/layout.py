"""The one way in which an .ekpkg lays out its bytes, used by the writer to write and by the reader to compare.

Every member is stored, starts on a 64-byte boundary and follows the one before without a gap; times are 1980-01-01, so
that the same contents give the same file. Since names, sizes and CRC-32s determine every structural byte, the reader
rebuilds them and compares: a bit that flips anywhere outside the members' data is found. The archive's comment holds
the SHA-256 of manifest.json, and manifest.json that of every other member.

Padding is the extra field 0xD935 (u16 alignment, then zeros) that zipalign of the Android SDK introduced.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from edgekit.records import Record

MANIFEST_MEMBER = "manifest.json"
ALIGNMENT_BYTES = 64
MAX_PACKAGE_BYTES = (4 << 30) - 1

_ALIGNMENT_TAG = 0xD935
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_VERSION_NEEDED = 20
_MADE_BY_UNIX = 3 << 8 | _VERSION_NEEDED
_UTF8_NAME = 0x800
_DATE_1980 = 0x21
_HEX_DIGITS = frozenset("0123456789abcdef")
_REGULAR_FILE_644 = 0o100644 << 16
_COMMENT = b"edgekit-package manifest-sha256="


class MemberKey(Record):
    """What determines the structure around one member: its name, size in bytes and CRC-32 (ISO 3309)."""

    name: str
    size_bytes: int
    crc32: int


class PlacedMember(Record):
    """A member with the bytes of its local header and its place in the file."""

    key: MemberKey
    header: bytes
    header_offset: int
    data_offset: int


class Layout(Record):
    """All structural bytes of a package: local headers with their places, then the end (directory and end record)."""

    members: tuple[PlacedMember, ...]
    end_offset: int
    end: bytes

    @property
    def size_bytes(self) -> int:
        """Size of the whole file."""
        return self.end_offset + len(self.end)


def plan_layout(keys: Sequence[MemberKey], manifest_sha256: str) -> Layout:
    """Places members in the order given.

    Args:
        keys: manifest.json first.
        manifest_sha256: Hash of manifest.json, 64 hex digits.
    """
    placed = []
    offset = 0
    for key in keys:
        member = _place(key, offset)
        placed.append(member)
        offset = member.data_offset + key.size_bytes
    directory = b"".join(_central_record(member) for member in placed)
    comment = _COMMENT + manifest_sha256.encode()
    count = len(placed)
    # Fields over 32 bits are the writer's to refuse; clamped here so that it can still learn the size.
    start = min(offset, 0xFFFFFFFF)
    end_record = _END.pack(b"PK\x05\x06", 0, 0, count, count, len(directory), start, len(comment))
    return Layout(tuple(placed), offset, directory + end_record + comment)


def manifest_sha256_of_comment(comment: bytes) -> str | None:
    """Returns the hash of manifest.json that an archive's comment holds, or None when it is no package's comment."""
    digest = comment.removeprefix(_COMMENT)
    if len(comment) != len(_COMMENT) + 64 or len(digest) != 64 or not is_sha256(digest.decode("latin-1")):
        return None
    return digest.decode()


def is_sha256(text: str) -> bool:
    """Tells whether a text is 64 lower-case hex digits."""
    return len(text) == 64 and set(text) <= _HEX_DIGITS


def _place(key: MemberKey, offset: int) -> PlacedMember:
    name = key.name.encode()
    unpadded = offset + _LOCAL.size + len(name) + 6
    padding = -unpadded % ALIGNMENT_BYTES
    extra = struct.pack("<HHH", _ALIGNMENT_TAG, 2 + padding, ALIGNMENT_BYTES) + bytes(padding)
    size = min(key.size_bytes, 0xFFFFFFFF)
    sizes = (key.crc32, size, size, len(name), len(extra))
    fixed = _LOCAL.pack(b"PK\x03\x04", _VERSION_NEEDED, _flags(key), 0, 0, _DATE_1980, *sizes)
    header = fixed + name + extra
    return PlacedMember(key, header, offset, offset + len(header))


def _central_record(member: PlacedMember) -> bytes:
    key = member.key
    name = key.name.encode()
    size = min(key.size_bytes, 0xFFFFFFFF)
    offset = min(member.header_offset, 0xFFFFFFFF)
    versions = (b"PK\x01\x02", _MADE_BY_UNIX, _VERSION_NEEDED, _flags(key), 0, 0, _DATE_1980)
    lengths = (len(name), 0, 0, 0, 0)
    return _CENTRAL.pack(*versions, key.crc32, size, size, *lengths, _REGULAR_FILE_644, offset) + name


def _flags(key: MemberKey) -> int:
    return 0 if key.name.isascii() else _UTF8_NAME
