"""Reading .npy and .npz without trust: no pickles, sizes checked against the bytes that are there, bounded unpacking.

Format: numpy.lib.format (NEP 1), versions 1.0 to 3.0.
"""

from __future__ import annotations

import io
import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgekit.errors import EdgekitError, InputError, PackageError
from edgekit.package.archive import DEFLATED, STORED, ArchiveLimits, read_archive, read_member

MAX_ARRAY_BYTES = 1 << 30
_MAX_HEADER_BYTES = 10_000
_KINDS = "biuf"
_LIMITS = ArchiveLimits(
    members=1024, member_bytes=MAX_ARRAY_BYTES, total_bytes=2 * MAX_ARRAY_BYTES, methods=(STORED, DEFLATED)
)


def parse_npy(data: bytes, where: object) -> NDArray[Any]:
    """Decodes the contents of a .npy file.

    Args:
        data: The whole file.
        where: Its name, for messages.

    Returns:
        A fresh array of a bool, integer or float dtype, in C order.

    Raises:
        InputError: Not a .npy file, of Python objects, or of another size than its header says.
    """
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = read_header(stream, max_header_size=_MAX_HEADER_BYTES)
    except Exception as error:  # numpy parses the header as Python source: ast and tokenize raise whatever they like
        raise InputError("is not a .npy array", where=where, got=str(error)[:120]) from error
    if dtype.kind not in _KINDS or dtype.hasobject:
        raise InputError(
            "array has a dtype that is not accepted", where=where, got=dtype, expected="bool, int or float"
        )
    if any(not isinstance(dim, int) or dim < 0 for dim in shape):
        raise InputError("array has a malformed shape", where=where, got=ascii(shape)[:80])
    body = data[stream.tell() :]
    if math.prod(shape) * dtype.itemsize != len(body):
        raise InputError("array does not have the size its header says", where=where, got=f"{len(body)} bytes")
    array = np.frombuffer(body, dtype).reshape(shape, order="F" if fortran_order else "C")
    return np.array(array, dtype.newbyteorder("="), order="C")


def format_npy(array: NDArray[Any]) -> bytes:
    """Encodes an array as a .npy file, version 1.0 where possible, without pickles."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
    return stream.getvalue()


def read_npy(path: str | Path) -> NDArray[Any]:
    """Reads a .npy file.

    Raises:
        InputError: Missing, larger than 1 GiB, or not a plain array.
    """
    where = Path(path)
    try:
        status = where.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_ARRAY_BYTES:
            raise InputError("is not a file of at most 1 GiB", where=where)
        return parse_npy(where.read_bytes(), where)
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror or error}", where=where) from error


def read_npz(path: str | Path) -> dict[str, NDArray[Any]]:
    """Reads a .npz file as numpy.savez and numpy.savez_compressed write it.

    Returns:
        Array name (without .npy) to array.

    Raises:
        InputError: Missing, damaged, hostile, or holding something else than plain arrays.
    """
    where = Path(path)
    arrays = {}
    try:
        descriptor = os.open(where, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError("is not a regular file", where=where)
            for member in read_archive(file, where, _LIMITS).members:
                label = f"{where}: {member.name}"
                arrays[member.name.removesuffix(".npy")] = parse_npy(read_member(file, member, where), label)
    except PackageError as error:  # said of a package elsewhere; here it is the user's data
        raise InputError(str(error)) from error
    except EdgekitError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"can't be read: {getattr(error, 'strerror', None) or error}", where=where) from error
    return arrays
