"""Core, engine and pipeline (native/tests/*.cc) as plain programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from native import building

CORE_TESTS = ["checksum_test", "cpu_topology_test", "session_test", "thread_pool_test", "capi_test"]


@pytest.mark.parametrize("name", CORE_TESTS)
def test_core(native_build: Path, name: str) -> None:
    building.build(native_build, CORE_TESTS)
    assert "0 failures" in building.run_test(native_build, name)


def test_checksums_with_the_instructions_of_arm(native_build_arm64: Path) -> None:
    building.build(native_build_arm64, ["checksum_test"])
    for cpu in ("cortex-a72", "max"):
        assert "0 failures" in building.run_test(native_build_arm64, "checksum_test", [building.QEMU, "-cpu", cpu])
