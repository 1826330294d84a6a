"""Builds the native tests once a session, for this machine and for ARM, and runs them.

EDGEKIT_NATIVE_BUILD and EDGEKIT_NATIVE_BUILD_ARM64 name folders to build in, so that a later session finds its objects;
without them each session builds in a temporary folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ARM_COMPILER = "aarch64-linux-gnu-g++"
QEMU = "qemu-aarch64"
QEMU_X86 = "qemu-x86_64"


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"


def configure(folder: Path, options: list[str]) -> Path:
    """Configures the native tests in a folder; gives the folder."""
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    base = [f"-DPython_EXECUTABLE={sys.executable}", "-DEDGEKIT_PYTHON=OFF", "-DEDGEKIT_TESTS=ON", "-DEDGEKIT_TOOLS=ON"]
    _run(["cmake", "-S", str(ROOT), "-B", str(folder), *generator, *base, *options])
    return folder


def host_folder(temporary: Path) -> Path:
    """Where the tests of this machine are built."""
    return Path(os.environ.get("EDGEKIT_NATIVE_BUILD", temporary / "host"))


def arm_folder(temporary: Path) -> Path:
    """Where the tests for ARM are built."""
    return Path(os.environ.get("EDGEKIT_NATIVE_BUILD_ARM64", temporary / "arm64"))


def configure_arm(folder: Path) -> Path:
    """Configures a static cross build for ARM."""
    cross = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_CXX_COMPILER={ARM_COMPILER}"]
    return configure(folder, [*cross, "-DEDGEKIT_STATIC=ON"])


def build(folder: Path, targets: list[str]) -> None:
    """Builds targets with as many jobs as this process may use CPUs."""
    jobs = str(len(os.sched_getaffinity(0)))
    _run(["cmake", "--build", str(folder), "--parallel", jobs, "--target", *targets])


def has_target(folder: Path, target: str) -> bool:
    """Whether the configured build knows a target (SIMDe's exist only where SIMDe is installed)."""
    listed = subprocess.run(["cmake", "--build", str(folder), "--target", "help"], capture_output=True, text=True)
    return any(line.split(":")[0].split(" ")[-1] == target for line in listed.stdout.splitlines())


def run_test(
    folder: Path, name: str, launcher: list[str] | None = None, environment: dict[str, str] | None = None
) -> str:
    """Runs a built test; fails with its output, gives it otherwise."""
    command = [*(launcher or []), str(folder / "native" / "tests" / name)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | (environment or {}))
    assert done.returncode == 0, f"{name}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout
