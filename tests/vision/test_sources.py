"""Frame sources, video writing and drawing."""

import io
import socket
import threading

import numpy as np
import pytest

from edgekit.errors import ImageError, SourceError, StorageError, UsageError
from edgekit.vision.drawing import class_color, draw
from edgekit.vision.frame import Frame
from edgekit.vision.images import save_image
from edgekit.vision.results import Classification, Detections, Raw, Text, TextBoxes
from edgekit.vision.sources import FrameSource, PictureSource, open_source
from edgekit.vision.test_pattern import TestPattern
from edgekit.vision.video_writer import VideoWriter

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("av")


def picture(value, size=(24, 32)):
    return np.full((*size, 3), value, np.uint8)


def test_one_picture_a_folder_and_a_glob(tmp_path):
    for index in range(3):
        save_image(tmp_path / f"{index}.png", picture(index * 50))
    (tmp_path / "notes.txt").write_text("x")
    for source, count in [(tmp_path, 3), (tmp_path / "1.png", 1), (f"{tmp_path}/[02].*", 2)]:
        with open_source(source) as frames:
            assert not frames.live
            got = list(frames)
        assert [frame.frame_id for frame in got] == list(range(count))
        assert all(frame.timestamp_ns > 0 for frame in got)
    assert int(list(open_source(f"{tmp_path}/[02].*"))[1].planes[0].max()) == 100


def test_a_list_of_everything(tmp_path):
    save_image(tmp_path / "a.png", picture(9))
    buffer = io.BytesIO()
    Image.fromarray(picture(8)).save(buffer, "PNG")
    items = [picture(1), tmp_path / "a.png", buffer.getvalue(), Frame.from_array(picture(3), frame_id=70)]
    frames = list(open_source(items))
    assert [int(f.planes[0][0, 0, 0]) for f in frames] == [1, 9, 8, 3]
    assert [f.frame_id for f in frames] == [0, 1, 2, 70]
    assert next(iter(open_source(picture(4)))).size_hw == (24, 32)


def test_exif_is_honoured_in_lists(tmp_path):
    image = Image.fromarray(np.zeros((40, 100, 3), np.uint8))
    exif = Image.Exif()
    exif[274] = 6
    image.save(tmp_path / "turned.jpg", exif=exif)
    data = (tmp_path / "turned.jpg").read_bytes()
    sizes = {frame.size_hw for frame in open_source([tmp_path / "turned.jpg", data, Image.open(io.BytesIO(data))])}
    assert sizes == {(100, 40)}


def test_every_source_has_the_contract(tmp_path):
    path = tmp_path / "v.mp4"
    with VideoWriter(path) as writer:
        writer.write(picture(0))
    for source in (open_source([]), TestPattern(), open_source(path)):
        assert isinstance(source, FrameSource)
        assert open_source(source) is source
        source.close()
        source.close()


@pytest.mark.parametrize("size", [(48, 64), (49, 65), (240, 321)])
@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi"])
@pytest.mark.parametrize("codec", ["auto", "mpeg4"])
def test_a_video_comes_back_as_written(tmp_path, size, suffix, codec):
    path = tmp_path / f"clip{suffix}"
    values = [20, 90, 160, 230]
    with VideoWriter(path, fps=12.5, codec=codec) as writer:
        for value in values:
            frame = picture(value, size)
            frame[:, : size[1] // 2] = (200, 30, 30)
            writer.write(frame)
    with open_source(path) as frames:
        assert frames.fps == pytest.approx(12.5)
        got = list(frames)
    assert [frame.frame_id for frame in got] == [0, 1, 2, 3]
    for frame, value in zip(got, values, strict=True):
        rgb = frame.to_rgb()
        assert rgb.shape == (size[0] // 2 * 2, size[1] // 2 * 2, 3)
        assert np.abs(rgb[8:-8, -12:-4].mean(axis=(0, 1)) - value).max() < 8
        assert np.abs(rgb[8:-8, 4:12].mean(axis=(0, 1)) - (200, 30, 30)).max() < 12


def test_frames_outlive_the_video(tmp_path):
    path = tmp_path / "clip.mp4"
    with VideoWriter(path) as writer:
        for value in range(0, 250, 10):
            writer.write(picture(value, (64, 64)))
    with open_source(path) as frames:
        kept = list(frames)
    means = [frame.to_rgb().mean() for frame in kept]
    assert np.abs(np.array(means) - np.arange(0, 250, 10)).max() < 6


def test_pattern():
    frames = list(open_source("test:64x48@1000#5"))
    assert [frame.frame_id for frame in frames] == list(range(5))
    assert frames[0].size_hw == (48, 64)
    assert TestPattern.parse("test").fps == 30
    assert not any(open_source(text).live for text in ("test:@50", "test", "test:@0#3"))
    for text in ("test:", "test:640x", "test:0x10", "test:9999999x9999999", "test:1x1@99999", "test:#x"):
        if text == "test:":
            TestPattern.parse(text)
            continue
        with pytest.raises(SourceError):
            open_source(text)


def bad_sources(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.mp4").write_text("this is no video")
    (tmp_path / "zero.mp4").touch()
    return [
        tmp_path / "empty", tmp_path / "text.mp4", tmp_path / "zero.mp4", tmp_path / "nothing.mp4",
        f"{tmp_path}/*.jpg", "/dev/video99", 99, "99", -1, None, True, 1.5, "rtsp://127.0.0.1:1/x",
    ]  # fmt: skip


def test_bad_sources_are_one_line(tmp_path, capfd):
    for source in bad_sources(tmp_path):
        with pytest.raises(SourceError) as caught:
            list(open_source(source, deadline_s=2))
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 2
    assert capfd.readouterr().err == ""  # FFmpeg keeps its own lines to itself


def test_a_truncated_video_gives_its_frames_or_one_error(tmp_path):
    whole = tmp_path / "whole.mkv"
    with VideoWriter(whole) as writer:
        for index in range(50):
            writer.write(np.random.default_rng(index).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    data = whole.read_bytes()
    for share in (0.1, 0.5, 0.9):
        cut = tmp_path / "cut.mkv"
        cut.write_bytes(data[: int(len(data) * share)])
        try:
            with open_source(cut) as frames:
                assert len(list(frames)) <= 50
        except SourceError as error:
            assert "\n" not in str(error)


def test_a_server_that_never_answers_misses_the_deadline():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(4)
    held = []
    threading.Thread(target=lambda: held.append(server.accept()), daemon=True).start()
    with pytest.raises(SourceError, match=r"no answer within 0\.5 s"):
        open_source(f"rtsp://127.0.0.1:{server.getsockname()[1]}/cam", deadline_s=0.5)
    server.close()


def test_video_writer_refuses_what_it_can_not_write(tmp_path):
    with pytest.raises(UsageError):
        VideoWriter(tmp_path / "clip.mp4", fps=0)
    with pytest.raises(UsageError):
        VideoWriter(tmp_path / "clip.xyz")
    with pytest.raises(StorageError):
        VideoWriter(tmp_path / "no" / "folder" / "clip.mp4")
    with VideoWriter(tmp_path / "a.mp4", codec="nonsense") as writer, pytest.raises(UsageError):
        writer.write(picture(0))
    with VideoWriter(tmp_path / "b.mp4") as writer:
        writer.write(picture(0))
        for wrong in (picture(0, (30, 30)), picture(0).astype(np.float32), picture(0)[:, :, 0], picture(0, (1, 1))):
            with pytest.raises(ImageError):
                writer.write(wrong)
    with pytest.raises(UsageError, match="closed"):
        writer.write(picture(0))
    assert [path.name for path in tmp_path.iterdir()] == ["b.mp4"]  # nothing half-written


def test_an_error_keeps_the_older_video_and_ctrl_c_keeps_the_frames_so_far(tmp_path):
    path = tmp_path / "clip.mp4"
    path.write_bytes(b"older")
    with pytest.raises(ImageError, match="one size"), VideoWriter(path) as writer:
        writer.write(picture(0))
        writer.write(picture(0, (30, 30)))
    assert path.read_bytes() == b"older" and [each.name for each in tmp_path.iterdir()] == ["clip.mp4"]
    with pytest.raises(KeyboardInterrupt), VideoWriter(path) as writer:
        writer.write(picture(0))
        raise KeyboardInterrupt
    with open_source(path) as source:
        assert len(list(source)) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["clip.mp4"]


@pytest.mark.parametrize("suffix", [".mp4", ".avi"])
def test_each_packet_goes_to_the_disk_at_once(tmp_path, suffix):
    """So a disk that fills up is noticed at the first packet without room; this codec holds no frames back."""
    sizes = []
    with VideoWriter(tmp_path / f"clip{suffix}", codec="mpeg4") as writer:
        for index in range(6):
            writer.write(picture(index, (64, 64)))
            (partial,) = tmp_path.iterdir()
            sizes.append(partial.stat().st_size)
    assert sizes == sorted(set(sizes))


def test_save_image(tmp_path):
    for suffix in (".png", ".jpg", ".bmp"):
        save_image(tmp_path / f"a{suffix}", picture(77))
        with Image.open(tmp_path / f"a{suffix}") as opened:
            assert np.abs(np.asarray(opened).astype(int) - 77).max() <= 1
    save_image(tmp_path / "gray.png", np.zeros((5, 6), np.uint8))
    with pytest.raises(ImageError, match="unknown kind"):
        save_image(tmp_path / "a.doc", picture(1))
    with pytest.raises(StorageError):
        save_image(tmp_path / "no" / "a.png", picture(1))


def test_drawing_marks_boxes_and_leaves_the_picture_alone():
    image = picture(0, (200, 300))
    found = Detections(
        np.float32([[50, 60, 150, 160], [-20, -20, 400, 400], [10, 10, 5, 5]]),
        np.float32([0.9, 0.5, 0.4]),
        np.int32([0, 1, 2]),
        ("cat",),
    )
    drawn = draw(image, found)
    assert drawn.shape == image.shape
    assert image.max() == 0
    assert tuple(drawn[110, 50]) == class_color(0)
    assert drawn[110, 100].max() == 0


@pytest.mark.parametrize(
    "result",
    [
        TextBoxes(np.float32([[[10, 10], [90, 20], [88, 40], [8, 30]]]), np.float32([0.9])),
        Classification(np.int32([1]), np.float32([0.8]), ("a", "b")),
        Text("Grüße 你好", 0.7),
        Detections(np.zeros((1, 4), np.float32), np.ones(1, np.float32), np.int32([5])),
    ],
)
def test_drawing_of_other_results(result):
    assert draw(picture(0, (100, 100)), result).max() > 0


def test_raw_outputs_draw_nothing():
    assert draw(picture(3), Raw({})).max() == 3


def test_colours_of_neighbouring_classes_differ():
    colors = np.array([class_color(index) for index in range(80)], dtype=int)
    assert np.abs(np.diff(colors, axis=0)).sum(axis=1).min() > 100
    assert PictureSource([]).fps == 0
