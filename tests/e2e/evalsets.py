"""Access to the accuracy sets, which live beside the repository and not in it."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(os.environ.get("EDGEKIT_EVALSETS", Path(__file__).resolve().parents[3] / "shared" / "evalsets"))


def evaluator(name: str, *packages: str) -> ModuleType:
    """Imports an evaluator such as eval_shapes, or skips the test, saying what is missing."""
    for package in packages:
        pytest.importorskip(package)
    if not ROOT.is_dir():
        pytest.skip("the accuracy sets are not here; EDGEKIT_EVALSETS names their folder")
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    return importlib.import_module(name)


def save_samples(folder: Path, input_name: str, samples: Iterable[np.ndarray]) -> Path:
    """Writes calibration samples as a folder of .npz files, one sample each; returns the folder."""
    folder.mkdir(parents=True)
    for index, sample in enumerate(samples):
        np.savez(folder / f"{index:04}.npz", **{input_name: sample})
    return folder
