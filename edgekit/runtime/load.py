"""edgekit.load(): verifies a package, picks the variant and engine that can run here, compiles, warms up."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import TYPE_CHECKING

from edgekit.engines.artefacts import package_artefact
from edgekit.engines.base import CompiledModel, Engine, EngineOptions
from edgekit.engines.registry import NEVER_AUTOMATIC, engine_names, get_engine
from edgekit.errors import DeviceError, EnvironmentFaultError, InputError, UsageError, printable
from edgekit.package.manifest import Variant
from edgekit.package.reader import Package, open_package
from edgekit.records import replace
from edgekit.runtime.governor import default_threads
from edgekit.runtime.model import Model

if TYPE_CHECKING:
    from pathlib import Path

AUTO = "auto"
MAX_THREADS = 256

_open_models: weakref.WeakSet[Model] = weakref.WeakSet()


def load(
    path: str | Path,
    engine: str = AUTO,
    threads: int = 0,
    device: str | None = None,
    *,
    variant: str | None = None,
    settings: Mapping[str, str | int | float | bool] | None = None,
    warm_up: bool = True,
    tuning: bool = True,
) -> Model:
    """Loads a package.

    Args:
        path: The .ekpkg file; every byte of it is verified.
        engine: native, onnxruntime, openvino or simulated; auto takes the first variant of the package that can run
            here, and never simulated.
        threads: Threads within an inference; 0: one for each big core that the process may use.
        device: The engine's own name of a device, such as GPU.
        variant: Name of a variant; None: any.
        settings: Further settings of the engine, by their own names; the native engine has none.
        warm_up: Run once before returning, so that the first call takes no longer than the others.
        tuning: Use what `edgekit tune` stored beside the package for this device; it changes nothing but time.

    Returns:
        The model, ready to run.

    Raises:
        PackageError: Missing, damaged, hostile or not a package.
        UsageError: No such engine, variant, setting or number of threads, an argument of another type, or EDGEKIT_ISA
            names no instruction set.
        DeviceError: No variant can run here; the message says why for each.
    """
    if not isinstance(threads, int) or isinstance(threads, bool) or not 0 <= threads <= MAX_THREADS:
        raise UsageError("number of threads is out of range", got=ascii(threads)[:80], expected=f"0 to {MAX_THREADS}")
    if not isinstance(engine, str) or not isinstance(path, (str, os.PathLike)):
        raise UsageError("load() takes a path and an engine's name", got=f"{ascii(path)[:80]}, {ascii(engine)[:80]}")
    _check_type("device", device, str | None, "a name or None")
    _check_type("variant", variant, str | None, "a name or None")
    _check_type("warm_up", warm_up, bool, "True or False")
    _check_type("tuning", tuning, bool, "True or False")
    _check_settings(settings)
    if engine != AUTO:
        get_engine(engine)
    _check_environment()
    package = open_package(path)
    try:
        options = EngineOptions(threads or default_threads(), device, dict(settings or {}))
        model = _compile_first(package, engine, variant, options, tuning=tuning)
        package.check_unchanged()
    except BaseException:
        package.close()
        raise
    _open_models.add(model)
    if warm_up:
        _warm_up(model)
    return model


def _check_type(name: str, value: object, kind: type | UnionType, expected: str) -> None:
    if not isinstance(value, kind):
        raise UsageError("argument of load() is of another type", where=name, got=ascii(value)[:80], expected=expected)


def _check_settings(settings: Mapping[str, object] | None) -> None:
    _check_type("settings", settings, Mapping | None, "a dictionary or None")
    for name, value in (settings or {}).items():
        _check_type("settings", name, str, "names of settings as keys")
        _check_type(f"settings[{ascii(name)[:80]}]", value, str | int | float, "a text, number, True or False")


def _check_environment() -> None:
    """Refuses an EDGEKIT_ISA that names no instruction set, or one that this CPU lacks: no engine is a way around it.

    Raises:
        UsageError: It names none.
        IsaError: The CPU lacks it.
    """
    if "EDGEKIT_ISA" in os.environ:
        from edgekit import _native

        try:
            _native.active_isa()
        except InputError as error:
            raise UsageError(str(error)) from error


def _compile_first(
    package: Package, engine: str, variant: str | None, options: EngineOptions, *, tuning: bool
) -> Model:
    skipped: list[str] = []
    foreign = False  # a program for another CPU: that is what converting anew cures
    for candidate, runner in _candidates(package, engine, variant):
        reason = _why_not(runner, candidate, options, automatic=engine == AUTO)
        if reason is None:
            try:
                compiled: CompiledModel
                if runner.name == "native" and tuning:
                    compiled = _compile_tuned(package, runner, candidate, options)
                else:
                    compiled = runner.compile(package_artefact(package, candidate), options)
            except EnvironmentFaultError as error:
                reason = str(error)
            else:
                return Model(
                    package,
                    candidate,
                    compiled,
                    engine_name=runner.name,
                    threads=options.threads,
                    skipped=tuple(skipped),
                )
        skipped.append(f"{candidate.name}: {reason}")
        foreign |= candidate.isa is not None and runner.supports(candidate) is not None
    names = ", ".join(f"{each.name} ({each.engine})" for each in package.manifest.variants)
    raise DeviceError(
        "no variant of the package can run here",
        where=package.path,
        got="; ".join(skipped) or f"none for engine {engine}; the package holds {names}",
        hint="convert the model for this machine: edgekit convert --device this-machine"
        if foreign or not skipped
        else None,
    )


def _compile_tuned(package: Package, runner: Engine, candidate: Variant, options: EngineOptions) -> CompiledModel:
    """Compiles with what is stored for this device; what is of no use is passed over with a line in the log."""
    from edgekit.runtime.tuning import stored_choices, tuning_file

    choices, problem = stored_choices(package, options.threads)
    compiled = runner.compile(package_artefact(package, candidate), replace(options, tuning=choices))
    if unfit := getattr(compiled, "tuning_problem", ""):
        problem = f"{tuning_file(package.path)}: {unfit}; run: edgekit tune"
    if problem:
        import logging  # costs milliseconds

        logging.getLogger("edgekit").warning("edgekit: tuning is not used: %s", printable(problem))
    return compiled


def _candidates(package: Package, engine: str, variant: str | None) -> Iterator[tuple[Variant, Engine]]:
    names = [each.name for each in package.manifest.variants]
    if variant is not None and variant not in names:
        raise UsageError("package has no such variant", got=ascii(variant)[:80], expected=", ".join(names))
    for candidate in package.manifest.variants:
        if variant is not None and candidate.name != variant:
            continue
        if engine in NEVER_AUTOMATIC:  # runs any variant
            yield candidate, get_engine(engine)
        elif engine in (AUTO, candidate.engine) and candidate.engine in engine_names():
            yield candidate, get_engine(candidate.engine)


def _why_not(runner: Engine, candidate: Variant, options: EngineOptions, automatic: bool) -> str | None:
    reason = runner.supports(candidate)
    if reason is None and automatic and options.device is not None:
        devices = runner.capabilities().devices
        if options.device.split(":")[0].upper() not in (name.upper() for name in devices):
            return f"{runner.name} has no device {ascii(options.device)[:40]}, only {', '.join(devices) or 'the CPU'}"
    return reason


def _warm_up(model: Model) -> None:
    try:
        model.run(model.example_feeds())
    except BaseException:
        model.close()
        raise


@atexit.register
def _close_all() -> None:
    """Drains models before the interpreter goes: threads still inside an engine then would abort the process."""
    for model in list(_open_models):
        model.close()
