"""The table of engines: one line each. Their libraries are imported when an engine is first asked for."""

from __future__ import annotations

import importlib
from functools import cache

from edgekit.engines.base import Engine
from edgekit.errors import UsageError

_ENGINES = {
    "native": "edgekit.engines.native:NativeEngine",
    "onnxruntime": "edgekit.engines.onnxruntime:OnnxRuntimeEngine",
    "openvino": "edgekit.engines.openvino:OpenVinoEngine",
    "simulated": "edgekit.engines.simulated:SimulatedEngine",
}

NEVER_AUTOMATIC = frozenset({"simulated"})


def engine_names() -> tuple[str, ...]:
    """Returns the names of all engines, in order of preference."""
    return tuple(_ENGINES)


@cache
def get_engine(name: str) -> Engine:
    """Returns an engine; it may still be unavailable here, which its capabilities() tell.

    Raises:
        UsageError: No engine of that name.
    """
    if name not in _ENGINES:
        import difflib

        near = difflib.get_close_matches(name, _ENGINES, n=1)
        hint = f"did you mean {near[0]}?" if near else None
        raise UsageError("no such engine", got=ascii(name)[:60], expected=", ".join(_ENGINES), hint=hint)
    module, _, symbol = _ENGINES[name].partition(":")
    engine: Engine = getattr(importlib.import_module(module), symbol)()
    return engine
