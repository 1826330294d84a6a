"""Writes scikit-learn's digits as PNG files, one folder for calibration and one for testing.

    python digit_images.py OUT_FOLDER

Gives OUT_FOLDER/calib/ (200 pictures) and OUT_FOLDER/test/ (every fifth digit; the name ends in its label).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

SIZE_PX = 32
CALIBRATION_COUNT = 200


def main() -> None:
    """Writes the pictures."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    data = load_digits()
    counts = {"calib": 0, "test": 0}
    for index, (values, label) in enumerate(zip(data.images, data.target, strict=True)):
        part = "test" if index % 5 == 0 else "calib"
        if part == "calib" and counts[part] >= CALIBRATION_COUNT:
            continue
        folder = out / part
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.clip(np.rint(values * (255 / 16)), 0, 255).astype(np.uint8)
        image = Image.fromarray(pixels).resize((SIZE_PX, SIZE_PX), Image.Resampling.BILINEAR)
        image.save(folder / f"{index:04}_{label}.png")
        counts[part] += 1
    print(f"{counts['calib']} pictures for calibration, {counts['test']} for testing in {out}")


if __name__ == "__main__":
    main()
