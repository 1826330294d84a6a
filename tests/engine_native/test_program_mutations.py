"""Thousands of mutated programs: loaded or refused in one line, never a crash.

native/tools/ek_fuzz_load does the same at length, also running what loads, under sanitizers (.ci/run builds it so).
"""

from __future__ import annotations

import zlib

import numpy as np
from engine_native.programs import inverter, pointwise

from edgekit import _native
from edgekit.errors import EdgekitError, PackageError
from edgekit.package.program_schema import program_schema

_HEADER = program_schema().records["header"]
_NUMBERS = np.array([0, 1, 63, 64, 65, 255, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], "<u4")


def _seal(data: bytearray) -> bytes:
    header = np.frombuffer(data, _HEADER, 1)[0]
    header["file_bytes"] = len(data)
    header["body_crc32"] = zlib.crc32(memoryview(data)[_HEADER.itemsize :])
    return bytes(data)


def _load(data: bytes) -> bool:
    """Whether it was accepted; anything but a PackageError of one line fails the test."""
    try:
        _native.Program.from_bytes(data, isa="scalar")
    except EdgekitError as error:
        assert isinstance(error, PackageError), type(error)
        assert "\n" not in str(error)
        return False
    return True


def test_every_byte_of_the_tables_mutated() -> None:
    accepted = 0
    for data in (inverter(5, 9), pointwise(3, 4, 16).data):
        tables = int(np.frombuffer(data, _HEADER, 1)[0]["constants_offset"])
        for position in range(8, tables):
            for flip in (0x01, 0x80, 0xFF):
                mutated = bytearray(data)
                mutated[position] ^= flip
                accepted += _load(_seal(mutated))
    assert accepted > 0  # names, MAC counts and the like are free: the mutations do reach the verifier


def test_words_of_the_tables_replaced() -> None:
    rng = np.random.default_rng(3)
    data = inverter(5, 9)
    tables = int(np.frombuffer(data, _HEADER, 1)[0]["constants_offset"])
    refused = 0
    for _ in range(5000):
        mutated = bytearray(data)
        words = np.frombuffer(mutated, "<u4", tables // 4)
        where = rng.integers(2, len(words), rng.integers(1, 4))
        words[where] = rng.choice(_NUMBERS, len(where))
        refused += not _load(_seal(mutated))
    assert refused > 2500  # few words of the tables are free


def test_random_bytes_are_refused() -> None:
    rng = np.random.default_rng(4)
    for size in rng.integers(1, 4096, 300):
        data = bytearray(rng.bytes(int(size)))
        data[:8] = b"EKNPROG1"[: len(data)]
        assert not _load(bytes(data))
