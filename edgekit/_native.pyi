"""Types of the native core. Its sources are native/bindings/register_*.cc."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

def cpu_features() -> list[str]:
    """Features of this CPU, named as in /proc/cpuinfo, sorted."""

def sha256(data: bytes) -> str:
    """SHA-256 of bytes, 64 hex digits."""

def digest_file(descriptor: int, offset_bytes: int, size_bytes: int) -> tuple[str, int]:
    """(SHA-256, CRC-32) of a range of an open file. Raises OSError."""

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

def measure_int8_gmac_s(threads: int) -> float:
    """Peak of exact 8-bit multiply-accumulates on registers, 1e9/s."""

def measure_fp32_gmac_s(threads: int) -> float:
    """Peak of float32 multiply-accumulates on registers, 1e9/s."""

def measure_read_gb_s(buffer_bytes: int, threads: int) -> float:
    """Bytes read from a buffer in memory, 1e9/s.

    Raises:
        EnvironmentFaultError: Not enough memory.
    """

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

    def kernels(self, plan: int = 0, threads: int = 1) -> list[list[str]]:
        """The ways in which each op of a plan can run with that many threads, by the names of their kernels.

        Results are the same in all ways; the first is what sessions do that are told nothing else.
        """

class Session:
    """One stream of inferences of a Program; serves one thread at a time."""

    def __init__(self, program: Program, threads: int = 0, tuning: Sequence[Sequence[tuple[int, int]]] = ()) -> None:
        """Allocates the arena.

        Args:
            program: Shared with other sessions.
            threads: Within an inference; 0: all usable cores.
            tuning: By plan and op: the way it runs, an index of Program.kernels(), and the number of tasks it is cut
                into (0: by its cost). Empty, or a plan empty: way 0 and by the cost.

        Raises:
            EnvironmentFaultError: Not enough memory.
            InputError: A tuning that is not one of this program.
        """

    def kernels(self, plan: int = 0) -> list[str]:
        """Kernel of each op of a plan, in the way that it runs in this session."""

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

def decode_yolov8(
    output: NDArray[np.float32], threshold: float
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
    """[4 + classes, n] to boxes [k, 4] x0, y0, x1, y1 in input pixels, scores [k] and class ids [k]."""

def decode_yolov8_head(
    head: NDArray[np.float32], stride: int, bins: int, threshold: float
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
    """The same of a raw head [4 * bins + classes, height, width]."""

def decode_yolov5(
    output: NDArray[np.float32], threshold: float
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
    """The same of rows [n, 5 + classes]."""

def decode_yolov5_head(
    head: NDArray[np.float32], anchors_wh: Sequence[float], stride: int, threshold: float
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
    """The same of a raw head [anchors * (5 + classes), h, w] or [anchors, h, w, 5 + classes]."""

def decode_ssd(
    codes: NDArray[np.float32],
    scores: NDArray[np.float32],
    anchors: NDArray[np.float32],
    input_hw: tuple[int, int],
    variances: tuple[float, float],
    threshold: float,
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
    """The same of SSD's box codes [n, 4] and probabilities [n, classes]; class 0 is the background."""

def nms(
    boxes: NDArray[np.float32],
    scores: NDArray[np.float32],
    class_ids: NDArray[np.int32],
    iou_threshold: float,
    max_detections: int,
    class_agnostic: bool,
) -> NDArray[np.int64]:
    """Indices that greedy suppression keeps, best first."""

def dbnet_boxes(
    map: NDArray[np.float32], pixel_threshold: float, box_threshold: float, unclip_ratio: float, dilate: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Probability map [height, width] to corners [n, 4, 2] in map pixels and scores [n]."""

def ctc_greedy(rows: NDArray[np.float32], blank: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Rows [steps, classes] to the class ids and values of the best path, repeats merged, blanks dropped."""

def warp_quad(image: NDArray[np.uint8], corners: NDArray[Any], height: int, width: int) -> NDArray[np.uint8]:
    """Cuts a quadrilateral out of an image and straightens it.

    Raises:
        TensorError: The corners [4, 2] enclose no area.
    """

class FramePipeline:
    """Ingress, preprocess thread and slots of a stream; see native/pipeline/frame_pipeline.h."""

    def __init__(self, slots: int, ingress: int, latest: bool) -> None:
        """Starts the preprocess thread."""

    def push(
        self,
        preprocessor: Preprocessor,
        planes: Sequence[NDArray[np.uint8]],
        token: object,
        timeout_s: float,
        plan: int = 0,
    ) -> bool | None:
        """Hands a frame in without the GIL; True: taken, False: no room in time, None: closed. plan: see infer_with().

        Raises:
            ValueError: The planes don't fit the preprocessor.
        """

    def end(self) -> None:
        """No more frames will come."""

    def infer_with(self, session: Session) -> None:
        """A thread of the core runs the session, which nobody else may use meanwhile, on each frame with its plan.

        Then take_result() takes the place of take().
        """

    def take_result(
        self, timeout_s: float
    ) -> tuple[dict[str, NDArray[Any]], Any, tuple[int, int, int, int, int], int] | Literal[False] | None:
        """Waits for the next finished frame without the GIL.

        Returns:
            (outputs, token, (times of push, begin and end of preprocessing, begin and end of inference on the monotonic
            clock in ns), frames dropped before it), the outputs being the caller's; False when none came in time; None
            at the end.

        Raises:
            EngineError: The inference of a frame failed; raised once all frames before it are taken.
        """

    def take(self, timeout_s: float) -> tuple[int, NDArray[np.uint8], Any, int, int, int] | Literal[False] | None:
        """Waits for the next prepared frame without the GIL.

        Returns:
            (slot, bytes of the input, token, times of push, begin and end of preprocessing on the monotonic clock in
            ns), the bytes being valid until release(slot); False when none came in time; None at the end.

        Raises:
            EnvironmentFaultError: No memory for a slot.
        """

    def release(self, slot: int) -> None:
        """The slot may be filled again."""

    def close(self) -> None:
        """Stops and joins; safe to call twice and while other threads wait in push() or take()."""

    @property
    def dropped(self) -> int:
        """Frames replaced at the ingress so far."""
