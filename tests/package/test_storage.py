"""Atomic files: every system call that can fail is made to fail once; old or new, never a mix, nothing left behind."""

import errno
import os
import resource
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from edgekit.errors import StorageError, UsageError
from edgekit.package import storage
from edgekit.package.storage import atomic_file, check_output, make_folder, write_atomic

OLD, NEW = b"old contents", b"new contents" * 1000


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "file"
    for data in (OLD, NEW, b""):
        write_atomic(path, data)
        assert path.read_bytes() == data and [p.name for p in tmp_path.iterdir()] == ["file"]


def test_an_exception_in_the_block_keeps_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    with pytest.raises(ZeroDivisionError), atomic_file(path) as file:
        file.write(NEW)
        raise ZeroDivisionError
    assert path.read_bytes() == OLD and [p.name for p in tmp_path.iterdir()] == ["file"]


def _failing(code):
    def call(*_args, **_kwargs):
        raise OSError(code, os.strerror(code))

    return call


@pytest.mark.parametrize("call", ["open", "posix_fallocate", "fsync", "replace", "fdopen"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EDQUOT])
def test_each_system_call_fails_once(tmp_path, monkeypatch, call, code):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    target = Path if call == "replace" else storage.os
    monkeypatch.setattr(target, call, _failing(code))
    with pytest.raises(StorageError) as caught:
        write_atomic(path, NEW)
    monkeypatch.undo()
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    assert path.read_bytes() == OLD and [p.name for p in tmp_path.iterdir()] == ["file"]
    if code in (errno.ENOSPC, errno.EDQUOT):
        assert f"{len(NEW)} bytes" in str(caught.value)


def test_second_fsync_is_of_the_folder_and_its_failure_is_told(tmp_path, monkeypatch):
    calls = []

    def fsync(descriptor):
        calls.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        if len(calls) == 2:
            raise OSError(errno.EIO, "lost")

    monkeypatch.setattr(storage.os, "fsync", fsync)
    with pytest.raises(StorageError):
        write_atomic(tmp_path / "file", NEW)
    assert calls == [False, True]
    assert (tmp_path / "file").read_bytes() == NEW  # renamed already: whole


def test_no_folder_and_a_folder_as_target(tmp_path):
    with pytest.raises(StorageError, match="no such folder"):
        write_atomic(tmp_path / "missing" / "file", NEW)
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError):
        write_atomic(tmp_path / "folder", NEW)


@pytest.mark.parametrize("link", [None, "symlink_to", "hardlink_to"])
def test_no_output_is_written_over_its_source(tmp_path, link):
    source = target = tmp_path / "source"
    source.write_bytes(OLD)
    if link is not None:
        target = tmp_path / "other"
        getattr(target, link)(source)
    with pytest.raises(UsageError, match="over its own source"):
        check_output(target, [tmp_path / "another", source])
    check_output(target, [tmp_path / "another"])
    assert source.read_bytes() == OLD


def test_what_can_not_be_written_is_told_beforehand(tmp_path):
    check_output(tmp_path / "new", [tmp_path])
    for target in (tmp_path, tmp_path / "missing" / "file"):
        with pytest.raises(StorageError):
            check_output(target)
    assert list(tmp_path.iterdir()) == []
    if os.geteuid():
        tmp_path.chmod(0o500)
        with pytest.raises(StorageError, match="no permission"):
            check_output(tmp_path / "new")


@pytest.mark.parametrize("call", ["open", "posix_fallocate"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_what_the_folder_refuses_is_told_beforehand(tmp_path, monkeypatch, call, code):
    monkeypatch.setattr(storage.os, call, _failing(code))
    with pytest.raises(StorageError, match=r"; .*nothing was written") as caught:
        check_output(tmp_path / "new")
    monkeypatch.undo()
    assert str(caught.value).startswith(f"{tmp_path / 'new'}: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize("name", ["x.ekpkg", "self/x.ekpkg"])
def test_a_folder_that_takes_no_files_is_not_called_missing(name):
    for attempt in (check_output, lambda path: write_atomic(path, NEW)):
        with pytest.raises(StorageError) as caught:
            attempt(Path("/proc") / name)
        assert "no such folder" not in str(caught.value) and "choose another" in str(caught.value)


def test_folders_are_made_or_it_is_said_why_not(tmp_path):
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    (tmp_path / "file").write_bytes(OLD)
    for folder in (tmp_path / "file", tmp_path / "file" / "a", Path("/proc/a/b")):
        with pytest.raises(StorageError, match="nothing was written"):
            make_folder(folder)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="no permission"):
        write_atomic(tmp_path / "file", NEW)


def test_file_size_limit_of_the_process(tmp_path):
    """A real limit, not a fake: the kernel refuses to write more than 64 KiB."""
    script = textwrap.dedent("""
        import resource, sys
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
        from edgekit.errors import StorageError, UsageError
        from edgekit.package.storage import atomic_file
        for size in (None, 1 << 20):
            try:
                with atomic_file(sys.argv[1], size_bytes=size) as file:
                    for _ in range(16):
                        file.write(bytes(65536))
            except StorageError as error:
                print(error)
    """)
    path = tmp_path / "file"
    path.write_bytes(OLD)
    command = [sys.executable, "-c", script, str(path)]
    ran = subprocess.run(command, cwd=sys.prefix, capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    assert len(lines) == 2 and all("disk is full or a size limit" in line for line in lines), ran.stdout + ran.stderr
    assert "1048576 bytes" in lines[1]
    assert path.read_bytes() == OLD and [p.name for p in tmp_path.iterdir()] == ["file"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 65536


def test_links_are_replaced_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(OLD)
    link = tmp_path / "link"
    link.symlink_to(victim)
    write_atomic(link, NEW)
    assert victim.read_bytes() == OLD and link.read_bytes() == NEW and not link.is_symlink()
