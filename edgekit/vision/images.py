"""Reading still pictures: from paths, bytes, arrays and Pillow images, EXIF orientation always honoured."""

from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Union

import numpy as np
from numpy.typing import NDArray

from edgekit.errors import ImageError, MissingDependencyError
from edgekit.package.storage import write_atomic
from edgekit.vision.frame import MAX_SIDE_PX, Frame

if TYPE_CHECKING:
    from PIL import Image

ImageLike = Union[str, Path, bytes, bytearray, memoryview, NDArray[np.generic], Frame, "Image.Image"]

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".ppm", ".pgm"})
_FORMATS = ("JPEG", "PNG", "BMP", "WEBP", "TIFF", "GIF", "PPM")

# 100 megapixels decode to 300 MB; more is refused before decoding.
MAX_PIXELS = 100_000_000


def list_images(folder: Path) -> list[Path]:
    """Lists the picture files of a folder, sorted by name, without sub-folders.

    Raises:
        ImageError: The folder can't be read.
    """
    try:
        return sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file())
    except OSError as error:
        raise ImageError("folder can't be read", where=folder, hint=error.strerror) from error


def load_image(image: ImageLike) -> Frame:
    """Makes a frame of a picture.

    Args:
        image: A path, encoded bytes, a uint8 array (RGB (height, width, 3) or grey (height, width)), a Pillow image,
            or a Frame, which is returned as it is. Use Frame.from_array(x, color="bgr") for OpenCV's arrays.

    Raises:
        ImageError: It can't be read, is no picture, or has more than MAX_PIXELS pixels.
        MissingDependencyError: Pillow is needed and not installed.
    """
    if isinstance(image, Frame):
        return image
    if isinstance(image, np.ndarray):
        return Frame.from_array(image)
    if isinstance(image, (str, Path)):
        path = Path(image)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ImageError("image can't be read", where=path, hint=error.strerror) from error
        return _decode(data, str(path))
    if isinstance(image, (bytes, bytearray, memoryview)):
        return _decode(bytes(image), "")
    if hasattr(image, "getexif"):
        return _from_pillow(image, getattr(image, "filename", "") or "")
    raise ImageError(
        "not an image", got=type(image).__name__, expected="a path, bytes, uint8 array, Pillow image or Frame"
    )


def _decode(data: bytes, name: str) -> Frame:
    Image = _pillow()  # noqa: N806
    where = name or "image bytes"
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as opened:
            return _from_pillow(opened, name)
    except ImageError:
        raise
    except Image.UnidentifiedImageError as error:
        raise ImageError("not a picture", where=where, expected=", ".join(_FORMATS)) from error
    # Decoders of damaged files raise whatever their format's parser met.
    except Exception as error:
        raise ImageError("picture can't be decoded", where=where, hint=str(error) or type(error).__name__) from error


def _from_pillow(image: Image.Image, name: str) -> Frame:
    from PIL import ImageOps

    width, height = image.size
    if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE_PX:
        raise ImageError(
            "picture is too large",
            where=name or None,
            got=f"{width}x{height}",
            expected=f"at most {MAX_PIXELS} pixels and {MAX_SIDE_PX} a side",
        )
    upright = ImageOps.exif_transpose(image)
    gray = upright.mode in ("1", "L")
    if upright.mode.startswith("I;16") or upright.mode in ("I", "F"):
        raise ImageError("pictures of 16 bits or floats are not supported", where=name or None, got=upright.mode)
    pixels = np.asarray(upright.convert("L" if gray else "RGB"))
    return Frame.from_array(pixels, name=name)


def save_image(path: str | Path, image_rgb: NDArray[np.uint8]) -> None:
    """Writes a picture.

    Args:
        path: Its suffix chooses the format: .png, .jpg, ...
        image_rgb: uint8 (height, width, 3), RGB, or (height, width), grey.

    Raises:
        ImageError: The suffix names no picture format, or the array is no picture.
        StorageError: The file can't be written.
        MissingDependencyError: Pillow is not installed.
    """
    frame = Frame.from_array(image_rgb)
    Image = _pillow()  # noqa: N806
    target = Path(path)
    if target.suffix.lower() not in IMAGE_SUFFIXES:
        raise ImageError("unknown kind of picture", where=target, expected=", ".join(sorted(IMAGE_SUFFIXES)))
    encoded = io.BytesIO()
    kind = Image.registered_extensions()[target.suffix.lower()]
    Image.fromarray(np.ascontiguousarray(frame.planes[0])).save(encoded, format=kind, quality=95)
    write_atomic(target, encoded.getvalue())


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError("pictures need Pillow", hint='pip install "edgekit[camera]"') from error
    return Image
