"""Atomic files: whatever edgekit writes is old or new as a whole, never a mix and never empty.

The temporary file lies in the folder of the target, so that the rename stays on one filesystem; it is written, flushed
to the disk, renamed, and the folder is flushed too, so that a power cut after the return can't undo the rename.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from edgekit.errors import StorageError, UsageError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_RESERVATION = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENODEV}
_LEAST_BYTES = 16 << 10  # a disk without room for these counts as full


def check_output(target: Path, sources: Iterable[Path] = ()) -> None:
    """Checks before any work is done that a file can be written, by making one in its folder for a moment.

    Args:
        target: The file to be written.
        sources: Files and folders that it is made of; links count as what they lead to.

    Raises:
        UsageError: It is one of the sources, or a file in one of the folders.
        StorageError: No such folder, no permission, no space, or a folder of that name.
    """
    with contextlib.suppress(OSError, ValueError):  # what can't be examined is no source that could be read
        status = target.stat()
        for source in sources:
            if _is_or_holds(source, status):
                raise UsageError(
                    "would be written over its own source", where=target, hint="choose another name for the output"
                )
    # Only trying tells: root may write where a read-only or virtual file system still takes no file.
    try:
        temporary, descriptor = _create_temporary(target)
        try:
            _reserve(descriptor, _LEAST_BYTES)
        finally:
            os.close(descriptor)
            temporary.unlink()
    except OSError as error:
        raise storage_error(target, error) from error


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it; one that is there is left as it is.

    Raises:
        StorageError: No permission, no space, or a file of that name.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(folder, error) from error


def _is_or_holds(source: Path, status: os.stat_result) -> bool:
    with contextlib.suppress(OSError, ValueError):
        files = source.iterdir() if source.is_dir() else (source,)
        return any(os.path.samestat(status, file.stat()) for file in files if file.exists())
    return False


def write_atomic(path: str | Path, data: bytes | bytearray | memoryview) -> None:
    """Writes a whole file atomically.

    Args:
        path: The file; an existing one is replaced only once the new one is safe on the disk.
        data: Its contents.

    Raises:
        StorageError: Disk full, no permission, no such folder; the old file is as it was.
    """
    with atomic_file(path, size_bytes=len(data)) as file:
        file.write(data)


@contextlib.contextmanager
def atomic_file(path: str | Path, *, size_bytes: int | None = None) -> Iterator[BinaryIO]:
    """Opens a file for atomic writing; it takes its name when the block ends without an exception.

    Args:
        path: The file.
        size_bytes: Its final size where known: the space is reserved first, so that a full disk shows at once.

    Yields:
        A binary file, writable and seekable.

    Raises:
        StorageError: Disk full, no permission, no such folder; nothing half-written remains.
    """
    target = Path(path)
    try:
        temporary, descriptor = _create_temporary(target)
    except OSError as error:
        raise storage_error(target, error, size_bytes) from error
    written = 0
    try:
        with os.fdopen(descriptor, "w+b") as file:
            _reserve(file.fileno(), size_bytes)
            yield cast(BinaryIO, file)
            file.flush()
            written = file.tell()
            os.fsync(file.fileno())
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise storage_error(target, error, size_bytes or written or None) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _create_temporary(target: Path) -> tuple[Path, int]:
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
    return temporary, os.open(temporary, flags, 0o666)


def _reserve(descriptor: int, size_bytes: int | None) -> None:
    if not size_bytes or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, size_bytes)
    except OSError as error:
        if error.errno not in _NO_RESERVATION:
            raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_RESERVATION:  # some network filesystems can't flush a folder
            raise
    finally:
        os.close(descriptor)


def storage_error(target: Path, error: OSError, size_bytes: int | None = None) -> StorageError:
    """Says why a file or folder can't be written, and what to do.

    Args:
        target: Its path.
        error: What the system said.
        size_bytes: How much was to be written, where known.

    Returns:
        The error to raise.
    """
    need = f"{size_bytes} bytes" if size_bytes else None
    if error.errno in _FULL:
        return StorageError(
            "the disk is full or a size limit is reached",
            where=target,
            got=f"{_free_bytes(target.parent)} bytes free",
            expected=need,
            hint="free some space; nothing was written",
        )
    if error.errno in _REFUSED:
        return StorageError("no permission to write", where=target, hint="choose another path; nothing was written")
    if error.errno in (errno.ENOENT, errno.ENOTDIR) and not target.parent.is_dir():
        return StorageError("no such folder", where=target.parent, hint="create it first; nothing was written")
    if error.errno == errno.ENOENT:  # a virtual file system, such as /proc
        return StorageError("takes no files", where=target.parent, hint="choose another folder; nothing was written")
    return StorageError(
        f"can't be written: {error.strerror or error}",
        where=target,
        expected=need,
        hint="choose another path; nothing was written",
    )


def _free_bytes(folder: Path) -> int | str:
    try:
        status = os.statvfs(folder)
    except OSError:
        return "unknown"
    return status.f_bavail * status.f_frsize
