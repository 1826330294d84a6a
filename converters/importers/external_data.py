"""External tensor data of ONNX models: memory-mapped, and confined to the model's folder.

A location is refused when it is absolute, climbs out, passes through a link, or names what is no ordinary file or has
a second (hard) link. Each file is opened without following links, and what was opened is what is checked and mapped.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import TensorProto, helper

from edgekit.converters.importers.tensor_checks import byte_count, tensors_of
from edgekit.errors import ModelError, UnsupportedError

_KEYS = {"location", "offset", "length", "checksum"}
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_HASH_BLOCK_BYTES = 1 << 20
_COPIED_BYTES = 4096


@dataclass
class ExternalData:
    """Mapped files and the tensors in them.

    Attributes:
        arrays: Initializer name to its array, a view of the map; small ones are copied into the message instead.
    """

    arrays: dict[str, NDArray[np.generic]] = field(default_factory=dict)

    def attach(self, model: ir.Model) -> None:
        """Turns the inputs that stood for these tensors into initializers again."""
        inputs = {str(v.name): v for v in model.graph.inputs}
        for name, array in self.arrays.items():
            value = inputs[name]
            model.graph.inputs.remove(value)
            value.const_value = ir.Tensor(array, name=name)
            model.graph.register_initializer(value)


@dataclass(frozen=True)
class _Span:
    name: str
    location: PurePosixPath
    offset: int
    length: int | None


def map_external_data(path: Path, proto: onnx.ModelProto, digest: hashlib._Hash) -> ExternalData:
    """Maps all external tensors of a model.

    In the message, a large one is replaced by a graph input of its type and shape, so that its bytes are never copied
    by the checker or the opset converter; attach() turns it back. Small ones are copied in.

    Args:
        path: The model file.
        proto: The model; edited.
        digest: Is fed with the external files in the order of their first use.

    Raises:
        ModelError: A location leaves the folder, or the file does not hold the tensor.
        UnsupportedError: A large one in a sub-graph or an attribute, where it can't be mapped.
    """
    maps: dict[PurePosixPath, memoryview] = {}
    result = ExternalData()
    initializers = {t.name for t in proto.graph.initializer if t.data_location == TensorProto.EXTERNAL}
    for name, tensor in list(tensors_of(proto)):
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        span = _span_of(path, name, tensor)
        if span.location not in maps:
            maps[span.location] = _map_file(path, span)
            for start in range(0, len(maps[span.location]), _HASH_BLOCK_BYTES):
                digest.update(maps[span.location][start : start + _HASH_BLOCK_BYTES])
        array = _array_in(path, tensor, span, maps[span.location])
        if array.nbytes <= _COPIED_BYTES:
            _copy_in(tensor, array)
        elif name in initializers:
            result.arrays[name] = array
        else:
            raise UnsupportedError("large external data outside the main graph", where=f"{path}: {name}")
    _as_inputs(proto, result.arrays)
    return result


def _copy_in(tensor: onnx.TensorProto, array: NDArray[np.generic]) -> None:
    del tensor.external_data[:]
    tensor.data_location = TensorProto.DEFAULT
    tensor.raw_data = array.tobytes()


def _as_inputs(proto: onnx.ModelProto, arrays: dict[str, NDArray[np.generic]]) -> None:
    present = {value.name for value in proto.graph.input}
    kept = []
    for tensor in proto.graph.initializer:
        if tensor.name not in arrays:
            kept.append(tensor)
        elif tensor.name not in present:
            info = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            proto.graph.input.append(info)
    if arrays:
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(kept)


def _span_of(path: Path, name: str, tensor: onnx.TensorProto) -> _Span:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    where = f"{path}: {name}"
    if len(entries) != len(tensor.external_data) or not set(entries) <= _KEYS or "location" not in entries:
        raise ModelError(
            "external data are described wrongly", where=where, got=", ".join(map(repr, entries)) or "nothing"
        )
    location = PurePosixPath(entries["location"])
    climbs = (
        location.is_absolute() or ".." in location.parts or "\\" in entries["location"] or "\0" in entries["location"]
    )
    if climbs or not location.parts or ":" in location.parts[0]:
        raise ModelError("external data lie outside the model's folder", where=where, got=entries["location"])
    numbers = []
    for key in ("offset", "length"):
        text = entries.get(key)
        if text is not None and not (text.isascii() and text.isdigit() and len(text) <= 15):
            raise ModelError(f"external data have no valid {key}", where=where, got=text)
        numbers.append(None if text is None else int(text))
    return _Span(name, location, numbers[0] or 0, numbers[1])


def _map_file(path: Path, span: _Span) -> memoryview:
    """Opens a file below the model's folder, part by part without following links, and maps it."""
    where = f"{path}: {span.name}"
    folder = os.open(path.parent, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    opened = [folder]
    try:
        for part in span.location.parts[:-1]:
            opened.append(os.open(part, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_FOLLOW, dir_fd=opened[-1]))
        flags = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0)
        opened.append(os.open(span.location.parts[-1], flags, dir_fd=opened[-1]))
        status = os.fstat(opened[-1])
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise ModelError("external data must be an ordinary file without links", where=where, got=span.location)
        if status.st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(opened[-1], status.st_size, access=mmap.ACCESS_READ))
    except OSError as error:
        raise ModelError(
            "external data can't be opened, or lie behind a link", where=where, got=f"{span.location}: {error.strerror}"
        ) from error
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _array_in(path: Path, tensor: onnx.TensorProto, span: _Span, data: memoryview) -> NDArray[np.generic]:
    where = f"{path}: {span.name}"
    if tensor.data_type == TensorProto.STRING:
        raise UnsupportedError("strings can't be external data", where=where)
    wanted = byte_count(path, span.name, tensor)
    length = wanted if span.length is None else span.length
    if length != wanted:
        raise ModelError("external data do not fit the tensor's shape", where=where, got=length, expected=wanted)
    if length > len(data) or span.offset > len(data) - length:
        raise ModelError(
            "external data end too early",
            where=where,
            got=f"{len(data)} bytes in {span.location}",
            expected=f"{length} at offset {span.offset}",
        )
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if dtype.itemsize * int(np.prod(tensor.dims, dtype=np.int64)) != length:
        raise UnsupportedError("packed types can't be external data", where=where)
    return np.frombuffer(data[span.offset : span.offset + length], dtype).reshape(tuple(tensor.dims))
