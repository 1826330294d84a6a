"""Writing and reading packages: what comes back, and that any zip tool agrees."""

import hashlib
import mmap
import zipfile

import numpy as np
import pytest
from builders.packages import reference, small_feeds, small_manifest, small_package

from edgekit.errors import IntegrityError, PackageError, PackageVersionError
from edgekit.package.golden import read_golden
from edgekit.package.manifest import Variant
from edgekit.package.reader import open_package, parse_manifest
from edgekit.package.writer import manifest_json, write_package
from edgekit.records import replace

MEMBERS = {"variants/onnx/model.onnx": b"model" * 100, "report.json": b"{}", "empty.txt": b""}


def test_members_come_back_and_are_aligned(tmp_path):
    path = tmp_path / "m.ekpkg"
    written = write_package(path, small_manifest(), MEMBERS)
    with open_package(path) as package:
        assert package.manifest == written
        for name, data in MEMBERS.items():
            assert package.read(name) == data
            where, offset, size = package.file(name)
            assert where == str(path) and offset % 64 == 0 and size == len(data)
            record = written.members[name]
            assert (record.size_bytes, record.sha256) == (len(data), hashlib.sha256(data).hexdigest())
        _, offset, size = package.file("variants/onnx/model.onnx")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            assert mapped[offset : offset + size] == MEMBERS["variants/onnx/model.onnx"]


def test_python_zipfile_reads_it(tmp_path):
    path = small_package(tmp_path / "m.ekpkg")
    with zipfile.ZipFile(path) as archive, open_package(path) as package:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "manifest.json"
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
        for name in package.manifest.members:
            assert archive.read(name) == package.read(name)


def test_same_contents_give_the_same_bytes(tmp_path):
    first, second = (small_package(tmp_path / name) for name in ("a.ekpkg", "b.ekpkg"))
    assert first.read_bytes() == second.read_bytes()


def test_members_from_files(tmp_path):
    source = tmp_path / "model.onnx"
    source.write_bytes(bytes(range(256)) * 9000)  # more than one block
    path = tmp_path / "m.ekpkg"
    write_package(path, small_manifest(), {"variants/onnx/model.onnx": source})
    with open_package(path) as package:
        assert package.read("variants/onnx/model.onnx") == source.read_bytes()


def test_non_ascii_member_names(tmp_path):
    path = tmp_path / "m.ekpkg"
    write_package(path, small_manifest(), {**MEMBERS, "Größe/模型.txt": b"x"})
    with open_package(path) as package, zipfile.ZipFile(path) as archive:
        assert package.read("Größe/模型.txt") == archive.read("Größe/模型.txt") == b"x"


def test_golden_data_come_back(tmp_path):
    path = small_package(tmp_path / "m.ekpkg", samples=2)
    with open_package(path) as package:
        golden = read_golden(package)
    assert len(golden.samples) == 2 and golden.min_sqnr_db == {"scores": 60.0, "/features": 60.0}
    for seed, sample in enumerate(golden.samples):
        feeds = small_feeds(seed)
        for name, array in feeds.items():
            assert np.array_equal(sample.inputs[name], array) and sample.inputs[name].dtype == array.dtype
        for name, array in reference(feeds).items():
            assert np.array_equal(sample.outputs[name], array)


def test_no_golden_data(tmp_path):
    write_package(tmp_path / "m.ekpkg", small_manifest(), MEMBERS)
    with open_package(tmp_path / "m.ekpkg") as package:
        assert read_golden(package) is None


def test_replaced_file_is_noticed(tmp_path):
    path = small_package(tmp_path / "m.ekpkg")
    with open_package(path) as package:
        package.check_unchanged()
        small_package(tmp_path / "new.ekpkg", samples=2).replace(path)
        with pytest.raises(IntegrityError, match="was replaced while it was being loaded"):
            package.check_unchanged()


def test_use_after_close(tmp_path):
    package = open_package(small_package(tmp_path / "m.ekpkg"))
    package.close()
    package.close()
    with pytest.raises(PackageError, match="package is closed"):
        package.read("report.json")


def _with(**changes):
    return manifest_json(replace(small_manifest(), **changes))


def test_newer_minor_version_with_unknown_fields_is_accepted():
    text = _with(format_minor=7).replace(b'"labels"', b'"colour_of_the_box": "green", "labels"')
    assert parse_manifest(_members_of(text), "p").format_minor == 7


def test_newer_major_version_is_refused_in_one_line():
    with pytest.raises(PackageVersionError) as caught:
        parse_manifest(_with(format_major=2), "p.ekpkg")
    assert str(caught.value).count("\n") == 0
    assert "got version 2.0" in str(caught.value) and "update edgekit" in str(caught.value)


def _members_of(text: bytes) -> bytes:
    record = b'"members": {"variants/onnx/model.onnx": {"size_bytes": 1, "sha256": "' + b"0" * 64 + b'"}}'
    return text.replace(b'"members": {}', record)


DIGEST = "0" * 64
BAD_MANIFESTS = {
    "duplicate key": lambda t: t.replace(b'"labels"', b'"profile": "x", "labels"'),
    "unknown field inside": lambda t: t.replace(b'"color"', b'"size": 3, "color"').replace(
        b'"name"', b'"x": 1, "name"'
    ),
    "wrong type": lambda t: t.replace(b'"profile": "this-machine"', b'"profile": 5'),
    "missing field": lambda t: t.replace(b'"source_name": "small.onnx",', b""),
    "not finite": lambda t: t.replace(b'"metrics": {}', b'"metrics": {"a": NaN}'),
    "infinite": lambda t: t.replace(b'"metrics": {}', b'"metrics": {"a": 1e999}'),
    "negative dim": lambda t: t.replace(b"   8,\n", b"   -8,\n"),
    "unset symbol": lambda t: t.replace(b"   8,\n", b'   "height",\n'),
    "product too large": lambda t: t.replace(b"   8,\n", b"   2147483647,\n"),
    "member outside the variant": lambda t: t.replace(b"variants/onnx/model.onnx", b"model.onnx"),
    "traversal": lambda t: t.replace(b"variants/onnx/model.onnx", b"variants/onnx/../../x"),
    "bad hash": lambda t: t.replace(DIGEST.encode(), b"Z" * 64),
    "unknown engine": lambda t: t.replace(b'"engine": "onnxruntime"', b'"engine": "tensorrt"'),
    "bad dtype": lambda t: t.replace(b'"float32"', b'"complex64"'),
    "deep nesting": lambda t: b"[" * 200_000,
    "long integer": lambda t: t.replace(b'"format_minor": 0', b'"format_minor": ' + b"1" * 5000),
    "not UTF-8": lambda t: t.replace(b"small.onnx", b"\xff\xfe"),
    "an array": lambda t: b"[]",
    "nothing": lambda t: b"",
    "version as text": lambda t: t.replace(b'"format_major": 1', b'"format_major": "1"'),
    "version true": lambda t: t.replace(b'"format_major": 1', b'"format_major": true'),
    "version zero": lambda t: t.replace(b'"format_major": 1', b'"format_major": 0'),
}


@pytest.mark.parametrize("name", BAD_MANIFESTS)
def test_bad_manifests_are_refused_in_one_line(name):
    good = _members_of(manifest_json(small_manifest()))
    parse_manifest(good, "p.ekpkg")
    bad = BAD_MANIFESTS[name](good)
    assert bad != good
    with pytest.raises(PackageError) as caught:
        parse_manifest(bad, "p.ekpkg")
    assert "\n" not in str(caught.value) and str(caught.value).startswith("p.ekpkg: manifest.json")
    assert len(str(caught.value)) < 500


def test_writer_refuses_what_the_reader_would_refuse(tmp_path):
    path = tmp_path / "m.ekpkg"
    lonely = Variant("onnx", "onnxruntime", None, ("variants/onnx/other.onnx",))
    for manifest, members in (
        (small_manifest((lonely,)), MEMBERS),
        (small_manifest(), {**MEMBERS, "../x": b""}),
        (small_manifest(), {**MEMBERS, "manifest.json": b""}),
        (small_manifest(), {**MEMBERS, "REPORT.json": b""}),
        (replace(small_manifest(), metrics={"x": float("nan")}), MEMBERS),
        (replace(small_manifest(), outputs=()), MEMBERS),
    ):
        with pytest.raises(PackageError):
            write_package(path, manifest, members)
        assert list(tmp_path.iterdir()) == []
