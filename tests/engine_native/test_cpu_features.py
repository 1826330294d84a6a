"""CPU features and the instruction set in force."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from engine_native.programs import inverter

from edgekit import _native
from edgekit.errors import IsaError, TensorError
from edgekit.package.program_schema import program_schema
from edgekit.target.isa import native_isa

_NAMES = list(program_schema().enums["isa"])


def test_features_agree_with_the_kernel() -> None:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    known = next((set(line.split(":")[1].split()) for line in lines if line.startswith(("flags", "Features"))), None)
    if known is None:
        pytest.skip("/proc/cpuinfo lists no features here")
    features = _native.cpu_features()
    assert set(features) <= known
    assert list(features) == sorted(features)
    for name in ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "asimd", "asimddp"):
        assert (name in _native.cpu_features()) == (name in known), name


def test_best_isa_runs_and_scalar_always_does() -> None:
    assert _native.isa_problem(_native.best_isa()) is None
    assert _native.isa_problem("scalar") is None


def test_best_isa_is_what_the_features_allow() -> None:
    assert _native.best_isa() == native_isa(_native.cpu_features())
    assert _native.cpu_features() == sorted(_native.cpu_features())  # they are searched by halves


def test_unknown_isa_names_the_known_ones() -> None:
    problem = _native.isa_problem("x86_sse9")
    assert problem is not None
    assert all(name in problem for name in _NAMES)


def test_isa_forced_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEKIT_ISA", "scalar")
    assert _native.active_isa() == "scalar"
    for name in _NAMES:  # scalar kernels run every program
        assert _native.isa_problem(name) is None
        assert _native.Program.from_bytes(inverter(5, isa=name)).kernel_isa == "scalar"


def test_forced_isa_fails_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEKIT_ISA", "x86_sse9")
    with pytest.raises(TensorError, match="EDGEKIT_ISA: unknown instruction set"):
        _native.active_isa()
    missing = "arm_neon" if _native.best_isa().startswith("x86") else "x86_avx2"
    monkeypatch.setenv("EDGEKIT_ISA", missing)
    with pytest.raises(IsaError, match="EDGEKIT_ISA: needs"):
        _native.Program.from_bytes(inverter(5))


def test_every_isa_can_be_forced_or_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = []
    for name in _NAMES:
        monkeypatch.setenv("EDGEKIT_ISA", "")
        problem = _native.isa_problem(name)
        monkeypatch.setenv("EDGEKIT_ISA", name)
        if problem is None:
            assert _native.active_isa() == name
            assert _native.Program.from_bytes(inverter(5, isa=name)).kernel_isa == name
            continue
        lacking.append(name)
        with pytest.raises(IsaError, match=f"EDGEKIT_ISA: needs {name}, but this"):
            _native.active_isa()
    assert lacking  # no CPU is of both architectures


@pytest.mark.parametrize(
    ("features", "isa"),
    [
        ({"avx2", "fma", "f16c", "bmi2", "avx_vnni"}, "x86_avx_vnni"),
        ({"fma", "f16c", "bmi2", "avx_vnni"}, "scalar"),
        ({"avx2", "fma", "f16c", "bmi2"}, "x86_avx2"),
        ({"asimd", "asimddp", "i8mm", "sve"}, "arm_neon_i8mm"),
        ({"asimd", "i8mm"}, "arm_neon"),
        ({"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl"}, "x86_avx2"),
    ],
)
def test_isa_by_features(features: set[str], isa: str) -> None:
    assert native_isa(features) == isa


def test_both_kinds_of_vnni_prefer_avx512() -> None:
    both = {"avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"}
    assert native_isa(both) == native_isa(both | {"avx_vnni"}) == "x86_avx512_vnni"


def test_affinity_limits_the_cores() -> None:
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{one}]); from edgekit import _native; print(_native.usable_cpus())"
    done = subprocess.run([sys.executable, "-c", code], cwd=sys.prefix, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
