"""What `edgekit tune` found, in a file beside the package: written whole, read with suspicion, never needed.

The file model.ekpkg.tune.json holds an entry for each device, keyed by a fingerprint of what the measurement depends
on: cores, CPU features, instruction set, this edgekit and the package. An entry holds a run for each number of threads.
"""

import contextlib
import json
import os
import stat
from collections.abc import Iterator

from edgekit.engines.tuning import LayerChoice
from edgekit.errors import PackageError
from edgekit.package.reader import Package
from edgekit.package.strict_json import convert, parse_json
from edgekit.records import Record, replace, to_builtins

FORMAT = 1
MOST_BYTES = 4 << 20


class TuningRun(Record, closed=True):
    """What was found with one number of threads.

    Attributes:
        default_ms, tuned_ms: Median latency without and with it.
        choices: Layers that run otherwise than by themselves.
    """

    default_ms: float
    tuned_ms: float
    choices: tuple[LayerChoice, ...]


class DeviceTuning(Record, closed=True):
    """One entry.

    Attributes:
        cpu, features, isa, edgekit, package: What the fingerprint is made of.
        threads: Number of threads, as text, to run.
    """

    cpu: str
    features: tuple[str, ...]
    isa: str
    edgekit: str
    package: str
    threads: dict[str, TuningRun]

    @property
    def fingerprint(self) -> str:
        """Key of the entry."""
        from edgekit import _native

        known = [self.cpu, *self.features, self.isa, self.edgekit, self.package]
        return _native.sha256(json.dumps(known).encode())[:16]


class TuningFile(Record, closed=True):
    """The whole file."""

    format: int
    devices: dict[str, DeviceTuning]


class StoredRun(Record):
    """What storing a run did.

    Attributes:
        path: Of the file; empty when there is nothing to keep.
        notes: A line for each thing that the file held and no longer holds, with the reason.
    """

    path: str
    notes: tuple[str, ...]


def tuning_file(package: str) -> str:
    """Path of the file for a package's path."""
    return f"{package}.tune.json"


def this_device(package: Package) -> DeviceTuning:
    """An entry for this device and package, without runs."""
    import edgekit
    from edgekit import _native

    features, isa = tuple(sorted(_native.cpu_features())), _native.active_isa()
    return DeviceTuning(_cores(), features, isa, edgekit.__version__, package.sha256, {})


def _cores() -> str:
    """How many cores of which kinds, as /proc/cpuinfo names them. Not edgekit.target, which a load need not import."""
    kinds: dict[str, int] = {}
    with contextlib.suppress(OSError), open("/proc/cpuinfo", "rb") as file:  # noqa: PTH123 - pathlib costs milliseconds
        for line in file.read().decode(errors="replace").splitlines():
            if line.startswith(("model name", "CPU part")):
                kind = " ".join(line.partition(":")[2].split())
                kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(f"{count}x {kind}" for kind, count in sorted(kinds.items())) or f"{os.cpu_count()}x unknown"


def stored_choices(package: Package, threads: int) -> tuple[tuple[LayerChoice, ...], str]:
    """Looks for what was found on this device.

    Args:
        package: The package.
        threads: Threads within an inference.

    Returns:
        The choices, and a line that says why a file that is there is of no use; both empty when there is no file, or
        none of this number of threads.
    """
    try:
        devices = stored_devices(package)
    except PackageError as error:
        return (), str(error)
    if devices is None:
        return (), ""
    entry = devices.get(this_device(package).fingerprint)
    if entry is None:
        where = tuning_file(package.path)
        return (), f"{where}: is of another device, edgekit or package; run: edgekit tune"
    run = entry.threads.get(str(threads))
    return (run.choices if run is not None else ()), ""


def stored_devices(package: Package) -> dict[str, DeviceTuning] | None:
    """Reads the whole file.

    Returns:
        Fingerprint to entry; None when there is no file.

    Raises:
        PackageError: It can't be read, or is no tuning file of this edgekit.
    """
    path = tuning_file(package.path)
    try:
        data = _read(path)
        return None if data is None else _parse(data, path).devices
    except PackageError as error:
        hint = "move or delete it, then run: edgekit tune"
        raise PackageError(error.what, where=error.where, got=error.got, expected=error.expected, hint=hint) from error


def untuned_note(package: Package, threads: set[int]) -> str:
    """Says that this device is tuned, but not for all of some numbers of threads.

    Args:
        package: The package.
        threads: Numbers of threads within an inference that are to run.

    Returns:
        One line; empty when each has a tuning, or none has, or the file is of no use, which a load tells.
    """
    try:
        entry = (stored_devices(package) or {}).get(this_device(package).fingerprint)
    except PackageError:
        return ""
    tuned = [count for count in entry.threads if count.isdecimal() and len(count) < 4] if entry is not None else []
    missing = [count for count in sorted(threads) if str(count) not in tuned]
    if not tuned or not missing:
        return ""
    used = f"{tuning_file(package.path)} is used with --threads {' or '.join(tuned)} only"
    cure = f"edgekit tune {package.path} --threads {missing[0]}"
    return f"{used}; with {thread_count(missing[0])} the package runs untuned, to change that: {cure}"


def thread_count(count: int) -> str:
    """Writes a number of threads: "1 thread", "2 threads"."""
    return f"{count} thread{'s' * (count != 1)}"


def store_run(package: Package, threads: int, run: TuningRun | None) -> StoredRun:
    """Stores what was found; other devices and numbers of threads keep what they have.

    Args:
        package: The package.
        threads: Threads within an inference.
        run: What was found; None: nothing is better, an earlier run is forgotten.

    Returns:
        Where it is kept, and what it took the place of.

    Raises:
        PackageError: What lies in the file's place is no tuning file of this edgekit; it is left alone.
        StorageError: No permission, disk full.
    """
    with _only_writer(package):
        return _store_run(package, threads, run)


@contextlib.contextmanager
def _only_writer(package: Package) -> Iterator[None]:
    """Lets one process at a time change what is stored: each reads the file, changes it and writes it anew.

    The lock is the package's own, so that no file of locks stays behind. A file system that knows none goes without.
    """
    import fcntl

    with open(package.path, "rb") as locked:  # noqa: PTH123 - pathlib costs milliseconds to import
        with contextlib.suppress(OSError):
            fcntl.flock(locked, fcntl.LOCK_EX)
        yield


def _store_run(package: Package, threads: int, run: TuningRun | None) -> StoredRun:
    from edgekit.package.storage import write_atomic

    path = tuning_file(package.path)
    known = stored_devices(package) or {}
    devices = {key: entry for key, entry in known.items() if entry.package == package.sha256}
    notes = []
    if stale := len(known) - len(devices):
        notes.append(f"removed from {path}: {stale} of a package that this one has replaced")
    mine = this_device(package)
    runs = dict(devices.pop(mine.fingerprint, mine).threads)
    if (earlier := runs.pop(str(threads), None)) is not None:
        notes.append(_fate(earlier, path, threads, replaced=run is not None))
    if run is not None:
        runs[str(threads)] = run
    if runs:
        devices[mine.fingerprint] = replace(mine, threads=runs)
    if devices:
        write_atomic(path, (json.dumps(to_builtins(TuningFile(FORMAT, devices)), indent=1) + "\n").encode())
        return StoredRun(path, tuple(notes))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - pathlib costs milliseconds to import
    if notes:
        notes[-1] += "; nothing is left in it, it is deleted"
    return StoredRun("", tuple(notes))


def _fate(earlier: TuningRun, path: str, threads: int, *, replaced: bool) -> str:
    what = (
        f"{path}: the earlier tuning for {thread_count(threads)} "
        f"({earlier.default_ms:.4g} -> {earlier.tuned_ms:.4g} ms, {len(earlier.choices)} layers)"
    )
    return f"replaced in {what} by this one" if replaced else f"removed from {what}, as this run finds none that gains"


def _read(path: str) -> bytes | None:
    """The file's bytes; None when there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # non-blocking: it may be a FIFO
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PackageError(f"can't be read: {error.strerror}", where=path) from error
    try:
        # Before fdopen(), which would name a folder by the number of its descriptor.
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PackageError("is not a regular file", where=path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise PackageError(f"can't be read: {error.strerror}", where=path) from error
    finally:
        os.close(descriptor)
    if len(data) > MOST_BYTES:
        raise PackageError("is too large", where=path, expected=f"at most {MOST_BYTES} bytes")
    return data


def _parse(data: bytes, path: str) -> TuningFile:
    value = parse_json(data, path)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise PackageError("is not a tuning file of this edgekit", where=path)
    return convert(value, TuningFile, path)
