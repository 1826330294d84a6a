"""Damaged and hostile packages: each is refused with one line that names the member."""

import itertools
import os
import random
import struct
import tracemalloc
import zipfile
import zlib

import pytest
from builders.packages import small_manifest, small_package

from edgekit.cli.main import run
from edgekit.errors import IntegrityError, PackageError
from edgekit.package.archive import ArchiveLimits, read_archive
from edgekit.package.reader import open_package
from edgekit.package.writer import write_package


@pytest.fixture(scope="module")
def package_bytes(tmp_path_factory):
    return small_package(tmp_path_factory.mktemp("good") / "good.ekpkg", openvino=True).read_bytes()


def refusal(path) -> str:
    with pytest.raises(PackageError) as caught:
        open_package(path).close()
    line = str(caught.value)
    assert "\n" not in line and line.isprintable() and len(line) < 400
    return line


def test_a_thousand_mutations_are_refused_naming_the_member(package_bytes, tmp_path):
    path = tmp_path / "bad.ekpkg"
    rng = random.Random(20)
    for index in range(1000):
        data = bytearray(package_bytes)
        if index % 4 == 0:
            data = data[: rng.randrange(len(data))]
        else:
            for _ in range(rng.choice((1, 1, 2, 8))):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        if data == package_bytes:
            continue
        path.write_bytes(data)
        member, _, what = refusal(path).removeprefix(f"{path}: ").partition(": ")
        assert what or member.startswith("is not an archive"), member


STEPS = [pytest.param(5, id="sample"), pytest.param(1, id="all", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("step", STEPS)
def test_every_bit_of_the_structure_counts(tmp_path, step):
    """Flips outside the members of a tiny package, which hashes alone cover."""
    path = tmp_path / "tiny.ekpkg"
    write_package(path, small_manifest(), {"variants/onnx/model.onnx": b"x"})
    good = path.read_bytes()
    with open_package(path) as package:
        manifest_end = package.file("variants/onnx/model.onnx")[1]
    header = good.find(b"{")
    bad = tmp_path / "bad.ekpkg"
    places = [*range(header), *range(manifest_end - 64, len(good))]
    for position, bit in list(itertools.product(places, range(8)))[::step]:
        data = bytearray(good)
        data[position] ^= 1 << bit
        bad.write_bytes(data)
        assert bad.name in refusal(bad)


@pytest.mark.parametrize("step", STEPS)
def test_every_truncation_of_a_tiny_package(tmp_path, step):
    path = tmp_path / "tiny.ekpkg"
    write_package(path, small_manifest(), {"variants/onnx/model.onnx": b"x"})
    good = path.read_bytes()
    for size in range(0, len(good), step):
        path.write_bytes(good[:size])
        assert path.name in refusal(path)
    for tail in (b"\0", b"PK\x05\x06" + bytes(18), good):
        path.write_bytes(good + tail)
        assert path.name in refusal(path)


def test_the_command_line_says_one_line_and_exits_with_2(package_bytes, tmp_path, capsys):
    path = tmp_path / "bad.ekpkg"
    for position in range(0, len(package_bytes), len(package_bytes) // 20):
        data = bytearray(package_bytes)
        data[position] ^= 4
        path.write_bytes(data)
        for words in (["inspect", str(path)], ["run", str(path), "x.png"], ["bench", str(path)]):
            assert run(words) == 2
            printed = capsys.readouterr()
            assert printed.out == "" and printed.err.count("\n") == 1 and "Traceback" not in printed.err


def test_large_packages_are_checked_in_little_memory(tmp_path):
    path = tmp_path / "large.ekpkg"
    write_package(path, small_manifest(), {"variants/onnx/model.onnx": bytes(128 << 20)})
    with path.open("r+b") as file:
        file.seek(100 << 20)
        file.write(b"\1")
    tracemalloc.start()
    try:
        assert "variants/onnx/model.onnx" in refusal(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def _zip(path, entries, comment=b""):
    """Writes an archive as given: (name, data, changes) with changes to the fields of both headers."""
    local, central = b"", b""
    for name, data, changes in entries:
        values = {
            "flags": 0,
            "method": 0,
            "crc": zlib.crc32(data),
            "packed": len(data),
            "size": len(data),
            "attributes": 0,
            "offset": len(local),
            "local_name": name,
            "extra": b"",
            **changes,
        }
        header = (values["flags"], values["method"], 0, 0, values["crc"], values["packed"], values["size"])
        both = struct.pack("<HHHHIII", *header)
        central += b"PK\x01\x02" + struct.pack("<HH", 20, 20) + both
        central += struct.pack(
            "<HHHHHII", len(name), len(values["extra"]), 0, 0, 0, values["attributes"], values["offset"]
        )
        central += name + values["extra"]
        local += b"PK\x03\x04" + struct.pack("<H", 20) + both + struct.pack("<HH", len(values["local_name"]), 0)
        local += values["local_name"] + data
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(central), len(local), len(comment))
    path.write_bytes(local + central + b"PK\x05\x06" + end + comment)
    return path


GOOD = (b"a/b.txt", b"hello", {})
HOSTILE = {
    "two members of one name": [GOOD, (b"a/b.txt", b"other", {})],
    "names that differ in case": [GOOD, (b"A/B.txt", b"other", {})],
    "parent folder": [(b"../x", b"", {})],
    "parent folder inside": [(b"a/../../x", b"", {})],
    "absolute": [(b"/etc/passwd", b"", {})],
    "backslash": [(b"..\\x", b"", {})],
    "drive": [(b"C:x", b"", {})],
    "newline": [(b"a\nb", b"", {})],
    "zero byte": [(b"a\0b", b"", {})],
    "escape sequence": [(b"\x1b[2Jx", b"", {})],
    "empty name": [(b"", b"", {})],
    "folder": [(b"a/", b"", {})],
    "dot": [(b"./a", b"", {})],
    "not UTF-8": [(b"\xff\xfe", b"", {})],
    "overlong name": [(b"a" * 300, b"", {})],
    "link": [(b"link", b"/etc/passwd", {"attributes": 0o120777 << 16})],
    "device": [(b"null", b"", {"attributes": 0o020666 << 16})],
    "encrypted": [(b"a", b"x", {"flags": 1})],
    "streamed": [(b"a", b"x", {"flags": 8})],
    "deflated": [(b"a", zlib.compress(b"x" * 99)[2:-4], {"method": 8, "size": 99, "crc": zlib.crc32(b"x" * 99)})],
    "unknown method": [(b"a", b"x", {"method": 99})],
    "another name in the local header": [(b"a", b"x", {"local_name": b"b"})],
    "two sizes": [(b"a", b"x", {"size": 2})],
    "reaches beyond": [(b"a", b"x", {"size": 1000, "packed": 1000})],
    "offset beyond": [(b"a", b"x", {"offset": 0x7FFFFFFF})],
    "overlap": [GOOD, (b"c", b"x", {"offset": 0})],
    "zip64": [(b"a", b"x", {"size": 0xFFFFFFFF, "packed": 0xFFFFFFFF})],
    "zip64 extra": [(b"a", b"x", {"extra": struct.pack("<HHQQ", 1, 16, 1, 1)})],
    "damaged extra": [(b"a", b"x", {"extra": struct.pack("<HH", 1, 500)})],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives(name, tmp_path):
    path = _zip(tmp_path / "bad.zip", HOSTILE[name])
    with path.open("rb") as file, pytest.raises(PackageError) as caught:
        read_archive(file, path, ArchiveLimits())
    assert str(caught.value).isprintable()


def test_the_hostile_archives_differ_from_a_good_one_by_their_fault_alone(tmp_path):
    path = _zip(tmp_path / "good.zip", [GOOD, (b"c", b"x", {})], b"a comment")
    with path.open("rb") as file:
        archive = read_archive(file, path, ArchiveLimits())
    assert [member.name for member in archive.members] == ["a/b.txt", "c"] and archive.comment == b"a comment"


def test_bytes_that_belong_to_nothing_are_refused(tmp_path):
    good = _zip(tmp_path / "good.zip", [GOOD]).read_bytes()
    directory = good.find(b"PK\x01\x02")
    shifted = bytearray(good[:directory] + b"hidden" + good[directory:])
    end = shifted.rfind(b"PK\x05\x06")
    shifted[end + 16 : end + 20] = struct.pack("<I", directory + 6)
    for data in (bytes(shifted), b"#!/bin/sh\n" + good):
        path = tmp_path / "bad.zip"
        path.write_bytes(data)
        with path.open("rb") as file, pytest.raises(PackageError):
            read_archive(file, path, ArchiveLimits())


def test_too_many_members_and_too_large_ones(tmp_path):
    path = _zip(tmp_path / "many.zip", [(b"%d" % index, b"", {}) for index in range(50)])
    large = _zip(tmp_path / "large.zip", [GOOD])
    for file_path, limits in (
        (path, ArchiveLimits(members=49)),
        (path, ArchiveLimits(directory_bytes=100)),
        (large, ArchiveLimits(member_bytes=4)),
        (large, ArchiveLimits(total_bytes=4)),
    ):
        with file_path.open("rb") as file, pytest.raises(PackageError):
            read_archive(file, file_path, limits)


def test_other_archives_and_odd_files_are_not_packages(tmp_path):
    plain = tmp_path / "plain.zip"
    with zipfile.ZipFile(plain, "w") as archive:
        archive.writestr("manifest.json", "{}")
    text = tmp_path / "text.ekpkg"
    text.write_text("hello")
    for path in (plain, text, tmp_path, tmp_path / "missing.ekpkg"):
        assert path.name in refusal(path)


def test_pipes_do_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.ekpkg")
    assert "not a regular file" in refusal(tmp_path / "pipe.ekpkg")


def test_a_member_that_the_manifest_does_not_list(tmp_path):
    """Rebuilt consistently in every other way: only the manifest knows better."""
    from edgekit.package.layout import MemberKey, plan_layout

    path = tmp_path / "m.ekpkg"
    write_package(path, small_manifest(), {"variants/onnx/model.onnx": b"x"})
    with path.open("rb") as file:
        members = read_archive(file, path, ArchiveLimits()).members
        data = {member.name: package_data(file, member) for member in members}
    comment_sha = path.read_bytes()[-64:].decode()
    data["hidden.bin"] = b"payload"
    keys = [MemberKey(name, len(value), zlib.crc32(value)) for name, value in data.items()]
    layout = plan_layout(keys, comment_sha)
    path.write_bytes(b"".join(placed.header + data[placed.key.name] for placed in layout.members) + layout.end)
    assert "hidden.bin: is not listed in the manifest" in refusal(path)


def package_data(file, member) -> bytes:
    file.seek(member.data_offset)
    return file.read(member.size_bytes)


def test_integrity_errors_are_told_apart_from_malformed_ones(package_bytes, tmp_path):
    path = tmp_path / "bad.ekpkg"
    data = bytearray(package_bytes)
    data[package_bytes.find(b"<?xml") + 20] ^= 1
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match=r"variants/openvino/model\.xml: SHA-256 differs"):
        open_package(path)
