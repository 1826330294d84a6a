"""Runs a model in ONNX Runtime: the float reference of every pass and of the verification."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from edgekit.converters.contracts import Array
from edgekit.errors import MissingDependencyError, ModelError, UnsupportedError

_PROTOBUF_LIMIT_BYTES = 2**31 - 1


def model_bytes(model: ir.Model) -> bytes:
    """Serialises a model, weights included.

    Raises:
        ModelError: It is larger than protobuf allows (2 GiB).
    """
    weights = sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None)
    if weights > _PROTOBUF_LIMIT_BYTES - (1 << 20):
        raise ModelError(
            "the model is larger than one ONNX file may be", got=f"{weights} bytes of weights", expected="below 2 GiB"
        )
    data: bytes = ir.serde.serialize_model(model).SerializeToString()
    return data


class FloatReference:
    """One model in ONNX Runtime on the CPU, bit-repeatable.

    Args:
        model: Model or its bytes.
        optimised: Whether ONNX Runtime may fuse operators; off is the plain reading of the model.
        threads: Threads within an operator.
        deadline_s: Seconds after which a run is stopped.

    Raises:
        MissingDependencyError: onnxruntime is not installed.
        UnsupportedError: ONNX Runtime knows an operator not, or not at this opset.
        ModelError: The model is not valid.
    """

    def __init__(
        self, model: ir.Model | bytes, *, optimised: bool = False, threads: int = 2, deadline_s: float = 120.0
    ) -> None:
        try:
            import onnxruntime as ort
        except ImportError as error:
            raise MissingDependencyError(
                "onnxruntime is not installed", hint='pip install "edgekit[convert]"'
            ) from error
        self._run_options: Any = ort.RunOptions
        self._deadline_s = deadline_s
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        if not optimised:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        data = model if isinstance(model, bytes) else model_bytes(model)
        try:
            self._session: Any = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise _load_error(error) from error
        self.input_names = [i.name for i in self._session.get_inputs()]
        self.output_names = [o.name for o in self._session.get_outputs()]

    def run(self, feeds: Mapping[str, Array]) -> dict[str, NDArray[Any]]:
        """Runs once.

        Raises:
            ModelError: The model can't run on these shapes.
        """
        run_options = self._run_options()
        # A hostile Loop may never end; ONNX Runtime looks at the flag between operators.
        watch = threading.Timer(self._deadline_s, setattr, (run_options, "terminate", True))
        watch.daemon = True
        watch.start()
        try:
            values = self._session.run(None, {name: feeds[name] for name in self.input_names}, run_options)
        except KeyError as error:
            raise ModelError("a sample lacks an input", got=list(feeds), expected=self.input_names) from error
        except Exception as error:
            if run_options.terminate:
                raise ModelError(
                    "the model did not finish", got=f"{self._deadline_s:g} s", hint="does it loop without end?"
                ) from error
            shapes = ", ".join(f"{k}={'x'.join(map(str, v.shape))}" for k, v in feeds.items())
            raise ModelError(
                "the model does not run at this shape", where=shapes, got=_first_line(error), hint="try another --shape"
            ) from error
        finally:
            watch.cancel()
        return {name: np.asarray(value) for name, value in zip(self.output_names, values, strict=True)}


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    line = text[0] if text else type(error).__name__
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", line)[:300]


def _load_error(error: Exception) -> ModelError:
    line = _first_line(error)
    if "NOT_IMPLEMENTED" in str(error) or "is not a registered function/op" in line or "Could not find an impl" in line:
        return UnsupportedError("ONNX Runtime can't run an operator of the model", got=line)
    return ModelError("ONNX Runtime refuses the model", got=line)
