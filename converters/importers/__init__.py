"""Importers: model file -> graph. One file a format; IMPORTERS names them by suffix."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import onnx_ir as ir

from edgekit.errors import ModelError, UnsupportedError

IMPORTERS = MappingProxyType({".onnx": "edgekit.converters.importers.onnx"})
"""Suffix to the module whose import_model(path) reads it."""

_EXPORT_HINTS = MappingProxyType(
    {
        ".tflite": "convert it to ONNX first, such as with tf2onnx --tflite model.tflite",
        ".pt": "export it to ONNX first: torch.onnx.export, or yolo export format=onnx",
        ".pth": "export it to ONNX first: torch.onnx.export",
        ".pt2": "export it to ONNX first: torch.onnx.export",
        ".safetensors": "weights alone are no model: export the model to ONNX with torch.onnx.export",
        ".pb": "export it to ONNX first, such as with tf2onnx --saved-model",
        ".h5": "export it to ONNX first, such as with tf2onnx",
        ".keras": "export it to ONNX first, such as with tf2onnx",
        ".pdmodel": "export it to ONNX first with paddle2onnx",
        ".xml": "OpenVINO IR can't be read back: give the ONNX model that it was made from",
        ".ekpkg": "it is a package already: give the model that it was made from",
    }
)


@dataclass(frozen=True)
class ImportedModel:
    """A model as it was read.

    Attributes:
        model: The graph, weights in memory or memory-mapped, opset 21 or newer.
        source_name: File name without folders.
        source_sha256: Hash of the model file and of the external data that it uses, in order of use.
        opset: The standard opset that the file declares.
        metadata: The file's own key-value pairs, strings of bounded length.
    """

    model: ir.Model
    source_name: str
    source_sha256: str
    opset: int
    metadata: dict[str, str] = field(default_factory=dict)


def import_model(path: Path) -> ImportedModel:
    """Reads a model file by its suffix.

    Raises:
        ModelError: Missing, truncated, hostile or not a model.
        UnsupportedError: A format that must be exported to ONNX first; the message says how.
    """
    suffix = path.suffix.lower()
    if suffix in _EXPORT_HINTS:
        raise UnsupportedError("this format is not read", where=path, got=suffix, hint=_EXPORT_HINTS[suffix])
    if suffix not in IMPORTERS:
        raise ModelError("not a model file", where=path, got=suffix or "no suffix", expected=", ".join(IMPORTERS))
    result = importlib.import_module(IMPORTERS[suffix]).import_model(path)
    if not isinstance(result, ImportedModel):
        raise TypeError(f"importer for {suffix} gave {type(result).__name__}")
    return result
