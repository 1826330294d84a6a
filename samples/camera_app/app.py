"""A complete camera app: watches a camera and tells when an object appears or leaves.

python app.py MODEL.ekpkg SOURCE    SOURCE: 0 (first camera), rtsp://..., a video file, or test:640x480@30#90
"""

import signal
import sys
import threading

import edgekit as ek

LEAST_SCORE = 0.5


def main() -> None:
    """Runs until the source ends or the app is told to stop."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    package, source = sys.argv[1:3]
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    seen: set[str] = set()
    with ek.load(package) as model, model.stream(int(source) if source.isdigit() else source, live=True) as stream:
        for r in stream:
            now = {r.labels[i] for i, score in enumerate(r.scores) if score >= LEAST_SCORE}
            for name in sorted(now - seen):
                print(f"frame {r.frame_id}: {name} appeared ({r.age_ms:.1f} ms after capture, {r.dropped} dropped)")
            for name in sorted(seen - now):
                print(f"frame {r.frame_id}: {name} left")
            seen = now
            if stop.is_set():
                break


if __name__ == "__main__":
    main()
