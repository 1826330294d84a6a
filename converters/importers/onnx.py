"""Reads ONNX files: bounded, checked before use, raised to opset 21 or newer.

A model file is hostile until shown otherwise (reliability.md, Files): sizes, counts and tensor shapes are checked
before anything is computed from them, and external data stay inside the model's folder (external_data.py).
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError
from onnx import checker, version_converter

from edgekit.converters.importers import ImportedModel
from edgekit.converters.importers.external_data import map_external_data
from edgekit.converters.importers.tensor_checks import check_counts, check_tensors
from edgekit.errors import ModelError, UnsupportedError

LEAST_OPSET = 21
NEWEST_OPSET = onnx.defs.onnx_opset_version()
_MAX_FILE_BYTES = 2**31 - 1
_MAX_METADATA_CHARS = 1 << 20
_TEXT_STARTS = (b"<!DOCTYPE", b"<html", b"version https://git-lfs", b"PK\x03\x04", b"\x80\x02", b"{")


def import_model(path: Path) -> ImportedModel:
    """Reads an ONNX file.

    Args:
        path: The file; external data lie in its folder or below.

    Raises:
        ModelError: Missing, truncated, no ONNX, hostile, or damaged external data.
        UnsupportedError: Made by a newer ONNX, or with parts that nothing here runs.
    """
    data = _read(path)
    proto = _parse(path, data)
    _check_versions(path, proto)
    check_counts(path, proto)
    digest = hashlib.sha256(data)
    external = map_external_data(path, proto, digest)
    check_tensors(path, proto)
    _check_graph(path, proto)
    opset = _standard_opset(proto)
    raised = _raise_opset(path, proto, opset)
    try:
        model = ir.serde.deserialize_model(raised)
    except Exception as error:
        raise ModelError("the graph can't be read", where=path, got=_line(error)) from error
    external.attach(model)
    metadata = {p.key: p.value for p in proto.metadata_props if len(p.value) <= _MAX_METADATA_CHARS}
    return ImportedModel(model, path.name, digest.hexdigest(), opset, metadata)


def _read(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError as error:
        raise ModelError("no such file", where=path) from error
    except OSError as error:
        raise ModelError("can't be opened", where=path, got=error.strerror) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise ModelError("not a file", where=path, hint="give the .onnx file itself")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > _MAX_FILE_BYTES:
            raise ModelError("too large for one ONNX file", where=path, got=status.st_size, expected="below 2 GiB")
        data = file.read(_MAX_FILE_BYTES + 1)
    if not data:
        raise ModelError("the file is empty", where=path)
    if len(data) != status.st_size:
        raise ModelError("the file changed while it was read", where=path)
    return data


def _parse(path: Path, data: bytes) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (DecodeError, RuntimeError, ValueError) as error:
        looks_foreign = data.startswith(_TEXT_STARTS)
        what = "not an ONNX model" if looks_foreign else "damaged, truncated or no ONNX model"
        raise ModelError(what, where=path, got=f"{len(data)} bytes that do not parse") from error
    if not proto.HasField("graph") or not proto.ir_version:
        raise ModelError("not an ONNX model", where=path, got="no graph in it")
    if not proto.graph.node and not proto.graph.output:
        raise ModelError("the graph is empty", where=path)
    return proto


def _check_versions(path: Path, proto: onnx.ModelProto) -> None:
    if proto.ir_version > onnx.IR_VERSION:
        raise UnsupportedError(
            "made by a newer ONNX",
            where=path,
            got=f"ir_version {proto.ir_version}",
            expected=f"at most {onnx.IR_VERSION}",
            hint="export it with an older ir_version or update onnx",
        )
    opset = _standard_opset(proto)
    if opset > NEWEST_OPSET:
        raise UnsupportedError(
            "made for a newer opset",
            where=path,
            got=f"opset {opset}",
            expected=f"at most {NEWEST_OPSET}",
            hint="export it with a lower opset_version or update onnx",
        )
    if opset < 1:
        raise ModelError("no standard opset is declared", where=path, expected="an opset_import of ai.onnx")


def _standard_opset(proto: onnx.ModelProto) -> int:
    return max((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=0)


def _check_graph(path: Path, proto: onnx.ModelProto) -> None:
    try:
        checker.check_model(proto, full_check=False)
    except (checker.ValidationError, ValueError, RuntimeError, MemoryError) as error:
        line = _line(error)
        if "No Op registered" in line or "No opset import for domain" in line or "No schema registered" in line:
            raise UnsupportedError("an operator is not known", where=path, got=line) from error
        raise ModelError("not a valid ONNX graph", where=path, got=line) from error


def _raise_opset(path: Path, proto: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """Raises the standard opset to LEAST_OPSET; per-channel scales need 13, the passes rest on 21."""
    if opset >= LEAST_OPSET:
        return proto
    try:
        raised = version_converter.convert_version(proto, LEAST_OPSET)
    except Exception as error:
        raise UnsupportedError(
            "can't be raised to a newer opset",
            where=path,
            got=f"opset {opset}: {_line(error)}",
            expected=f"opset {LEAST_OPSET}",
            hint="export it again with opset_version=17 or newer",
        ) from error
    logging.getLogger(__name__).info("%s: opset raised from %d to %d", path.name, opset, LEAST_OPSET)
    raised.ir_version = max(raised.ir_version, 10)
    return raised


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:240]
