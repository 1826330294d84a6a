"""Arrays from files: what numpy writes is read, what numpy would be tricked by is refused."""

import io
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgekit.errors import EdgekitError, InputError
from edgekit.package.arrays import format_npy, parse_npy, read_npy, read_npz

ARRAYS = [
    np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    np.asfortranarray(np.arange(6, dtype=np.int64).reshape(2, 3)),
    np.array(3.5, np.float64),
    np.zeros((0, 4), np.uint8),
    np.array([True, False]),
    np.arange(5, dtype=">i4"),
    np.arange(3, dtype=np.float16),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_round_trip(array, tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, array)
    back = read_npy(path)
    assert np.array_equal(back, array) and back.shape == array.shape and back.dtype == array.dtype.newbyteorder("=")
    assert np.array_equal(np.load(io.BytesIO(format_npy(array)), allow_pickle=False), array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_of_numpy(save, tmp_path):
    path = tmp_path / "a.npz"
    save(path, image=ARRAYS[0], length=ARRAYS[1])
    arrays = read_npz(path)
    assert sorted(arrays) == ["image", "length"]
    assert np.array_equal(arrays["image"], ARRAYS[0]) and np.array_equal(arrays["length"], ARRAYS[1])


def test_pickles_are_refused(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not accepted"):
        read_npy(path)
    np.savez(tmp_path / "a.npz", a=np.array([None], dtype=object))
    with pytest.raises(InputError, match="not accepted"):
        read_npz(tmp_path / "a.npz")


def _npy(header: str, body: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        b"PK\x03\x04",
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}\n", bytes(64)),
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}\n", bytes(64)),
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n", bytes(7)),
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}\n", bytes(9)),
        _npy("{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}\n", bytes(4)) + b"x",
        _npy("__import__('os').system('true')\n"),
        _npy("{'descr': 'V8', 'fortran_order': False, 'shape': (1,)}\n", bytes(8)),
        _npy("(" * 9000),
        _npy("{'descr': '<f4', 'shape': (1,)}\n", bytes(4)),
    ],
)
def test_hostile_npy(data):
    with pytest.raises(InputError) as caught:
        parse_npy(data, "a.npy")
    assert "\n" not in str(caught.value)


def test_zip_bomb_is_refused_before_it_unpacks(tmp_path):
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(64 << 20))
    data = bytearray(path.read_bytes())
    claimed = struct.pack("<I", 1000)  # a lie about the unpacked size, in both places
    data[22:26] = claimed
    directory = data.rfind(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = claimed
    path.write_bytes(data)
    with pytest.raises(InputError, match="another size than stated"):
        read_npz(path)


def test_missing_and_odd_files(tmp_path):
    for path in (tmp_path / "missing.npz", tmp_path):
        with pytest.raises(InputError):
            read_npz(path)
        with pytest.raises(InputError):
            read_npy(path)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_npz_never_crashes(data, tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.arange(100), b=np.ones((2, 2), np.float32))
    bytes_ = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        bytes_[data.draw(st.integers(0, len(bytes_) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes_[: data.draw(st.integers(0, len(bytes_)))])
    try:
        arrays = read_npz(path)
    except EdgekitError as error:
        assert "\n" not in str(error)
    else:
        assert all(array.dtype.kind in "biuf" for array in arrays.values())
