"""Pool, session, C interface and pipeline under ThreadSanitizer; these, the core and the kernels under ASan, UBSan."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from native import building, test_kernels

# Without optimisation of the kernels the builds take a third of the time; what is looked for does not depend on it.
BUILD = ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1 -g1"]
THREADED = ["thread_pool_test", "session_test", "capi_test", "pipeline_test"]
CHECKED = [*THREADED, "checksum_test", "cpu_topology_test", *test_kernels.KERNEL_TESTS]


@pytest.mark.nightly
@pytest.mark.parametrize(("sanitizers", "names"), [("thread", THREADED), ("address,undefined", CHECKED)])
def test_sanitizers_find_nothing(sanitizers: str, names: list[str], tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    folder = building.configure(tmp_path / "build", [*BUILD, f"-DEDGEKIT_SANITIZE={sanitizers}"])
    building.build(folder, names)
    # A test of the pool forks and then starts threads in the child, which ThreadSanitizer refuses by default.
    environment = {"TSAN_OPTIONS": "die_after_fork=0", **test_kernels.EMULATED}
    for name in names:
        assert "0 failures" in building.run_test(folder, name, environment=environment)
