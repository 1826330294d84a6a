"""Reads text from a camera, video or picture: PP-OCR detection finds the lines, recognition reads them.

python read_text.py det.ekpkg rec.ekpkg SOURCE [MOST_FRAMES]
"""

import sys

import edgekit as ek
from edgekit.vision.sources import open_source
from edgekit.vision.text_crop import crop_lines


def main() -> None:
    """Prints the lines of each frame from top to bottom."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    detector_path, recognizer_path, source = sys.argv[1:4]
    most_frames = int(sys.argv[4]) if len(sys.argv) > 4 else None
    with ek.load(detector_path) as detector, ek.load(recognizer_path) as recognizer, open_source(source) as frames:
        for index, frame in enumerate(frames):
            if index == most_frames:
                break
            boxes = detector(frame)
            for crop in crop_lines(frame.to_rgb(), boxes):
                line = recognizer(crop)
                print(f"frame {frame.frame_id}: {line.text} ({line.confidence:.2f})")


if __name__ == "__main__":
    main()
