"""A deterministic engine without an accelerator: a set latency, set faults, no CPU use. Never chosen by itself.

It lets users test how their own application copes with a slow, failing or vanishing device. Every result is marked:
run() returns SimulatedOutputs, whose values say nothing about the model.

Settings (EngineOptions.settings): latency_ms (10), seed (0), and faults, such as "100:error,150:hang,200:lost":
the inference with that number, counted from 1 over all sessions of the model, fails with RetryableError, takes
hang_ms (60000) longer, or fails with DeviceLostError as do all after it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from edgekit.engines.base import Array, Artefact, Capabilities, EngineOptions, LayerTime
from edgekit.engines.feeds import check_feeds, resolve_shape
from edgekit.engines.guard import SessionGuard
from edgekit.errors import DeviceLostError, RetryableError, UsageError
from edgekit.package.manifest import Variant

FaultKind = Literal["error", "hang", "lost"]
_KINDS: tuple[FaultKind, ...] = ("error", "hang", "lost")


class SimulatedOutputs(dict[str, Array]):
    """Outputs that no model computed."""

    simulated = True


@dataclass(frozen=True)
class SimulatedSettings:
    """How the device behaves.

    Attributes:
        latency_ms: Time an inference takes.
        hang_ms: Further time that a hanging inference takes.
        seed: Of the values in the outputs.
        faults: Number of the inference, from 1, to what goes wrong with it.
    """

    latency_ms: float = 10.0
    hang_ms: float = 60_000.0
    seed: int = 0
    faults: Mapping[int, FaultKind] = field(default_factory=dict)


def parse_settings(settings: Mapping[str, str | int | float | bool]) -> SimulatedSettings:
    """Reads EngineOptions.settings.

    Raises:
        UsageError: An unknown setting or a malformed value.
    """
    unknown = set(settings) - {"latency_ms", "hang_ms", "seed", "faults"}
    if unknown:
        raise UsageError(
            "no such setting of engine simulated", got=sorted(unknown)[0], expected="latency_ms, hang_ms, seed, faults"
        )
    try:
        latency_ms, hang_ms = float(settings.get("latency_ms", 10.0)), float(settings.get("hang_ms", 60_000.0))
        faults = dict(_parse_fault(item) for item in str(settings.get("faults", "")).split(",") if item.strip())
        parsed = SimulatedSettings(latency_ms, hang_ms, int(settings.get("seed", 0)), faults)
    except ValueError as error:
        raise UsageError("malformed setting of engine simulated", got=str(error)) from error
    if not (0.0 <= latency_ms <= 3.6e6 and 0.0 <= hang_ms <= 3.6e6 and parsed.seed >= 0):
        raise UsageError("setting of engine simulated is out of range", expected="0 to 3600000 ms, seed 0 or more")
    return parsed


def _parse_fault(item: str) -> tuple[int, FaultKind]:
    number, _, kind = item.strip().partition(":")
    for known in _KINDS:
        if kind == known and int(number) >= 1:
            return int(number), known
    raise ValueError(f"fault {item.strip()!r}, expected <number>:error|hang|lost")


class SimulatedEngine:
    """Runs any variant, whatever it was made for."""

    name = "simulated"

    def capabilities(self) -> Capabilities:
        """See Engine."""
        return Capabilities(True, version="1", devices=("SIMULATED",))

    def supports(self, variant: Variant) -> str | None:
        """See Engine."""
        return None

    def compile(self, artefact: Artefact, options: EngineOptions) -> SimulatedModel:
        """See Engine.

        Raises:
            UsageError: A setting is wrong.
        """
        return SimulatedModel(artefact, parse_settings(options.settings))


class SimulatedModel:
    """See CompiledModel."""

    isa = "simulated"

    def __init__(self, artefact: Artefact, settings: SimulatedSettings) -> None:
        self.inputs = artefact.inputs
        self.outputs = artefact.outputs
        self.buckets = artefact.buckets
        self.settings = settings
        self.guard = SessionGuard("simulated model")
        self._count = 0
        self._lost = False
        self._lock = threading.Lock()
        random = np.random.default_rng(settings.seed)
        self._values = [
            {spec.name: _values(spec.dtype, resolve_shape(spec, bucket), random) for spec in self.outputs}
            for bucket in self.buckets or ({},)
        ]

    def create_session(self) -> SimulatedSession:
        """See CompiledModel."""
        self.guard.check_open()
        return SimulatedSession(self)

    def memory_bytes(self) -> dict[str, int]:
        """See CompiledModel."""
        return {"outputs": sum(array.nbytes for values in self._values for array in values.values())}

    def close(self) -> None:
        """See CompiledModel."""
        self.guard.close()

    def infer(self, bucket: int) -> SimulatedOutputs:
        """Waits as long as the device would and returns copies of the prepared outputs.

        Raises:
            RetryableError: This inference was set to fail.
            DeviceLostError: The device was set to be lost at this inference or before.
        """
        with self._lock:
            self._count += 1
            fault = self.settings.faults.get(self._count)
            self._lost = self._lost or fault == "lost"
            lost = self._lost
        time.sleep((self.settings.latency_ms + (self.settings.hang_ms if fault == "hang" else 0.0)) / 1e3)
        if lost:
            raise DeviceLostError("simulated device is lost", where="engine simulated")
        if fault == "error":
            raise RetryableError("simulated fault", where="engine simulated")
        return SimulatedOutputs((name, array.copy()) for name, array in self._values[bucket].items())


class SimulatedSession:
    """See Session."""

    def __init__(self, model: SimulatedModel) -> None:
        self._model = model
        self._guard = SessionGuard("simulated session", model.guard)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See Session; the result is a SimulatedOutputs."""
        with self._guard:
            return self._model.infer(check_feeds(feeds, self._model.inputs, self._model.buckets))

    def profile(self, feeds: Mapping[str, Array]) -> list[LayerTime]:
        """See Session."""
        self.run(feeds)
        return []

    def close(self) -> None:
        """See Session."""
        self._guard.close()


def _values(dtype: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if dtype == "float32":
        return random.random(shape, np.float32)
    return random.integers(0, 2, shape).astype(dtype)
