"""ONNX Runtime, with whatever execution providers it was built with."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from edgekit.engines.artefacts import read_member_bytes
from edgekit.engines.base import Array, Artefact, Capabilities, EngineOptions, LayerTime
from edgekit.engines.feeds import check_feeds
from edgekit.engines.forking import never_destroy_in_child
from edgekit.engines.guard import SessionGuard
from edgekit.engines.library import import_library
from edgekit.engines.onnxruntime_profile import read_profile
from edgekit.errors import DeviceError, EdgekitError, EngineError, PackageError, UsageError
from edgekit.package.manifest import Variant

CPU = "CPUExecutionProvider"
_SUFFIX = "ExecutionProvider"
# How names of session configuration entries begin: onnxruntime_session_options_config_keys.h.
_SETTINGS = ("session.", "optimization.", "memory.", "mlas.", "ep.")
_FATAL_ONLY = (
    4  # errors reach the caller as exceptions; the library's own lines on stderr would break the one-line rule
)


def open_onnx_session(
    model: bytes,
    threads: int,
    provider: str = CPU,
    settings: Mapping[str, Any] | None = None,
    profile: Path | None = None,
) -> Any:
    """Makes an onnxruntime.InferenceSession.

    Args:
        model: The .onnx file; it must not refer to external data.
        threads: Threads within an inference; 0: as many as ONNX Runtime likes.
        provider: Execution provider; the CPU takes what it can't.
        settings: Session configuration entries, by ONNX Runtime's own names.
        profile: Where to write a profile; None: none is made.

    Raises:
        MissingDependencyError: onnxruntime is not installed.
        DeviceError: The provider does not work here.
        PackageError: The model is refused.
    """
    library = _library()
    options = library.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL_ONLY
    options.add_session_config_entry("session.force_spinning_stop", "1")  # workers must not spin between inferences
    for key, value in (settings or {}).items():
        options.add_session_config_entry(key, str(value))
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    providers = [provider] if provider == CPU else [provider, CPU]
    try:
        session = library.InferenceSession(model, options, providers=providers)
    except Exception as error:  # the library's classes share no base but Exception
        # On x86 ONNX Runtime rewrites s8 activations to u8, and from opset 21 on may fail doing so (1.32); told to
        # leave them it takes such models, if slowly.
        options.add_session_config_entry("session.qdqisint8allowed", "1")
        session = _session_or_none(library, model, options) if provider == CPU else None
        if session is None:
            raise PackageError("ONNX Runtime refuses the model", got=_first_line(error)) from error
    never_destroy_in_child(session)
    if provider not in session.get_providers():  # the library falls back to the CPU with no more than a log line
        raise DeviceError("execution provider does not work here", got=session.get_providers(), expected=provider)
    return session


def _session_or_none(library: ModuleType, model: bytes, options: Any) -> Any | None:
    try:
        return library.InferenceSession(model, options, providers=[CPU])
    except Exception:  # see open_onnx_session, which reports the first refusal
        return None


class OnnxRuntimeEngine:
    """See Engine. Devices are execution providers without their suffix: CPU, CUDA, TENSORRT, QNN, ..."""

    name = "onnxruntime"

    def capabilities(self) -> Capabilities:
        """See Engine."""
        try:
            library = _library()
        except EdgekitError as error:
            return Capabilities(False, reason=str(error))
        devices = tuple(name.removesuffix(_SUFFIX).upper() for name in _providers(library))
        return Capabilities(True, version=library.__version__, devices=devices)

    def supports(self, variant: Variant) -> str | None:
        """See Engine."""
        if variant.engine != self.name:
            return f"variant is made for {variant.engine}"
        capabilities = self.capabilities()
        return None if capabilities.available else capabilities.reason

    def compile(self, artefact: Artefact, options: EngineOptions) -> OnnxRuntimeModel:
        """See Engine.

        Raises:
            UsageError: A setting can't be one of ONNX Runtime's.
            DeviceError: No such device here.
        """
        for name in options.settings:
            if not name.startswith(_SETTINGS):  # the library itself passes over names that it does not know
                known = ", ".join(f"{prefix}*" for prefix in _SETTINGS)
                raise UsageError("no such setting of engine onnxruntime", got=ascii(name)[:60], expected=known)
        return OnnxRuntimeModel(artefact, options, _provider_of(options.device))


class OnnxRuntimeModel:
    """See CompiledModel."""

    def __init__(self, artefact: Artefact, options: EngineOptions, provider: str) -> None:
        self.inputs = artefact.inputs
        self.outputs = artefact.outputs
        self.buckets = artefact.buckets
        self.isa = provider.removesuffix(_SUFFIX).lower()
        self.guard = SessionGuard("onnxruntime model")
        self._artefact = artefact
        self._options = options
        self._provider = provider
        self._session: Any = self._open()
        _check_names(self._session, artefact)

    def _open(self, profile: Path | None = None) -> Any:
        model = read_member_bytes(self._artefact, self._artefact.variant.members[0])
        return open_onnx_session(model, self._options.threads, self._provider, self._options.settings, profile)

    def create_session(self) -> OnnxRuntimeSession:
        """See CompiledModel."""
        self.guard.check_open()
        return OnnxRuntimeSession(self)

    def memory_bytes(self) -> dict[str, int]:
        """See CompiledModel; ONNX Runtime does not tell."""
        return {}

    def close(self) -> None:
        """See CompiledModel."""
        if self.guard.close():
            self._session = None

    def infer(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Runs once; the library lets several threads do so at once."""
        return run_onnx_session(self._session, feeds, [spec.name for spec in self.outputs])

    def profile_layers(self, feeds: Mapping[str, Array]) -> list[LayerTime]:
        """Runs in a session of its own that writes a profile, three times, and reads the last."""
        with tempfile.TemporaryDirectory(prefix="edgekit-") as folder:
            session = self._open(Path(folder) / "profile")
            for _ in range(3):
                run_onnx_session(session, feeds, [spec.name for spec in self.outputs])
            return read_profile(Path(session.end_profiling()))


class OnnxRuntimeSession:
    """See Session."""

    def __init__(self, model: OnnxRuntimeModel) -> None:
        self._model = model
        self._guard = SessionGuard("onnxruntime session", model.guard)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See Session."""
        with self._guard:
            check_feeds(feeds, self._model.inputs, self._model.buckets)
            return self._model.infer(feeds)

    def profile(self, feeds: Mapping[str, Array]) -> list[LayerTime]:
        """See Session."""
        with self._guard:
            check_feeds(feeds, self._model.inputs, self._model.buckets)
            return self._model.profile_layers(feeds)

    def close(self) -> None:
        """See Session."""
        self._guard.close()


def run_onnx_session(session: Any, feeds: Mapping[str, Array], outputs: list[str]) -> dict[str, Array]:
    """Runs an onnxruntime.InferenceSession once.

    Raises:
        EngineError: It failed.
    """
    try:
        values = session.run(outputs, {name: np.ascontiguousarray(array) for name, array in feeds.items()})
    except Exception as error:  # the library's classes share no base but Exception
        raise EngineError("ONNX Runtime failed", got=_first_line(error)) from error
    return dict(zip(outputs, values, strict=True))


@functools.cache
def _library() -> ModuleType:
    library = import_library("onnxruntime", "onnxruntime")
    library.disable_telemetry_events()
    library.set_default_logger_severity(_FATAL_ONLY)
    return library


def _providers(library: ModuleType) -> list[str]:
    return sorted(library.get_available_providers(), key=lambda name: name != CPU)


def _provider_of(device: str | None) -> str:
    if device is None:
        return CPU
    library = _library()
    for provider in _providers(library):
        if device.lower() in (provider.lower(), provider.removesuffix(_SUFFIX).lower()):
            return provider
    names = ", ".join(name.removesuffix(_SUFFIX).upper() for name in _providers(library))
    raise DeviceError("this ONNX Runtime has no such device", got=ascii(device)[:60], expected=names)


def _check_names(session: Any, artefact: Artefact) -> None:
    for kind, specs, values in (
        ("input", artefact.inputs, session.get_inputs()),
        ("output", artefact.outputs, session.get_outputs()),
    ):
        names = {value.name for value in values}
        missing = [spec.name for spec in specs if spec.name not in names]
        if missing or (kind == "input" and len(names) != len(specs)):
            where = artefact.variant.members[0]
            raise PackageError(f"{kind}s differ from the manifest's", where=where, got=sorted(names), expected=missing)


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:240]
