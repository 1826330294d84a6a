"""What llvm-mca predicts for the inner loops of the ARM kernels: multiply-accumulates a cycle, core by core.

    python native/bench/mca_report.py BUILD_ARM64 [--mca llvm-mca-19] [--write]

BUILD_ARM64 is a cross build (see README.md here). Each kernel's innermost loop with the most multiplications is
simulated with its loads out of level 1; the limit of a core is what the same tool says of nothing but independent
multiplications of that kind. --write puts the table into README.md. A core that the
installed llvm-mca does not know is named in a line below the table.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hot_loops import HotLoop, compiled, hot_loops

CORES = ("cortex-a55", "cortex-a72", "cortex-a76", "cortex-a510", "neoverse-n1", "neoverse-n2")
WITHOUT = {"sdot": ("cortex-a72",), "smmla": ("cortex-a55", "cortex-a72", "cortex-a76", "neoverse-n1")}
OBJDUMP = "aarch64-linux-gnu-objdump"
README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- mca_report: begin -->", "<!-- mca_report: end -->"
ITERATIONS = 200
INDEPENDENT = {
    "smmla": "smmla v{}.4s, v30.16b, v31.16b",
    "sdot": "sdot v{}.4s, v30.16b, v31.16b",
    "smull": "smull v{}.8h, v30.8b, v31.8b",
    "fmla": "fmla v{}.4s, v30.4s, v31.4s",
}


@dataclass(frozen=True)
class Kernel:
    """A kernel's inner loop.

    Attributes:
        title: What the table calls it.
        source: The file it is compiled from.
        multiply: The instruction that multiplies; a key of INDEPENDENT.
        lanes: Multiply-accumulates of one such instruction.
        function: Part of the name of the function the loop is in.
        useful: Multiply-accumulates of one iteration that are asked for, where the loop does more; 0: all of them.
    """

    title: str
    source: str
    multiply: str
    lanes: int
    function: str = ""
    useful: int = 0


def _depthwise(suffix: str, multiply: str, lanes: int) -> list[Kernel]:
    # Two pixels of two output rows of eight channels a step.
    return [
        Kernel(
            f"depthwise {kernel}x{kernel}/{stride}, {suffix}",
            f"depthwise_s8s8_square_8c_{suffix}.cc",
            multiply,
            lanes,
            f"{kernel}, {stride}, 2>",
            kernel * kernel * 32,
        )
        for kernel, stride in ((3, 1), (3, 2), (5, 1), (5, 2))
    ]


KERNELS = (
    Kernel("product, neon_i8mm", "gemm_s8s8_8x8_neon_i8mm.cc", "smmla", 32),
    Kernel("product, neon_dotprod", "gemm_s8s8_8x8_neon_dotprod.cc", "sdot", 16),
    *_depthwise("neon_dotprod", "sdot", 16),
    Kernel("product, neon", "gemm_s8s8_4x8_neon.cc", "smull", 8),
    *_depthwise("neon", "smull", 8),
    Kernel("float product and convolution", "gemm_f32_neon.cc", "fmla", 4, "tile<8, 2>"),
)


class UnknownCoreError(Exception):
    """llvm-mca has no model of a core."""


def densest(loops: list[HotLoop], multiply: str, function: str = "") -> HotLoop:
    """The loop with the most multiplications; of several, the one with the fewest instructions.

    Raises:
        ValueError: If no loop of the function multiplies.
    """
    found = [loop for loop in loops if function in loop.function and loop.count(multiply)]
    if not found:
        raise ValueError(f"no loop with {multiply} in a function named '{function}'")
    return max(found, key=lambda loop: (loop.count(multiply), -len(loop.body)))


def assembly(loop: HotLoop) -> str:
    """The loop's instructions as an assembler takes them; the jump at its end is left out."""
    lines = [re.sub(r"\s*(?://|<).*", "", line) for line in loop.body]
    return "\n".join(line for line in lines if not re.match(r"(?:b|b\.\w+|cbn?z|tbn?z)\s", line)) + "\n"


def cycles(mca: str, core: str, loop: HotLoop) -> float:
    """Cycles of one iteration.

    Raises:
        UnknownCoreError: If llvm-mca does not know the core.
        RuntimeError: If llvm-mca fails otherwise.
    """
    command = [mca, "-mtriple=aarch64", f"-mcpu={core}", f"-iterations={ITERATIONS}"]
    command += ["-instruction-info=0", "-resource-pressure=0"]
    done = subprocess.run(command, input=assembly(loop), capture_output=True, text=True)
    if "not a recognized processor" in done.stderr or "instruction-level scheduling information" in done.stderr:
        raise UnknownCoreError(core)
    total = re.search(r"^Total Cycles:\s+(\d+)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or total is None:
        raise RuntimeError(f"{mca} for {core}: {done.stderr.strip()[:500]}")
    return int(total[1]) / ITERATIONS


def rate(mca: str, core: str, kernel: Kernel, build: Path) -> tuple[float, float]:
    """Multiply-accumulates a cycle of a kernel on a core, and the core's limit for such kernels."""
    loop = densest(hot_loops(OBJDUMP, compiled(build, kernel.source)), kernel.multiply, kernel.function)
    macs = kernel.useful or loop.count(kernel.multiply) * kernel.lanes
    alone = HotLoop("", tuple(INDEPENDENT[kernel.multiply].format(i) for i in range(16)))
    return macs / cycles(mca, core, loop), len(alone.body) * kernel.lanes / cycles(mca, core, alone)


def table(mca: str, build: Path) -> str:
    """The report as Markdown."""
    columns: dict[str, list[str]] = {}
    unknown = []
    for core in CORES:
        try:
            columns[core] = [_cell(mca, core, kernel, build) for kernel in KERNELS]
        except UnknownCoreError:
            unknown.append(core)
    lines = ["| inner loop | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for row, kernel in enumerate(KERNELS):
        lines.append(f"| {kernel.title} | " + " | ".join(column[row] for column in columns.values()) + " |")
    lines += ["", f"{_version(mca)}; multiply-accumulates a cycle / the core's limit."]
    lines += [f"Skipped, no model in this llvm-mca: {', '.join(unknown)}."] if unknown else []
    return "\n".join(lines) + "\n"


def _cell(mca: str, core: str, kernel: Kernel, build: Path) -> str:
    if core in WITHOUT.get(kernel.multiply, ()):
        return "-"
    got, limit = rate(mca, core, kernel, build)
    return f"{got:.1f} / {limit:.1f}"


def _version(mca: str) -> str:
    text = subprocess.run([mca, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"LLVM version (\S+)", text)
    return f"llvm-mca {found[1]}" if found else "llvm-mca"


def default_mca() -> str | None:
    """The newest llvm-mca that is installed."""
    names = [f"llvm-mca-{version}" for version in range(30, 13, -1)] + ["llvm-mca"]
    return next((name for name in names if shutil.which(name)), None)


def write(report: str, readme: Path) -> None:
    """Puts the report between the marks in the README."""
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n\n{report}\n{END}{after}", encoding="utf-8")


def main() -> int:
    """Prints the report, or writes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--mca", default=default_mca(), help="the llvm-mca to use (default: the newest installed)")
    parser.add_argument("--write", action="store_true", help="write the table into README.md")
    options = parser.parse_args()
    if options.mca is None or shutil.which(options.mca) is None or shutil.which(OBJDUMP) is None:
        print(f"llvm-mca and {OBJDUMP} have to be installed", file=sys.stderr)
        return 4
    report = table(options.mca, options.build)
    print(report, end="")
    if options.write:
        write(report, README)
    return 0


if __name__ == "__main__":
    sys.exit(main())
