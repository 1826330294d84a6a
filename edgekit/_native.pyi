"""Types of the native core. Its sources are native/bindings/register_*.cc."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

def cpu_features() -> list[str]:
    """Features of this CPU, named as in /proc/cpuinfo, sorted."""

def usable_cpus() -> int:
    """Cores that an inference may use: affinity mask, cgroup quota, big cores only, one thread a core."""

def best_isa() -> str:
    """The best instruction set of this CPU, by its name in enums.isa of program_schema.toml."""

def active_isa() -> str:
    """The instruction set in force: EDGEKIT_ISA, or the best.

    Raises:
        TensorError: EDGEKIT_ISA names no instruction set.
        IsaError: It names one that this CPU lacks.
    """

def isa_problem(isa: str) -> str | None:
    """Why a program for that instruction set can't run here, or None."""

class Program:
    """A verified native program; sessions share its memory-mapped weights."""

    def __init__(self, path: str, offset_bytes: int = 0, size_bytes: int | None = None, isa: str = "") -> None:
        """Maps and verifies a byte range of a file.

        Args:
            path: A program.ekn, or a package that has one as a stored member.
            offset_bytes: Where the program starts.
            size_bytes: Its size; None: to the end of the file.
            isa: Instruction set to stay within; empty: the active one; "scalar" runs every program.

        Raises:
            PackageError: Damaged or hostile.
            IsaError: The CPU lacks a feature; the message names it.
            StorageError: The file can't be read.
        """

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview, isa: str = "") -> Program:
        """The same from memory, which is copied."""

    @property
    def isa(self) -> str:
        """Instruction set that the weights are packed for."""

    @property
    def kernel_isa(self) -> str:
        """Instruction set whose kernels run it here."""

    @property
    def plan_count(self) -> int:
        """Number of shape buckets."""

    @property
    def size_bytes(self) -> int:
        """Size of the file."""

    @property
    def constants_bytes(self) -> int:
        """Size of the weights."""

    def arena_bytes(self, plan: int = 0) -> int:
        """Size of a plan's arena."""

    def inputs(self, plan: int = 0) -> list[tuple[str, np.dtype[Any], tuple[int, ...], float, int]]:
        """Name, dtype, shape, scale (0: not quantized) and zero point of each input of a plan."""

    def outputs(self, plan: int = 0) -> list[tuple[str, np.dtype[Any], tuple[int, ...], float, int]]:
        """The same of its outputs."""

    def ops(self, plan: int = 0) -> list[tuple[str, str, str, int, int]]:
        """Layer name, op, kernel, multiply-accumulates and least bytes moved, of each op of a plan."""

class Session:
    """One stream of inferences of a Program; serves one thread at a time."""

    def __init__(self, program: Program, threads: int = 0) -> None:
        """Allocates the arena.

        Args:
            program: Shared with other sessions.
            threads: Within an inference; 0: all usable cores.

        Raises:
            EnvironmentFaultError: Not enough memory.
        """

    def run(self, feeds: Mapping[str, NDArray[Any]], plan: int | None = None) -> dict[str, NDArray[Any]]:
        """Runs once, without the GIL.

        Args:
            feeds: A dict of every input; C-contiguous ones are read in place.
            plan: Shape bucket; None: the one whose input shapes fit.

        Returns:
            Fresh arrays by output name.

        Raises:
            TensorError: A name, dtype or shape is wrong.
            EngineError: An op failed on these values, or another thread is using the session.
            FatalEngineError: The process forked since the session was made.
        """

    def run_timed(
        self, feeds: Mapping[str, NDArray[Any]], plan: int | None = None
    ) -> tuple[dict[str, NDArray[Any]], list[int]]:
        """Runs once; also returns the nanoseconds that each op of Program.ops(plan) took."""

    @property
    def threads(self) -> int:
        """Threads within an inference."""

    @property
    def memory_bytes(self) -> int:
        """Arena and scratch."""

class PreprocessConfig:
    source_width: int
    source_height: int
    crop_x: int
    crop_y: int
    crop_width: int
    crop_height: int
    resized_width: int
    resized_height: int
    offset_x: int
    offset_y: int
    output_width: int
    output_height: int
    channels_first: bool
    quant_scale: float
    zero_point: int
    force_scalar: bool
    gain: tuple[float, ...]
    offset: tuple[float, ...]
    pad: tuple[float, ...]
    def set_format(self, name: str) -> None: ...
    def set_yuv(self, matrix: str, range: str) -> None: ...
    def set_order(self, name: str) -> None: ...
    def set_interpolation(self, name: str) -> None: ...
    def set_dtype(self, name: str) -> None: ...

class Preprocessor:
    isa: ClassVar[str]
    def __init__(self, config: PreprocessConfig) -> None: ...
    def run(self, planes: Sequence[NDArray[np.uint8]], output: NDArray[np.generic]) -> None: ...
