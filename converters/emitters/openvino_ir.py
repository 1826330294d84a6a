"""Writes OpenVINO IR (model.xml and model.bin) from the ONNX file that ONNX Runtime runs."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgekit.errors import MissingDependencyError, UnsupportedError
from edgekit.telemetry import withhold_openvino_telemetry


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undoes what convert_model does to the root logger, and leaves so where it fails: warnings would be lost."""
    root = logging.getLogger()
    level, filters, handlers = root.level, list(root.filters), list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.filters[:], root.handlers[:] = filters, handlers


def emit_openvino(onnx_model: bytes) -> dict[str, bytes]:
    """Converts an ONNX file to OpenVINO IR and loads it back as a check.

    Args:
        onnx_model: As emit_onnx gives it.

    Returns:
        "model.xml" and "model.bin" with their contents.

    Raises:
        MissingDependencyError: openvino is not installed.
        UnsupportedError: OpenVINO can't read the model.
    """
    withhold_openvino_telemetry()
    try:
        import openvino
    except ImportError as error:
        raise MissingDependencyError("openvino is not installed", hint='pip install "edgekit[openvino]"') from error
    with tempfile.TemporaryDirectory(prefix="edgekit-openvino-") as folder:
        source, target = Path(folder) / "source.onnx", Path(folder) / "model.xml"
        source.write_bytes(onnx_model)
        try:
            with _root_logger_kept():
                model = openvino.convert_model(str(source))
            openvino.save_model(model, str(target), compress_to_fp16=False)
            openvino.Core().read_model(str(target))
        except Exception as error:
            line = " ".join(str(error).split())[:240]
            raise UnsupportedError(
                "OpenVINO can't take the model", got=line, hint="leave it out with --engine"
            ) from error
        return {name: (Path(folder) / name).read_bytes() for name in ("model.xml", "model.bin")}
