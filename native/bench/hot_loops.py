"""The innermost loops of compiled kernels, as text: what tests and reports read of them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(.*)$")
_JUMP = re.compile(r"(?:j\w+|b\.\w+|cbnz|cbz|tbnz|tbz)\s+(?:[xw]\d+,\s*)?(?:#\d+,\s*)?([0-9a-f]+)\b")


@dataclass(frozen=True)
class HotLoop:
    """An innermost loop: from a backward jump's target to the jump.

    Attributes:
        function: The demangled name of the function it is in.
        body: Its instructions in order, as objdump prints them.
    """

    function: str
    body: tuple[str, ...]

    def count(self, mnemonic: str) -> int:
        """How many instructions of the body have this in their text."""
        return sum(mnemonic in instruction for instruction in self.body)


def hot_loops(objdump: str, file: Path) -> list[HotLoop]:
    """The innermost loops of an object file.

    Args:
        objdump: The program that disassembles it.
        file: The object file.

    Returns:
        The loops in the order of their addresses.
    """
    command = [objdump, "--disassemble", "--demangle", "--no-show-raw-insn", str(file)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [
        HotLoop(function, tuple(instruction for address, instruction in code if first <= address <= last))
        for function, code in _functions(text)
        for first, last in _inner_spans(code)
    ]


def _functions(text: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    name, code = "", []
    for line in text.splitlines():
        if function := _FUNCTION.match(line):
            yield name, code
            name, code = function[1], []
        elif instruction := _INSTRUCTION.match(line):
            code.append((int(instruction[1], 16), instruction[2]))
    yield name, code


def _inner_spans(code: list[tuple[int, str]]) -> list[tuple[int, int]]:
    spans = []
    for address, instruction in code:
        jump = _JUMP.match(instruction)
        if jump and int(jump[1], 16) < address:
            spans.append((int(jump[1], 16), address))
    return [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]


def compiled(build: Path, source: str) -> Path:
    """The compiled object of a kernel source.

    Args:
        build: A CMake build folder.
        source: The file's name, `gemm_f32_neon.cc`.

    Returns:
        The object in the core library.

    Raises:
        FileNotFoundError: If it is not there, or more than once.
    """
    found = [path for path in build.rglob(f"{source}.o") if "edgekit_core" in str(path)]
    if len(found) != 1:
        raise FileNotFoundError(f"{build}: {len(found)} objects of {source}, expected 1; build edgekit_core there")
    return found[0]
