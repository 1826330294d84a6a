"""edgekit: run converted models on edge boxes. See README.md for a tour.

What load() needs is imported along, so that an application that loads a model later finds it there; numpy, engines'
libraries, vision and everything else are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgekit.errors import EdgekitError
    from edgekit.runtime.load import load
    from edgekit.runtime.model import Model
    from edgekit.target import load_profile

__version__ = "0.1.0"

__all__ = ["EdgekitError", "Model", "__version__", "load", "load_profile"]

_LAZY = {
    "EdgekitError": "edgekit.errors",
    "load": "edgekit.runtime.load",
    "Model": "edgekit.runtime.model",
    "load_profile": "edgekit.target",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'edgekit' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


for _name in ("load", "Model"):  # by name, not by statement: modules below runtime import this package too
    __getattr__(_name)
