"""The INT8 kernels: every instruction set against a plain loop over the definition (native/tests/*.cc)."""

from __future__ import annotations

from pathlib import Path

import pytest

from native import building

KERNEL_TESTS = ["conv_q8_test", "depthwise_q8_test", "elementwise_q8_test", "convert_test", "skeleton_test"]
SIMDE_TESTS = ["conv_q8_simde_test", "depthwise_q8_simde_test", "elementwise_q8_simde_test", "convert_simde_test"]


@pytest.mark.parametrize("name", KERNEL_TESTS)
def test_kernels_of_this_machine(native_build: Path, name: str) -> None:
    building.build(native_build, KERNEL_TESTS)
    assert "0 failures" in building.run_test(native_build, name)


@pytest.mark.parametrize("name", SIMDE_TESTS)
def test_avx512_kernels_as_portable_code(native_build: Path, name: str) -> None:
    if not building.has_target(native_build, name):
        pytest.skip("SIMDe is not installed (libsimde-dev)")
    building.build(native_build, SIMDE_TESTS)
    assert "0 failures" in building.run_test(native_build, name)


# cortex-a72 has no dot products and raises SIGILL on them; cortex-a76 has them, max has everything.
@pytest.mark.parametrize("name", KERNEL_TESTS)
@pytest.mark.parametrize("cpu", ["cortex-a72", "cortex-a76", pytest.param("max", marks=pytest.mark.nightly)])
def test_arm_kernels(native_build_arm64: Path, cpu: str, name: str) -> None:
    building.build(native_build_arm64, KERNEL_TESTS)
    assert "0 failures" in building.run_test(native_build_arm64, name, [building.QEMU, "-cpu", cpu])
