"""The engine contract: what every engine file gives to the runtime.

An engine compiles one variant of a package (or, for the converter, one artefact on disk) into a CompiledModel, whose
sessions run it. Sessions of one CompiledModel share its weights; one session serves one thread at a time and says so
when it is used from two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from edgekit.package.manifest import Variant
from edgekit.package.specs import TensorSpec
from edgekit.records import EMPTY, Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edgekit.engines.tuning import LayerChoice

    Array = NDArray[np.generic]
else:
    Array = Any


class EngineOptions(Record):
    """How to compile.

    Attributes:
        threads: Threads within an inference; 0: as many as the governor allows.
        device: The engine's own device name: "CPU", "GPU", "NPU", "AUTO" (openvino); an execution provider
            (onnxruntime); None: the engine's default.
        settings: Further settings of the engine, by their own names.
        tuning: Layers that the native engine is to run otherwise than by itself.
    """

    threads: int = 0
    device: str | None = None
    settings: Mapping[str, str | int | float | bool] = EMPTY
    tuning: tuple[LayerChoice, ...] = ()


class Artefact(Record):
    """What an engine compiles.

    Attributes:
        variant: Its description.
        files: Member name to a real file and the byte range of the member inside it: (path, offset, size).
        inputs, outputs: As run() takes and gives them.
        buckets: See Manifest.buckets.
    """

    variant: Variant
    files: Mapping[str, tuple[str, int, int]]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    buckets: tuple[Mapping[str, int], ...] = ()


class Capabilities(Record):
    """What an engine can do on this machine.

    Attributes:
        available: Whether it can run here at all.
        reason: Why not, one line naming the extra or the feature; empty when available.
        version: Of the library underneath.
        devices: Names that EngineOptions.device takes.
    """

    available: bool
    reason: str = ""
    version: str = ""
    devices: tuple[str, ...] = ()


class LayerTime(Record):
    """Time of one layer in one inference.

    Attributes:
        name: Layer name in the source model.
        op: Operator as the engine calls it.
        kernel: Kernel that ran, where known; of the native engine by its name in native/kernels/*/kernels.inc.
        time_us: Microseconds.
        macs: Multiply-accumulates, 0 where unknown.
        bytes_moved: Least bytes of operands read and written, 0 where unknown.
    """

    name: str
    op: str
    kernel: str
    time_us: float
    macs: int = 0
    bytes_moved: int = 0


class Session(Protocol):
    """One stream of inferences."""

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Runs once.

        Args:
            feeds: Input name to an array of the declared dtype and shape; every input, nothing else.

        Returns:
            Output name to a fresh array that the caller owns.

        Raises:
            TensorError: A name, shape or dtype is wrong.
            EngineError: The engine failed.
        """
        ...

    def profile(self, feeds: Mapping[str, Array]) -> list[LayerTime]:
        """Runs once and tells the time of each layer; empty where the engine can't tell."""
        ...

    def close(self) -> None:
        """Frees what the session holds; safe to call twice."""
        ...


class CompiledModel(Protocol):
    """A model ready to run; makes sessions."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    isa: str

    def create_session(self) -> Session:
        """Makes a session that shares the weights."""
        ...

    def memory_bytes(self) -> dict[str, int]:
        """Bytes by kind, such as weights and arena; empty where the engine can't tell."""
        ...

    def close(self) -> None:
        """Frees what the model holds; sessions become unusable; safe to call twice."""
        ...


class Engine(Protocol):
    """One inference library."""

    name: str

    def capabilities(self) -> Capabilities:
        """Tells what the engine can do here, without loading a model; never raises."""
        ...

    def supports(self, variant: Variant) -> str | None:
        """Returns None when it can run the variant here, otherwise the reason in one line."""
        ...

    def compile(self, artefact: Artefact, options: EngineOptions) -> CompiledModel:
        """Compiles a variant.

        Raises:
            MissingDependencyError: The library is not installed.
            IsaError: The CPU lacks a feature.
            DeviceError: The device is not there.
            PackageError: The artefact is damaged.
        """
        ...
