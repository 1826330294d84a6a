"""Imports the library under an engine when it is first needed; one line says what to install when it is not there."""

from __future__ import annotations

import importlib
from types import ModuleType

from edgekit.errors import MissingDependencyError


def import_library(module: str, extra: str) -> ModuleType:
    """Imports a library.

    Args:
        module: Its import name.
        extra: The extra of edgekit that brings it.

    Raises:
        MissingDependencyError: Not installed, or not usable on this machine.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise MissingDependencyError(f"{module} is not installed", hint=f'pip install "edgekit[{extra}]"') from None
    except Exception as error:  # a library that is there but broken raises whatever it likes
        raise MissingDependencyError(
            f"{module} is installed but can't be imported", got=str(error)[:200], hint=f'pip install "edgekit[{extra}]"'
        ) from error
