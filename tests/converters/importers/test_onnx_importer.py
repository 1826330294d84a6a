"""The ONNX importer: what it reads, and that hostile, damaged and foreign files are refused in one line."""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgekit.converters.float_reference import FloatReference
from edgekit.converters.importers import import_model
from edgekit.errors import ModelError, UnsupportedError


def small_model(opset: int = 17, **changes) -> onnx.ModelProto:
    weight = numpy_helper.from_array(np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 8, 8])],
        [weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **changes)


def refused(path, error=ModelError) -> str:
    with pytest.raises(error) as caught:
        import_model(path)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 1000
    return line


def test_opset_is_raised_and_the_numbers_stay(tmp_path):
    """Fault "invalid graph: per-channel with opset below 13": opset 11 becomes 21."""
    proto = small_model(opset=11)
    onnx.save(proto, tmp_path / "m.onnx")
    imported = import_model(tmp_path / "m.onnx")
    assert imported.opset == 11
    assert imported.model.graph.opset_imports[""] == 21
    feeds = {"x": np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)}
    before = FloatReference(proto.SerializeToString()).run(feeds)["y"]
    assert np.array_equal(before, FloatReference(imported.model).run(feeds)["y"])


def test_metadata_name_and_hash(tmp_path):
    proto = small_model()
    helper.set_model_props(proto, {"character": "a\nb"})
    onnx.save(proto, tmp_path / "m.onnx")
    imported = import_model(tmp_path / "m.onnx")
    assert imported.metadata == {"character": "a\nb"}
    assert imported.source_name == "m.onnx"
    assert len(imported.source_sha256) == 64


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"not a model",
        b"<!DOCTYPE html><html>",
        b"PK\x03\x04" + b"\0" * 60,
        np.random.default_rng(5).bytes(4096),
    ],
)
def test_foreign_files(tmp_path, content):
    (tmp_path / "m.onnx").write_bytes(content)
    assert "m.onnx" in refused(tmp_path / "m.onnx")


def test_every_truncation_is_refused_or_a_smaller_valid_model(tmp_path):
    data = small_model().SerializeToString()
    path = tmp_path / "m.onnx"
    accepted = 0
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        try:
            import_model(path)
            accepted += 1
        except ModelError as error:
            assert "\n" not in str(error)
    assert accepted <= 3


def test_flipped_bytes_never_crash(tmp_path):
    data = bytearray(small_model().SerializeToString())
    rng = np.random.default_rng(3)
    path = tmp_path / "m.onnx"
    for _ in range(150):
        changed = bytearray(data)
        changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(changed)
        try:
            import_model(path)
        except ModelError as error:
            assert "\n" not in str(error)


def test_missing_file_and_folder(tmp_path):
    assert "no such file" in refused(tmp_path / "none.onnx")
    (tmp_path / "folder.onnx").mkdir()
    assert "folder.onnx: not a file" in refused(tmp_path / "folder.onnx")


@pytest.mark.parametrize(
    "suffix, word", [(".tflite", "tf2onnx"), (".pt", "torch.onnx.export"), (".pdmodel", "paddle2onnx")]
)
def test_other_formats_say_what_to_export(tmp_path, suffix, word):
    assert word in refused(tmp_path / f"model{suffix}", UnsupportedError)


def test_ir_version_too_new(tmp_path):
    """Fault "model refused on the device: IR or opset too new": ir_version 99."""
    proto = small_model()
    proto.ir_version = 99
    onnx.save(proto, tmp_path / "m.onnx")
    assert "ir_version 99" in refused(tmp_path / "m.onnx", UnsupportedError)


def test_opset_too_new_and_none(tmp_path):
    proto = small_model()
    proto.opset_import[0].version = 999
    onnx.save(proto, tmp_path / "m.onnx")
    assert "opset 999" in refused(tmp_path / "m.onnx", UnsupportedError)
    del proto.opset_import[:]
    onnx.save(proto, tmp_path / "m.onnx")
    assert "opset" in refused(tmp_path / "m.onnx")


def test_unknown_operator(tmp_path):
    proto = small_model()
    proto.graph.node[1].op_type = "Relux"
    onnx.save(proto, tmp_path / "m.onnx")
    assert "Relux" in refused(tmp_path / "m.onnx", UnsupportedError)


def test_cycle(tmp_path):
    proto = small_model()
    proto.graph.node[0].input[0] = "y"
    onnx.save(proto, tmp_path / "m.onnx")
    assert "m.onnx" in refused(tmp_path / "m.onnx")


@pytest.mark.parametrize("dims", [[4, 3, 3, 4], [-4, 3, 3, 3], [1 << 40, 1 << 40], [1] * 100, [4, 3, 3, 0]])
def test_tensor_whose_data_do_not_fit_its_shape(tmp_path, dims):
    proto = small_model()
    del proto.graph.initializer[0].dims[:]
    proto.graph.initializer[0].dims.extend(dims)
    onnx.save(proto, tmp_path / "m.onnx")
    assert "tensor" in refused(tmp_path / "m.onnx")


def test_deep_branches(tmp_path):
    graph = small_model().graph
    for level in range(24):
        node = helper.make_node("If", ["c"], [f"o{level}"], then_branch=graph, else_branch=graph)
        graph = helper.make_graph([node], f"g{level}", [], [helper.make_tensor_value_info(f"o{level}", 1, None)])
        if graph.ByteSize() > 1 << 20:
            break
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    assert "m.onnx" in refused(tmp_path / "m.onnx")


def with_external(folder, **entries) -> onnx.ModelProto:
    """A model whose weight says that it lies elsewhere."""
    proto = small_model()
    tensor = proto.graph.initializer[0]
    (folder / "w.bin").write_bytes(b"\0" * 16 + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in ({"location": "w.bin", "offset": "16"} | entries).items():
        if value is not None:
            tensor.external_data.add(key=key, value=value)
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return proto


@pytest.mark.parametrize("channels", [4, 400])
def test_external_data_small_and_large(tmp_path, channels):
    weight = np.random.default_rng(0).normal(size=(channels, 3, 3, 3)).astype(np.float32)
    proto = small_model()
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "w"))
    proto.graph.output[0].type.tensor_type.shape.dim[1].dim_value = channels
    inside = proto.SerializeToString()
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    imported = import_model(tmp_path / "m.onnx")
    assert [v.name for v in imported.model.graph.inputs] == ["x"]
    feeds = {"x": np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)}
    assert np.array_equal(FloatReference(inside).run(feeds)["y"], FloatReference(imported.model).run(feeds)["y"])
    array = imported.model.graph.initializers["w"].const_value.numpy()
    assert array.flags.writeable is False or array.nbytes <= 4096


@pytest.mark.parametrize(
    "entries",
    [
        {"location": "/etc/hostname"},
        {"location": "../w.bin"},
        {"location": "a/../../w.bin"},
        {"location": "..\\w.bin"},
        {"location": "C:w.bin"},
        {"location": ""},
        {"location": "none.bin"},
        {"location": None},
        {"offset": "-1"},
        {"offset": "99999999"},
        {"offset": "1" * 30},
        {"length": "8"},
        {"length": "99999999"},
        {"basepath": "/etc"},
    ],
)
def test_external_data_outside_or_wrong(tmp_path, entries):
    folder = tmp_path / "model"
    folder.mkdir()
    with_external(folder, **entries)
    (tmp_path / "w.bin").write_bytes(b"\0" * 4096)
    assert "m.onnx" in refused(folder / "m.onnx")


@pytest.mark.parametrize("kind", ["symbolic", "hard", "folder", "pipe"])
def test_external_data_behind_links(tmp_path, kind):
    folder, outside = tmp_path / "model", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    with_external(folder, location="sub/w.bin" if kind == "folder" else "w.bin")
    (folder / "w.bin").rename(outside / "w.bin")
    if kind == "symbolic":
        (folder / "w.bin").symlink_to(outside / "w.bin")
    elif kind == "hard":
        (folder / "w.bin").hardlink_to(outside / "w.bin")
    elif kind == "folder":
        (folder / "sub").symlink_to(outside)
    else:
        os.mkfifo(folder / "w.bin")
    assert "m.onnx" in refused(folder / "m.onnx")
