"""Core, engine and pipeline (native/tests/*.cc) as plain programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_native.op_zoo import op_zoo

from edgekit.converters.pipeline import ConvertOptions, convert
from edgekit.package.reader import open_package
from native import building

CORE_TESTS = [
    "avx_vnni_test",
    "checksum_test",
    "cpu_features_test",
    "cpu_topology_test",
    "session_test",
    "thread_pool_test",
    "capi_test",
    "steady_state_test",
    "pipeline_test",
]


@pytest.mark.parametrize("name", CORE_TESTS)
def test_core(native_build: Path, name: str) -> None:
    building.build(native_build, CORE_TESTS)
    assert "0 failures" in building.run_test(native_build, name)


def test_no_op_and_no_network_allocates_while_it_runs(native_build: Path, tmp_path: Path) -> None:
    options = ConvertOptions(
        model=building.ROOT / "samples" / "models" / "shapes_det.onnx",
        output=tmp_path / "shapes.ekpkg",
        precision="fp32",
        engines=("native",),
    )
    convert(options)
    programs = op_zoo()
    with open_package(options.output) as package:
        programs["shapes"] = package.read(package.manifest.variants[0].parts[0].member)
    for name, data in programs.items():
        (tmp_path / f"{name}.ekn").write_bytes(data)
    building.build(native_build, ["steady_state_test"])
    named = {"EDGEKIT_TEST_PROGRAMS": ":".join(str(tmp_path / f"{name}.ekn") for name in programs)}
    assert "0 failures" in building.run_test(native_build, "steady_state_test", environment=named)


def test_checksums_with_the_instructions_of_arm(native_build_arm64: Path) -> None:
    building.build(native_build_arm64, ["checksum_test"])
    for cpu in ("cortex-a72", "max"):
        assert "0 failures" in building.run_test(native_build_arm64, "checksum_test", [building.QEMU, "-cpu", cpu])
