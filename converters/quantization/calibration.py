"""Runs the float model over the calibration samples and feeds observers, within a bound on memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

import numpy as np
import onnx_ir as ir
import onnxruntime
from numpy.typing import NDArray

from edgekit.converters.contracts import Array, CalibrationSet, Feeds, Progress
from edgekit.errors import CalibrationError, UnsupportedError

_CHUNK_BYTES = 256 << 20  # of observed tensors held at once, for one sample
_MAX_CHUNK_TENSORS = 256
_ASSUMED_ELEMENTS = 1 << 20  # where the shape is symbolic


class Observer(Protocol):
    """Takes in a tensor, sample by sample."""

    @property
    def name(self) -> str:
        """Name of the tensor."""
        ...

    def update(self, values: NDArray[np.floating]) -> None:
        """Takes in one sample, without keeping it."""
        ...


class ModelRunner:
    """A model in ONNX Runtime with chosen intermediate tensors as outputs.

    Args:
        model: Not changed.
        names: Tensors to give; graph inputs and outputs are allowed.
        simulate: Leave the graph as it is, so that every QuantizeLinear and DequantizeLinear really happens.
    """

    def __init__(self, model: ir.Model, names: Sequence[str], *, simulate: bool = False) -> None:
        self.names = tuple(names)
        inputs = {value.name for value in model.graph.inputs}
        self._from_feeds = [name for name in names if name in inputs]
        self._fetched = [name for name in names if name not in inputs]
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        if simulate:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            self._session = onnxruntime.InferenceSession(
                _with_outputs(model, self._fetched), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime raises its own classes, without a common base
            raise UnsupportedError("ONNX Runtime refuses the model", got=str(error)[:300]) from error

    def run(self, feeds: Feeds) -> dict[str, Array]:
        """Runs one sample.

        Args:
            feeds: Every input of the model.

        Returns:
            Tensor name to array.

        Raises:
            CalibrationError: The sample doesn't fit the model.
        """
        results: dict[str, Array] = {name: np.asarray(feeds[name]) for name in self._from_feeds}
        if self._fetched:
            try:
                arrays = self._session.run(self._fetched, dict(feeds))
            except Exception as error:
                raise CalibrationError("the model can't run on a calibration sample", got=str(error)[:300]) from error
            results.update(zip(self._fetched, arrays, strict=True))
        return results


def _with_outputs(model: ir.Model, names: Sequence[str]) -> bytes:
    proto = ir.to_proto(model)
    del proto.graph.output[:]
    for name in names:
        proto.graph.output.add().name = name
    if not names:
        proto.graph.output.add().name = model.graph.outputs[0].name or ""
    proto.ir_version = min(proto.ir_version, 10)
    return bytes(proto.SerializeToString())


def observe(
    model: ir.Model,
    observers: Sequence[Observer],
    calibration: CalibrationSet,
    limit: int,
    progress: Progress | None = None,
) -> None:
    """Feeds each observer with its tensor, for every sample.

    Args:
        model: Float model.
        observers: Named after tensors of the model.
        calibration: Samples; iterated once for each chunk of tensors.
        limit: Most samples used.
        progress: Called with the stage "calibrate".

    Raises:
        CalibrationError: There are no samples, or one doesn't fit the model.
    """
    chunks = list(_chunks(model, observers))
    count = min(len(calibration), limit)
    if not count:
        raise CalibrationError("there are no calibration samples")
    for number, chunk in enumerate(chunks):
        runner = ModelRunner(model, list(dict.fromkeys(observer.name for observer in chunk)))
        for position, feeds in enumerate(islice(calibration, count)):
            arrays = runner.run(feeds)
            for observer in chunk:
                observer.update(np.asarray(arrays[observer.name]))
            if progress:
                progress("calibrate", (number + (position + 1) / count) / len(chunks))


def _chunks(model: ir.Model, observers: Sequence[Observer]) -> Iterator[list[Observer]]:
    sizes = {value.name: _bytes(value) for node in model.graph for value in node.outputs}
    order = {name: position for position, name in enumerate(sizes)}
    chunk: list[Observer] = []
    held = 0
    known: set[str] = set()
    for observer in sorted(observers, key=lambda one: order.get(one.name, -1)):
        size = 0 if observer.name in known else sizes.get(observer.name, 0)
        if chunk and (held + size > _CHUNK_BYTES or len(known) >= _MAX_CHUNK_TENSORS):
            yield chunk
            chunk, held, known = [], 0, set()
        chunk.append(observer)
        known.add(observer.name)
        held += size
    if chunk:
        yield chunk


def _bytes(value: ir.Value) -> int:
    if value.shape is None or not all(isinstance(dim, int) for dim in value.shape):
        return 4 * _ASSUMED_ELEMENTS
    return 4 * int(np.prod(value.shape.numpy()))
