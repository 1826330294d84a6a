"""Detects objects in a video and writes an annotated copy.

python detect.py shapes.ekpkg clip.mp4 annotated.mp4
"""

import sys

import edgekit as ek
from edgekit.vision.drawing import draw
from edgekit.vision.video_writer import VideoWriter


def main() -> None:
    """Streams the video through the detector; no frame is lost."""
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    package, video, out = sys.argv[1:]
    found = frames = 0
    with ek.load(package) as model, model.stream(video, live=False) as stream, VideoWriter(out, fps=25) as writer:
        for result in stream:
            writer.write(draw(result.frame.to_rgb(), result.result))
            found += len(result.scores)
            frames += 1
    print(f"{frames} frames, {found} objects, {out} written")


if __name__ == "__main__":
    main()
