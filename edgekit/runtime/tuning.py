"""What `edgekit tune` found, in a file beside the package: written whole, read with suspicion, never needed.

The file model.ekpkg.tune.json holds an entry for each device, keyed by a fingerprint of what the measurement depends
on: cores, CPU features, instruction set, this edgekit and the package. An entry holds a run for each number of threads.
"""

import contextlib
import json
import os
import stat

from edgekit.engines.tuning import LayerChoice
from edgekit.errors import PackageError
from edgekit.package.reader import Package
from edgekit.package.strict_json import convert, parse_json
from edgekit.records import Record, to_builtins

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
        data = _read(tuning_file(package.path))
        if data is None:
            return (), ""
        devices = _parse(data, tuning_file(package.path)).devices
    except (OSError, PackageError) as error:
        return (), f"{error}; delete it, or run: edgekit tune"
    entry = devices.get(this_device(package).fingerprint)
    if entry is None:
        where = tuning_file(package.path)
        return (), f"{where}: is of another device, edgekit or package; run: edgekit tune"
    run = entry.threads.get(str(threads))
    return (run.choices if run is not None else ()), ""


def store_run(package: Package, threads: int, run: TuningRun | None) -> str:
    """Stores what was found; other devices and numbers of threads keep what they have.

    Args:
        package: The package.
        threads: Threads within an inference.
        run: What was found; None: nothing is better, an earlier run is forgotten.

    Returns:
        Path of the file, empty when nothing is left to keep.

    Raises:
        StorageError: No permission, disk full.
    """
    from edgekit.package.storage import write_atomic

    path = tuning_file(package.path)
    try:
        data = _read(path)
        devices = {} if data is None else dict(_parse(data, path).devices)
    except PackageError:
        devices = {}  # of no use to anyone
    devices = {key: entry for key, entry in devices.items() if entry.package == package.sha256}
    mine = this_device(package)
    runs = dict(devices[mine.fingerprint].threads) if mine.fingerprint in devices else {}
    runs.pop(str(threads), None)
    if run is not None:
        runs[str(threads)] = run
    devices.pop(mine.fingerprint, None)
    if runs:
        entry = DeviceTuning(mine.cpu, mine.features, mine.isa, mine.edgekit, mine.package, runs)
        devices[mine.fingerprint] = entry
    if not devices:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 - pathlib costs milliseconds to import
        return ""
    write_atomic(path, (json.dumps(to_builtins(TuningFile(FORMAT, devices)), indent=1) + "\n").encode())
    return path


def _read(path: str) -> bytes | None:
    """The file's bytes; None when there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # non-blocking: it may be a FIFO
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise PackageError("is not a regular file", where=path)
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise PackageError("is too large", where=path, expected=f"at most {MOST_BYTES} bytes")
    return data


def _parse(data: bytes, path: str) -> TuningFile:
    value = parse_json(data, path)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise PackageError("is not a tuning file of this edgekit", where=path)
    return convert(value, TuningFile, path)
