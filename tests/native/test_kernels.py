"""The kernels: every instruction set against a plain loop over the definition (native/tests/*.cc)."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

from native import building

_FAMILIES = ["conv_q8", "depthwise_q8", "elementwise_q8", "convert"]
_FAMILIES += ["copy", "elementwise", "float_math", "gemm_f32", "pool_resize", "reduce"]
_FAMILIES += ["winograd_q8"]
_WITHOUT_AVX512 = {"copy"}
KERNEL_TESTS = [*(f"{family}_test" for family in _FAMILIES), "skeleton_test"]
EMULATED = {"EDGEKIT_CASE_STEP": "9973"}  # a tenth of the usual sample of the small shapes: emulators are slow
SIMDE_TESTS = [f"{family}_simde_test" for family in _FAMILIES if family not in _WITHOUT_AVX512]


@pytest.mark.parametrize("name", KERNEL_TESTS)
def test_kernels_of_this_machine(native_build: Path, name: str) -> None:
    building.build(native_build, KERNEL_TESTS)
    assert "0 failures" in building.run_test(native_build, name)


@pytest.mark.parametrize("name", SIMDE_TESTS)
def test_vnni_kernels_as_portable_code(native_build: Path, name: str) -> None:
    if not building.has_target(native_build, name):
        pytest.skip("SIMDe is not installed (libsimde-dev)")
    building.build(native_build, SIMDE_TESTS)
    assert "0 failures" in building.run_test(native_build, name)


# All of a grid of small shapes, strides, pads and gaps, of which the tests above take a sample; of AVX-512 as portable
# code, which is slow, a greater sample.
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "step"),
    [("conv_q8_test", 1), ("depthwise_q8_test", 1), ("conv_q8_simde_test", 29), ("depthwise_q8_simde_test", 29)],
)
def test_every_small_shape(native_build: Path, name: str, step: int) -> None:
    if not building.has_target(native_build, name):
        pytest.skip("SIMDe is not installed (libsimde-dev)")
    building.build(native_build, [name])
    assert "0 failures" in building.run_test(native_build, name, environment={"EDGEKIT_CASE_STEP": str(step)})


# qemu's most capable x86 CPU has AVX2 and no AVX-512: what this machine's CPU lets pass by chance shows there.
@pytest.mark.nightly
@pytest.mark.parametrize("name", KERNEL_TESTS)
def test_kernels_on_an_emulated_x86_cpu(native_build: Path, name: str) -> None:
    if platform.machine() != "x86_64" or shutil.which(building.QEMU_X86) is None:
        pytest.skip(f"needs an x86-64 build and {building.QEMU_X86}")
    building.build(native_build, KERNEL_TESTS)
    assert "0 failures" in building.run_test(native_build, name, [building.QEMU_X86, "-cpu", "max"], EMULATED)


# cortex-a72 has no dot products and raises SIGILL on them; cortex-a76 has them, max has everything, i8mm too.
_ON_ARM = [(cpu, name, ()) for cpu in ("cortex-a72", "cortex-a76") for name in KERNEL_TESTS]
_ON_ARM += [("max", name, () if name == "conv_q8_test" else (pytest.mark.nightly,)) for name in KERNEL_TESTS]


@pytest.mark.parametrize(("cpu", "name"), [pytest.param(cpu, name, marks=marks) for cpu, name, marks in _ON_ARM])
def test_arm_kernels(native_build_arm64: Path, cpu: str, name: str) -> None:
    building.build(native_build_arm64, KERNEL_TESTS)
    assert "0 failures" in building.run_test(native_build_arm64, name, [building.QEMU, "-cpu", cpu], EMULATED)
