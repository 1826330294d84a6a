"""ONNX's own node cases through the float path: none crashes, each passes or says why it is unsupported."""

from __future__ import annotations

from collections import Counter

import pytest
from e2e.onnx_backend_cases import LISTED, Outcome, node_cases, outcomes

# The expected data divide by the fractional size 2.4, where ONNX Runtime, whose results users compare with, divides by
# the integer size that the output has; its own backend tests leave the case out, too.
DISPUTED = {"test_resize_downsample_scales_linear_align_corners"}
LEAST_SHARE = 0.6


@pytest.fixture(scope="module")
def cases() -> list[object]:
    return [case for case in node_cases() if case.name not in DISPUTED]


def _assert_no_failures(results: list[Outcome]) -> None:
    failures = [f"{result.name}: {result.line}" for result in results if result.verdict == "failed"]
    assert not failures, "\n".join(failures)
    for result in results:
        assert result.verdict == "passed" or result.line.startswith("unsupported: ")
        assert "\n" not in result.line


def test_cases_of_promised_operators(cases: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    promised = [case for case in cases if {node.op_type for node in case.model.graph.node} <= LISTED]
    results = list(outcomes(promised))
    _assert_no_failures(results)
    counts = Counter(result.verdict for result in results)
    with capsys.disabled():
        print(f"\nonnx.backend.test, promised operators: {counts['passed']} of {len(results)} cases pass natively")
    assert counts["passed"] >= LEAST_SHARE * len(results)


@pytest.mark.nightly
def test_all_cases(cases: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    results = list(outcomes(cases))
    _assert_no_failures(results)
    counts = Counter(result.verdict for result in results)
    with capsys.disabled():
        print(f"\nonnx.backend.test: {counts['passed']} pass, {counts['unsupported']} are unsupported")
