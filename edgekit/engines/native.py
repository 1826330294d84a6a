"""The native engine: program.ekn run by edgekit's own core, with ONNX Runtime for sub-graphs that it can't run.

A variant is a chain of parts; each reads named values that the inputs or earlier parts gave. Most models are one part.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

import edgekit
from edgekit import _native
from edgekit.engines.artefacts import read_member_bytes
from edgekit.engines.base import Array, Artefact, Capabilities, EngineOptions, LayerTime
from edgekit.engines.feeds import check_feeds
from edgekit.engines.guard import SessionGuard
from edgekit.engines.tuning import Alternatives, LayerChoice, Plans, program_alternatives, session_tuning
from edgekit.errors import DeviceError, EdgekitError, MissingDependencyError, PackageError, UsageError
from edgekit.package.manifest import Part, Variant
from edgekit.records import Record, replace

Values = dict[str, Array]


class _PartSession(Protocol):
    """One part's own state in a session."""

    def run(self, values: Mapping[str, Array], bucket: int) -> Values:
        """Runs on the values it reads; returns the values it gives."""
        ...

    def profile(self, values: Mapping[str, Array], bucket: int) -> tuple[Values, list[LayerTime]]:
        """Runs and tells the time of its layers."""
        ...

    def memory_bytes(self) -> int:
        """Bytes that this session holds for itself."""
        ...


class _PartModel(Protocol):
    """One part, loaded; shared by sessions."""

    def create_session(self) -> _PartSession:
        """Makes its state for one session."""
        ...

    def weight_bytes(self) -> int:
        """Bytes of weights, 0 where unknown."""
        ...

    def alternatives(self, bucket: int) -> list[Alternatives]:
        """The ways to run each layer, in the order of profile()."""
        ...


class _NativePart(Record):
    """A program.ekn."""

    part: Part
    program: _native.Program
    threads: int
    tuning: Plans

    def create_session(self) -> _NativePartSession:
        return _NativePartSession(self, _native.Session(self.program, self.threads, self.tuning))

    def weight_bytes(self) -> int:
        return self.program.constants_bytes

    def alternatives(self, bucket: int) -> list[Alternatives]:
        return program_alternatives(self.program, self.part.member, bucket, self.threads)


class _NativePartSession(Record):
    model: _NativePart
    session: _native.Session

    def run(self, values: Mapping[str, Array], bucket: int) -> Values:
        return self.session.run({name: values[name] for name in self.model.part.inputs}, bucket)

    def profile(self, values: Mapping[str, Array], bucket: int) -> tuple[Values, list[LayerTime]]:
        feeds = {name: values[name] for name in self.model.part.inputs}
        outputs, times_ns = self.session.run_timed(feeds, bucket)
        layers = [
            LayerTime(name, op, kernel, time_ns / 1000, macs, bytes_moved)
            for (name, op, _, macs, bytes_moved), kernel, time_ns in zip(
                self.model.program.ops(bucket), self.session.kernels(bucket), times_ns, strict=True
            )
        ]
        return outputs, layers

    def memory_bytes(self) -> int:
        return self.session.memory_bytes


class _OnnxPart(Record):
    """A sub-graph that ONNX Runtime runs; its sessions may be used from several threads, so one serves all of ours."""

    part: Part
    session: Any  # onnxruntime.InferenceSession, which has no types

    def create_session(self) -> _OnnxPart:
        return self

    def weight_bytes(self) -> int:
        return 0

    def alternatives(self, bucket: int) -> list[Alternatives]:
        return [Alternatives(self.part.member, bucket, 0, self.part.member, ("onnxruntime",))]

    def run(self, values: Mapping[str, Array], bucket: int) -> Values:
        feeds = {name: values[name] for name in self.part.inputs}
        return dict(zip(self.part.outputs, self.session.run(list(self.part.outputs), feeds), strict=True))

    def profile(self, values: Mapping[str, Array], bucket: int) -> tuple[Values, list[LayerTime]]:
        start_ns = time.perf_counter_ns()
        outputs = self.run(values, bucket)
        time_us = (time.perf_counter_ns() - start_ns) / 1000
        return outputs, [LayerTime(self.part.member, "subgraph", "onnxruntime", time_us)]

    def memory_bytes(self) -> int:
        return 0


class NativeSession:
    """One stream of inferences; one thread at a time."""

    def __init__(self, model: NativeModel, guard: SessionGuard, parts: list[_PartSession]) -> None:
        self._model = model
        self._guard = guard
        self._parts = parts

    def run(self, feeds: Mapping[str, Array]) -> Values:
        """Runs once; see engines.base.Session."""
        with self._guard:
            bucket = check_feeds(feeds, self._model.inputs, self._model.buckets)
            values: Values = dict(feeds)
            for part in self._parts:
                values.update(part.run(values, bucket))
            return self._outputs(values, feeds)

    def profile(self, feeds: Mapping[str, Array]) -> list[LayerTime]:
        """Runs once and tells the time of each layer, in the order they ran."""
        with self._guard:
            bucket = check_feeds(feeds, self._model.inputs, self._model.buckets)
            values: Values = dict(feeds)
            layers: list[LayerTime] = []
            for part in self._parts:
                outputs, part_layers = part.profile(values, bucket)
                values.update(outputs)
                layers += part_layers
            return layers

    def core_session(self) -> _native.Session | None:
        """The core's own session, for a pipeline that holds this one; None when it is not all of the model."""
        part, *others = self._parts
        if others or not isinstance(part, _NativePartSession):
            return None
        whole = {spec.name for spec in self._model.outputs} == set(part.model.part.outputs)
        return part.session if whole else None

    def check_open(self) -> None:
        """Refuses use after the session or its model was closed, and in a forked child.

        Raises:
            FatalEngineError: One of these.
        """
        self._guard.check_open()

    def memory_bytes(self) -> int:
        """Bytes of arenas and scratch that this session holds."""
        return sum(part.memory_bytes() for part in self._parts)

    def close(self) -> None:
        """Frees the arenas; safe to call twice."""
        if self._guard.close():
            self._parts.clear()

    def _outputs(self, values: Values, feeds: Mapping[str, Array]) -> Values:
        # An input that is also an output is the caller's own array: what we give must be fresh.
        names = [spec.name for spec in self._model.outputs]
        return {name: values[name].copy() if values[name] is feeds.get(name) else values[name] for name in names}


class NativeModel:
    """A loaded variant; its sessions share the memory-mapped weights."""

    def __init__(self, artefact: Artefact, parts: list[_PartModel], tuning_problem: str = "") -> None:
        self.tuning_problem = tuning_problem  # why EngineOptions.tuning is not in use
        self.inputs = artefact.inputs
        self.outputs = artefact.outputs
        self.buckets = artefact.buckets
        self.isa = artefact.variant.isa or "scalar"
        self._guard = SessionGuard("native model")
        self._parts = parts

    def create_session(self) -> NativeSession:
        """Makes a session.

        Raises:
            EnvironmentFaultError: Not enough memory for the arena.
            FatalEngineError: The model is closed.
        """
        self._guard.check_open()
        guard = SessionGuard("native session", parent=self._guard)
        return NativeSession(self, guard, [part.create_session() for part in self._parts])

    def memory_bytes(self) -> dict[str, int]:
        """Bytes of weights (mapped, shared) and of the arenas of one session."""
        arena = sum(
            max(part.program.arena_bytes(plan) for plan in range(part.program.plan_count))
            for part in self._parts
            if isinstance(part, _NativePart)
        )
        return {"weights": sum(part.weight_bytes() for part in self._parts), "arena": arena}

    def alternatives(self, bucket: int) -> list[Alternatives]:
        """The ways to run each layer of a shape bucket, in the order of profile()."""
        return [each for part in self._parts for each in part.alternatives(bucket)]

    def close(self) -> None:
        """Frees the programs; safe to call twice."""
        if self._guard.close():
            self._parts.clear()


class NativeEngine:
    """edgekit's own core."""

    name = "native"

    def capabilities(self) -> Capabilities:
        """Tells the instruction set in force; unavailable only when EDGEKIT_ISA asks for what is not there."""
        try:
            isa = _native.active_isa()
        except EdgekitError as error:
            return Capabilities(False, reason=str(error), version=edgekit.__version__)
        return Capabilities(True, version=f"{edgekit.__version__} ({isa})", devices=("CPU",))

    def supports(self, variant: Variant) -> str | None:
        """Tells why a variant can't run here, or None."""
        if variant.engine != self.name:
            return f"is a variant for {variant.engine}"
        if variant.isa is None:
            return "names no instruction set"
        if problem := _native.isa_problem(variant.isa):
            return problem
        if any(part.kind == "onnxruntime" for part in variant.parts) and not _has_onnxruntime():
            return 'has parts that run on ONNX Runtime, which is not installed: pip install "edgekit[onnxruntime]"'
        return None

    def compile(self, artefact: Artefact, options: EngineOptions) -> NativeModel:
        """Maps and verifies the programs; see engines.base.Engine.

        Raises:
            UsageError: A setting was given; there are none.
            PackageError: A program is damaged, or the parts do not fit together.
            IsaError: The CPU lacks a feature; the message names it.
            MissingDependencyError: A part needs ONNX Runtime.
            DeviceError: A device other than CPU was asked for.
        """
        if options.device is not None and options.device.upper() != "CPU":
            raise DeviceError("native engine has one device", got=ascii(options.device)[:60], expected="CPU")
        for name in options.settings:
            hint = "name the engine that it is for: engine="
            raise UsageError("engine native has no settings", got=ascii(name)[:60], expected="none", hint=hint)
        _check_chain(artefact)
        parts = [_load_part(artefact, part, options.threads) for part in artefact.variant.parts]
        try:
            tuned = [_tuned(part, options.tuning) for part in parts]
        except ValueError as error:
            return NativeModel(artefact, parts, str(error))
        return NativeModel(artefact, tuned)


def _check_chain(artefact: Artefact) -> None:
    """Checks that each part reads what is there by then, and that all outputs are given."""
    variant = artefact.variant
    if not variant.parts:
        raise PackageError("native variant has no parts", where=variant.name)
    known = {spec.name for spec in artefact.inputs}
    for part in variant.parts:
        for name in part.inputs:
            if name not in known:
                raise PackageError("a part reads a value that nothing gives", where=part.member, got=ascii(name)[:120])
        known.update(part.outputs)
    for spec in artefact.outputs:
        if spec.name not in known:
            raise PackageError("no part gives this output", where=variant.name, got=ascii(spec.name)[:120])


def _load_part(artefact: Artefact, part: Part, threads: int) -> _PartModel:
    if part.kind == "onnxruntime":
        return _load_onnx_part(artefact, part, threads)
    if part.member not in artefact.files:
        raise PackageError("variant lacks a member", where=artefact.variant.name, got=ascii(part.member)[:120])
    path, offset_bytes, size_bytes = artefact.files[part.member]
    program = _native.Program(path, offset_bytes, size_bytes)
    for side, declared, values in (
        ("inputs", part.inputs, program.inputs()),
        ("outputs", part.outputs, program.outputs()),
    ):
        names = [value[0] for value in values]
        if sorted(names) != sorted(declared):
            raise PackageError(f"{side} of the program differ", where=part.member, got=names, expected=list(declared))
    if program.plan_count != max(1, len(artefact.buckets)):
        raise PackageError(
            "program has a wrong number of shape buckets",
            where=part.member,
            got=program.plan_count,
            expected=max(1, len(artefact.buckets)),
        )
    return _NativePart(part, program, threads, [])


def _tuned(model: _PartModel, choices: tuple[LayerChoice, ...]) -> _PartModel:
    """The part with the choices for it; raises ValueError when one does not fit."""
    if not choices or not isinstance(model, _NativePart):
        return model
    return replace(model, tuning=session_tuning(model.program, model.part.member, model.threads, choices))


def _load_onnx_part(artefact: Artefact, part: Part, threads: int) -> _OnnxPart:
    if not _has_onnxruntime():
        raise MissingDependencyError("needs ONNX Runtime", where=part.member, hint='pip install "edgekit[onnxruntime]"')
    from edgekit.engines.onnxruntime import open_onnx_session

    return _OnnxPart(part, open_onnx_session(read_member_bytes(artefact, part.member), threads))


def _has_onnxruntime() -> bool:
    import importlib.util

    return importlib.util.find_spec("onnxruntime") is not None
