"""OpenVINO: CPU, GPU, NPU or AUTO."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from edgekit.engines.artefacts import read_member_bytes
from edgekit.engines.base import Array, Artefact, Capabilities, EngineOptions, LayerTime
from edgekit.engines.feeds import check_feeds
from edgekit.engines.forking import never_destroy_in_child
from edgekit.engines.guard import SessionGuard
from edgekit.engines.library import import_library
from edgekit.errors import DeviceError, EdgekitError, EngineError, PackageError, UsageError
from edgekit.package.manifest import Variant
from edgekit.package.specs import TensorSpec
from edgekit.telemetry import withhold_openvino_telemetry


class OpenVinoEngine:
    """See Engine. Devices are OpenVINO's own: CPU, GPU, GPU.1, NPU, and AUTO."""

    name = "openvino"

    def capabilities(self) -> Capabilities:
        """See Engine."""
        try:
            library = _library()
            devices = (*_core().available_devices, "AUTO")
        except EdgekitError as error:
            return Capabilities(False, reason=str(error))
        except Exception as error:  # a plug-in of a device may fail in any way; that must not raise here
            return Capabilities(False, reason=f"OpenVINO does not work here: {_one_line(error)}")
        return Capabilities(True, version=library.__version__.split("-")[0], devices=devices)

    def supports(self, variant: Variant) -> str | None:
        """See Engine."""
        if variant.engine != self.name:
            return f"variant is made for {variant.engine}"
        capabilities = self.capabilities()
        return None if capabilities.available else capabilities.reason

    def compile(self, artefact: Artefact, options: EngineOptions) -> OpenVinoModel:
        """See Engine.

        Raises:
            UsageError: The library refuses the settings.
            DeviceError: No such device here.
        """
        _library()
        device = (options.device or "CPU").upper()
        present = [*_core().available_devices, "AUTO"]
        if device.split(":")[0] not in present:
            raise DeviceError("OpenVINO finds no such device", got=ascii(device)[:60], expected=", ".join(present))
        return OpenVinoModel(artefact, options, device)


class OpenVinoModel:
    """See CompiledModel."""

    def __init__(self, artefact: Artefact, options: EngineOptions, device: str) -> None:
        self.inputs = artefact.inputs
        self.outputs = artefact.outputs
        self.buckets = artefact.buckets
        self.isa = device.lower()
        self.guard = SessionGuard("openvino model")
        self._artefact = artefact
        self._options = options
        self._device = device
        self.compiled: Any = self._compile(profiling=False)
        self.input_indices = _match(artefact.inputs, self.compiled.inputs, "input")
        never_destroy_in_child(self)
        self.output_indices = _match(artefact.outputs, self.compiled.outputs, "output")

    def _compile(self, profiling: bool) -> Any:
        members = self._artefact.variant.members
        xml, weights = (read_member_bytes(self._artefact, member) for member in _xml_and_bin(members))
        config = {"PERFORMANCE_HINT": "LATENCY", "PERF_COUNT": profiling, **self._options.settings}
        if self._device == "CPU":
            # Pinning would put every process on the same cores; a precision below the package's is not ours to pick.
            config = {"ENABLE_CPU_PINNING": False, "INFERENCE_PRECISION_HINT": "f32", **config}
            if self._options.threads:
                config["INFERENCE_NUM_THREADS"] = self._options.threads
        try:
            model = _core().read_model(xml, weights)
            return _core().compile_model(model, self._device, config)
        except Exception as error:  # OpenVINO raises RuntimeError for everything, also from other libraries' classes
            if self._options.settings:
                names = ascii(", ".join(self._options.settings))[1:-1][:80]
                raise UsageError("OpenVINO refuses the settings", where=names, got=_one_line(error)) from error
            raise PackageError("OpenVINO refuses the model", where=members[0], got=_one_line(error)) from error

    def create_session(self) -> OpenVinoSession:
        """See CompiledModel."""
        self.guard.check_open()
        return OpenVinoSession(self)

    def memory_bytes(self) -> dict[str, int]:
        """See CompiledModel; OpenVINO does not tell."""
        return {}

    def close(self) -> None:
        """See CompiledModel."""
        if self.guard.close():
            self.compiled = None

    def profile_layers(self, feeds: Mapping[str, Array]) -> list[LayerTime]:
        """Runs three times in a model compiled with counters and reads those of the last run."""
        request = self._compile(profiling=True).create_infer_request()
        for _ in range(3):
            self.infer(request, feeds)
        return [
            LayerTime(info.node_name, info.node_type, info.exec_type, info.real_time.total_seconds() * 1e6)
            for info in request.profiling_info
            if info.real_time.total_seconds() > 0
        ]

    def infer(self, request: Any, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Runs a request once. Inputs are copied in and outputs copied out, so that nothing outlives its owner.

        Raises:
            EngineError: It failed.
        """
        inputs = {index: np.ascontiguousarray(feeds[name]) for name, index in self.input_indices.items()}
        try:
            results = request.infer(inputs, share_inputs=False, share_outputs=False)
            return {name: np.array(results[index]) for name, index in self.output_indices.items()}
        except Exception as error:  # see _compile
            raise EngineError("OpenVINO failed", got=_one_line(error)) from error


class OpenVinoSession:
    """See Session."""

    def __init__(self, model: OpenVinoModel) -> None:
        self._model = model
        self._guard = SessionGuard("openvino session", model.guard)
        self._request: Any = model.compiled.create_infer_request()
        never_destroy_in_child(self)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See Session."""
        with self._guard:
            check_feeds(feeds, self._model.inputs, self._model.buckets)
            return self._model.infer(self._request, feeds)

    def profile(self, feeds: Mapping[str, Array]) -> list[LayerTime]:
        """See Session."""
        with self._guard:
            check_feeds(feeds, self._model.inputs, self._model.buckets)
            return self._model.profile_layers(feeds)

    def close(self) -> None:
        """See Session."""
        if self._guard.close():
            self._request = None


@functools.cache
def _library() -> ModuleType:
    withhold_openvino_telemetry()
    return import_library("openvino", "openvino")


@functools.cache
def _core() -> Any:
    core = _library().Core()
    never_destroy_in_child(core)
    return core


def _xml_and_bin(members: tuple[str, ...]) -> tuple[str, str]:
    xml = [member for member in members if member.endswith(".xml")]
    weights = [member for member in members if member.endswith(".bin")]
    if len(xml) != 1 or len(weights) != 1:
        raise PackageError("OpenVINO variant must have one .xml and one .bin", got=", ".join(members)[:200])
    return xml[0], weights[0]


def _match(specs: tuple[TensorSpec, ...], ports: Any, kind: str) -> dict[str, int]:
    """Maps tensor names to port indices: by name, since OpenVINO may reorder ports."""
    indices = {name: index for index, port in enumerate(ports) for name in port.get_names()}
    missing = [spec.name for spec in specs if spec.name not in indices]
    if missing or (kind == "input" and len(ports) != len(specs)):
        raise PackageError(f"{kind}s differ from the manifest's", got=sorted(indices), expected=missing)
    return {spec.name: indices[spec.name] for spec in specs}


def _one_line(error: Exception) -> str:
    text = re.sub(r"Exception from \S+:\d+:", "", str(error))  # places in OpenVINO's own source
    return " ".join(text.split())[:240]
