"""What a run leaves behind: no thread that spins, no floating-point mode, no denormals in the results."""

from __future__ import annotations

import time

import numpy as np
import pytest
from engine_native.programs import PlanBuilder, assemble, pointwise

from edgekit import _native
from edgekit.package.program import ConstantPool

TINY = np.float32(1e-39)  # below the least normal float32, 1.2e-38


def product(weights: np.ndarray) -> bytes:
    """y [rows, n] = x [rows, k] @ weights [k, n], float32."""
    pool = ConstantPool()
    builder = PlanBuilder(pool)
    x = builder.bound("input", "x", "f32", (64, weights.shape[0]))
    w = builder.bound("input", "w", "f32", weights.shape)
    y = builder.bound("output", "y", "f32", (64, weights.shape[1]))
    builder.op("matmul_f32", (x, w), (y,), alpha=1.0)
    return assemble([builder], pool)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_denormals_are_zeros_inside_and_themselves_outside(threads: int) -> None:
    weights = np.full((32, 48), TINY, np.float32)
    weights[:, :24] = 0.5
    session = _native.Session(_native.Program.from_bytes(product(weights)), threads)
    x = np.ones((64, 32), np.float32)
    y = session.run({"x": x, "w": weights})["y"]
    assert (y[:, :24] == 16).all()
    assert (y[:, 24:] == 0).all()
    # The caller's mode is what it was: numpy, on this thread, still computes with denormals.
    assert (weights[:, 24:] * np.float32(2) > 0).all()
    with pytest.raises(Exception, match="missing"):
        session.run({"x": x})
    assert (weights[:, 24:] * np.float32(2) > 0).all()


def test_an_idle_session_uses_no_cpu_time() -> None:
    case = pointwise(pixels=4096)
    session = _native.Session(_native.Program.from_bytes(case.data), 0)
    for _ in range(20):
        session.run({"x": case.x})
    before = time.process_time()
    time.sleep(1.0)
    # A thread that spins would use all of the second. The goal is 5 ms in two; other modules' threads get some room.
    assert time.process_time() - before < 0.05
