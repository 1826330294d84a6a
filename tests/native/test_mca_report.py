"""The report of llvm-mca on the inner loops of the ARM kernels."""

from __future__ import annotations

import shutil
from pathlib import Path

import mca_report
import pytest
from hot_loops import HotLoop

from native import building


def loop(*body: str, function: str = "f") -> HotLoop:
    return HotLoop(function, body)


def test_the_densest_loop_is_the_leanest_with_the_most_multiplications() -> None:
    lean = loop("sdot a", "sdot b", "b.ne 0 <f>")
    others = [loop("sdot a", "b.ne 0 <f>"), loop("sdot a", "sdot b", "mov c", "b.ne 0 <f>"), loop("fmla a")]
    assert mca_report.densest([*others, lean], "sdot") == lean
    with pytest.raises(ValueError, match="smull"):
        mca_report.densest(others, "smull")


def test_an_assembler_takes_the_loop() -> None:
    text = mca_report.assembly(loop("movi\tv0.2d, #0x0  // #0", "sdot\tv1.4s, v2.16b, v3.16b", "b.ne\t1c <f+0x1c>"))
    assert text == "movi\tv0.2d, #0x0\nsdot\tv1.4s, v2.16b, v3.16b\n"


def test_the_table_stands_between_the_marks(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{mca_report.BEGIN}\nold\n{mca_report.END}\nafter\n")
    for report in ("new\n", "newer\n"):
        mca_report.write(report, readme)
        assert readme.read_text() == f"before\n{mca_report.BEGIN}\n\n{report}\n{mca_report.END}\nafter\n"


def test_every_kernel_is_in_the_report(native_build_arm64: Path) -> None:
    mca = mca_report.default_mca()
    if mca is None or shutil.which(mca_report.OBJDUMP) is None:
        pytest.skip("llvm-mca or the cross objdump is not installed")
    building.build(native_build_arm64, ["edgekit_core"])
    report = mca_report.table(mca, native_build_arm64)
    for kernel in mca_report.KERNELS:
        assert f"| {kernel.title} |" in report
    with pytest.raises(mca_report.UnknownCoreError):
        mca_report.cycles(mca, "no-such-core", loop("fmla v0.4s, v1.4s, v2.4s"))
