"""All errors that edgekit raises, in one tree.

    EdgekitError                     exit code 1: a fault of ours, unless a subclass says otherwise
    |-- InternalError                1  an invariant of edgekit is broken; please report it
    |-- InputError                   2  what the user gave is wrong
    |   |-- UsageError               2  a command-line option or an argument of a call
    |   |-- ModelError               2  a model file: missing, truncated, not a model, hostile
    |   |   `-- UnsupportedError     2  a valid model that uses what no engine here can run: op, opset, dtype
    |   |-- PackageError             2  an .ekpkg file: damaged, hostile, not a package
    |   |   |-- IntegrityError       2  a hash, size or checksum differs
    |   |   `-- PackageVersionError  2  written by a newer edgekit
    |   |-- TensorError              2  names, shapes or dtypes given to run()
    |   |-- ProfileError             2  a device profile: unknown, malformed
    |   |-- CalibrationError         2  calibration data: missing, unreadable, of the wrong shape
    |   |-- ImageError               2  a picture that can't be decoded, or is refused for its size
    |   `-- SourceError              2  a video, camera or stream that can't be opened or read
    |-- GateError                    3  a conversion misses its accuracy gate; nothing was written
    |-- EnvironmentFaultError        4  the machine lacks something
    |   |-- MissingDependencyError   4  an optional package is not installed (the extra is named)
    |   |-- DeviceError              4  a device or engine is not there, or does not answer
    |   |   `-- IsaError             4  the CPU lacks an instruction set that the package needs
    |   `-- StorageError             4  disk full, read-only, no permission: nothing half-written remains
    `-- EngineError                  1  an engine failed while it ran
        |-- RetryableError           1  the same call may succeed again
        |-- DeviceLostError          4  the accelerator is gone until it is opened anew
        `-- FatalEngineError         1  the session is unusable

Every error is one line: what happened, where, what was got and what was expected, and what to do about it.
"""

from __future__ import annotations


class EdgekitError(Exception):
    """Base of all errors of edgekit.

    Args:
        what: What happened, as a short sentence without a final full stop.
        where: File, member, layer, option or tensor it is about.
        got: What was found.
        expected: What would have been right.
        hint: What to do about it.
    """

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        where: object = None,
        got: object = None,
        expected: object = None,
        hint: str | None = None,
    ) -> None:
        self.what = what
        self.where = where
        self.got = got
        self.expected = expected
        self.hint = hint
        super().__init__(self._line())

    def _line(self) -> str:
        text = self.what if self.where is None else f"{self.where}: {self.what}"
        details = [
            f"{word} {value}" for word, value in (("got", self.got), ("expected", self.expected)) if value is not None
        ]
        if details:
            text = f"{text} ({', '.join(details)})"
        if self.hint:
            text = f"{text}; {self.hint}"
        line = " ".join(text.split())
        return printable(line)


def printable(text: str) -> str:
    """Escapes control characters and lone surrogates, so that hostile names can't steer a terminal or break a line."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class InternalError(EdgekitError):
    """An invariant of edgekit is broken."""


class InputError(EdgekitError):
    """What the user gave is wrong."""

    exit_code = 2


class UsageError(InputError):
    """A command-line option or an argument of a call is wrong."""


class ModelError(InputError):
    """A model file is missing, truncated, hostile or not a model."""


class UnsupportedError(ModelError):
    """A valid model uses what no engine here can run."""


class PackageError(InputError):
    """An .ekpkg file is damaged, hostile or not a package."""


class IntegrityError(PackageError):
    """A hash, size or checksum of a package member differs."""


class PackageVersionError(PackageError):
    """A package was written by a newer edgekit."""


class TensorError(InputError):
    """Names, shapes or dtypes given to run() are wrong."""


class ProfileError(InputError):
    """A device profile is unknown or malformed."""


class CalibrationError(InputError):
    """Calibration data are missing, unreadable or of the wrong shape."""


class ImageError(InputError):
    """A picture can't be decoded, or is refused for its size."""


class SourceError(InputError):
    """A video, camera or stream can't be opened or read."""


class GateError(EdgekitError):
    """A conversion misses its accuracy gate; nothing was written."""

    exit_code = 3


class EnvironmentFaultError(EdgekitError):
    """The machine lacks something."""

    exit_code = 4


class MissingDependencyError(EnvironmentFaultError):
    """An optional package is not installed."""


class DeviceError(EnvironmentFaultError):
    """A device or engine is not there, or does not answer."""


class IsaError(DeviceError):
    """The CPU lacks an instruction set that the package needs."""


class StorageError(EnvironmentFaultError):
    """Disk full, read-only or no permission; nothing half-written remains."""


class EngineError(EdgekitError):
    """An engine failed while it ran."""


class RetryableError(EngineError):
    """The same call may succeed again."""


class DeviceLostError(EngineError):
    """The accelerator is gone until it is opened anew."""

    exit_code = 4


class FatalEngineError(EngineError):
    """The session is unusable."""
