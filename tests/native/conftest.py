"""Builds shared by the native tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from native import building


@pytest.fixture(scope="session")
def native_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configured native tests of this machine."""
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    return building.configure(building.host_folder(tmp_path_factory.mktemp("native")), [])


@pytest.fixture(scope="session")
def native_build_arm64(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configured native tests for ARM, static."""
    for program in ("cmake", building.ARM_COMPILER, building.QEMU):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    return building.configure_arm(building.arm_folder(tmp_path_factory.mktemp("native")))
