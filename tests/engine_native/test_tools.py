"""The tools built from source: the loader under sanitizers, and ARM programs under qemu-user.

Both build the core anew, which takes minutes: they run with --nightly.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from engine_native.op_zoo import op_zoo
from engine_native.programs import inverted, inverter, pointwise

_SOURCES = Path(__file__).resolve().parents[2]
_ARM_COMPILER = "aarch64-linux-gnu-g++"


def _build(folder: Path, target: str, *options: str) -> Path:
    """Configures and builds one tool; returns the executable."""
    for program in ("cmake", "ninja", "g++"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    common = ["-DEDGEKIT_PYTHON=OFF", "-DEDGEKIT_TOOLS=ON", *options]
    for command in (["cmake", "-S", _SOURCES, "-B", folder, "-G", "Ninja", *common], ["ninja", "-C", folder, target]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder / "native" / "tools" / target


@pytest.mark.nightly
def test_mutated_programs_under_sanitizers(tmp_path: Path) -> None:
    tool = _build(
        tmp_path / "build",
        "ek_fuzz_load",
        "-DEDGEKIT_SANITIZE=address,undefined",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
        "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1",
    )
    seeds = []
    for name, data in {**op_zoo(), "inverter": inverter(5, 9), "pointwise": pointwise(3, 4, 16).data}.items():
        seeds.append(tmp_path / f"{name}.ekn")
        seeds[-1].write_bytes(data)
    command = [tool, "2024", "300000", *seeds]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    report = json.loads(done.stdout)
    assert report["ran"] > 10_000
    assert report["refused"] > 100_000


@pytest.mark.nightly
def test_arm_programs_under_qemu(tmp_path: Path) -> None:
    qemu = shutil.which("qemu-aarch64")
    if qemu is None or shutil.which(_ARM_COMPILER) is None:
        pytest.skip("qemu-aarch64 or the cross compiler is not installed")
    tool = _build(
        tmp_path / "build",
        "ek_run",
        "-DEDGEKIT_STATIC=ON",
        "-DCMAKE_SYSTEM_NAME=Linux",
        "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
        f"-DCMAKE_CXX_COMPILER={_ARM_COMPILER}",
    )
    x = np.random.default_rng(1).uniform(-2, 18, (2, 77)).astype(np.float32)
    (tmp_path / "x.bin").write_bytes(x.tobytes())

    def run(cpu: str, isa: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.ekn").write_bytes(inverter(77, isa=isa))
        options = ["--input", f"x={tmp_path}/x.bin", "--output-dir", tmp_path / "out"]
        command = [qemu, "-cpu", cpu, tool, tmp_path / "program.ekn", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    for cpu, isa in (
        ("cortex-a72", "arm_neon"),
        ("cortex-a76", "arm_neon_dotprod"),
        ("cortex-a76", "scalar"),
        ("max", "arm_neon_i8mm"),
    ):
        done = run(cpu, isa)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["kernels"] == isa
        result = np.fromfile(report["outputs"][0]["file"], np.uint8).reshape(2, 77)
        np.testing.assert_array_equal(result, inverted(x))
    for cpu, isa, missing in (("cortex-a72", "arm_neon_dotprod", "asimddp"), ("cortex-a76", "arm_neon_i8mm", "i8mm")):
        refused = run(cpu, isa)
        assert refused.returncode == 4
        assert f"lacks {missing}" in refused.stderr
