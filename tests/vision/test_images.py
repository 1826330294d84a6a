"""Still pictures: EXIF orientation by every way in, damaged and oversized files."""

import io

import numpy as np
import pytest

from edgekit.errors import ImageError
from edgekit.vision import images
from edgekit.vision.images import list_images, load_image

Image = pytest.importorskip("PIL.Image")

# What a viewer must show for each EXIF orientation, as numpy operations on the stored pixels (EXIF 2.32, tag 274).
UPRIGHT = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a),
}


def stored_picture():
    array = np.zeros((40, 100, 3), dtype=np.uint8)
    array[:20, :50] = (255, 0, 0)
    array[20:, :50] = (0, 255, 0)
    array[:20, 50:] = (0, 0, 255)
    array[20:, 50:] = (255, 255, 255)
    return array


def jpeg(orientation):
    image = Image.fromarray(stored_picture())
    exif = Image.Exif()
    exif[274] = orientation
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=95, subsampling=0, exif=exif)
    return buffer.getvalue()


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_honoured_for_every_way_in(tmp_path, orientation):
    data = jpeg(orientation)
    path = tmp_path / "photo.jpg"
    path.write_bytes(data)
    expected = UPRIGHT[orientation](stored_picture()).astype(int)
    with Image.open(path) as opened:
        frames = [load_image(way) for way in (path, str(path), data, memoryview(data), opened)]
    for frame in frames:
        assert frame.size_hw == expected.shape[:2]
        assert np.abs(frame.to_rgb().astype(int) - expected).mean() < 2


def test_modes(tmp_path):
    gray = np.arange(64, dtype=np.uint8).reshape(8, 8)
    for mode in ("L", "RGB", "RGBA", "P", "1", "CMYK", "LA"):
        path = tmp_path / f"{mode}.tiff" if mode == "CMYK" else tmp_path / f"{mode}.png"
        Image.fromarray(gray).convert(mode).save(path)
        assert load_image(path).to_rgb().shape == (8, 8, 3)
    assert load_image(tmp_path / "L.png").format == "gray"


@pytest.mark.parametrize("data", [b"", b"not an image", jpeg(1)[:300], b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_damaged_pictures_are_one_line(tmp_path, data):
    path = tmp_path / "bad.jpg"
    path.write_bytes(data)
    for way in (path, data):
        with pytest.raises(ImageError) as caught:
            load_image(way)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"<html></html>", b"\0" * 100])
def test_what_is_no_picture_is_told_the_formats(data):
    with pytest.raises(ImageError, match=r"not a picture \(expected JPEG, PNG"):
        load_image(data)


def test_pictures_of_stereo_cameras(tmp_path):
    """MPO: a JPEG with a second picture behind it; the first one counts."""
    first, second = (Image.new("RGB", (8, 6), color) for color in ((255, 0, 0), (0, 0, 255)))
    first.save(tmp_path / "stereo.jpg", format="MPO", save_all=True, append_images=[second])
    pixels = load_image(tmp_path / "stereo.jpg").to_rgb()
    assert pixels.shape == (6, 8, 3) and pixels[..., 0].min() > 200 and pixels[..., 2].max() < 50


def test_missing_file(tmp_path):
    with pytest.raises(ImageError, match=r"nothing\.jpg"):
        load_image(tmp_path / "nothing.jpg")


def test_oversized_pictures_are_refused_before_decoding(monkeypatch, tmp_path):
    path = tmp_path / "big.png"
    Image.new("L", (200, 200)).save(path)
    monkeypatch.setattr(images, "MAX_PIXELS", 39_999)
    with pytest.raises(ImageError, match="too large"):
        load_image(path)


def test_list_images_is_sorted_and_skips_other_files(tmp_path):
    for name in ("b.PNG", "a.jpg", "notes.txt", "c.webp"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "d.jpg").mkdir()
    assert [path.name for path in list_images(tmp_path)] == ["a.jpg", "b.PNG", "c.webp"]
    with pytest.raises(ImageError, match="folder"):
        list_images(tmp_path / "missing")
