"""--preprocess, --task, labels, recipe: what is read, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekit.converters.labels import check_label_count, given_labels, metadata_labels
from edgekit.converters.options import ConvertOptions, read_recipe, recipe_toml
from edgekit.converters.preprocessing import resolve_postprocess, resolve_preprocess
from edgekit.errors import UsageError
from edgekit.package.presets import PREPROCESS
from edgekit.package.specs import PostprocessSpec


def test_presets_and_overrides():
    assert resolve_preprocess(None, {}) is None
    assert resolve_preprocess("imagenet", {}) == PREPROCESS["imagenet"]
    spec = resolve_preprocess("yolo", {"mean": "0.5,0.25,0.125", "scale": "1/127.5", "resize": "stretch"})
    assert spec.mean == (0.5, 0.25, 0.125)
    assert spec.scale == pytest.approx(1 / 127.5)
    assert (spec.resize, spec.color) == ("stretch", "rgb")


def test_overrides_alone_and_gray_channels():
    spec = resolve_preprocess(None, {"color": "gray", "mean": "0.5", "std": "0.25"})
    assert (spec.color, spec.mean, spec.std) == ("gray", (0.5,), (0.25,))
    assert resolve_preprocess("unit", {"color": "gray"}).mean == (0.0,)


def test_pad_value_none():
    assert resolve_preprocess("yolo", {"pad_value": "none"}).pad_value is None


def test_toml_with_a_preset(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('preset = "imagenet"\nresize = "stretch"\nmean = [0.1, 0.2, 0.3]\n')
    spec = resolve_preprocess(str(path), {})
    assert (spec.resize, spec.mean, spec.std) == ("stretch", (0.1, 0.2, 0.3), PREPROCESS["imagenet"].std)


@pytest.mark.parametrize(
    "choice, overrides",
    [
        ("imagnet", {}),
        ("none.toml", {}),
        ("unit", {"mean": "a,b,c"}),
        ("unit", {"mean": "1,2"}),
        ("unit", {"std": "0,1,1"}),
        ("unit", {"scale": "1/0"}),
        ("unit", {"color": "cmyk"}),
        ("unit", {"zoom": "2"}),
        ("imagenet", {"color": "gray"}),
    ],
)
def test_bad_preprocessing_is_refused(choice, overrides):
    with pytest.raises(UsageError) as caught:
        resolve_preprocess(choice, overrides)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("choice", [None, "unit", "imagenet"])
@pytest.mark.parametrize(
    "key, text, expected",
    [
        ("resize", "bogus", "'letterbox'"),
        ("color", "purple", "'bgr'"),
        ("interpolation", "", "'area'"),
        ("side_limit_type", "both", "'max'"),
        ("scale", "much", "much"),
        ("side_multiple", "1.5", "1.5"),
        ("mean", "1,2", "1 or 3"),
        ("std", "0,1,1", "must not be 0"),
    ],
)
def test_a_bad_value_names_its_own_option(choice, key, text, expected):
    with pytest.raises(UsageError) as caught:
        resolve_preprocess(choice, {"pad_value": "0", key: text})
    said = str(caught.value)
    assert said.startswith(f"--{key.replace('_', '-')}: ") and expected in said and "--preprocess" not in said


def test_a_bad_file_is_named_whatever_options_are_given(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text("resize = 'bogus'\n")
    with pytest.raises(UsageError, match=r"--preprocess .*own\.toml: .*bogus"):
        resolve_preprocess(str(path), {"color": "gray", "resize": "stretch"})


@pytest.mark.parametrize("text", ["resize = 3", "unknown = 1", "preset = 'x'", "not toml", "\xff"])
def test_bad_toml_is_refused(tmp_path, text):
    path = tmp_path / "bad.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=r"bad\.toml"):
        resolve_preprocess(str(path), {})


def test_task_and_form():
    assert resolve_postprocess("yolo", None, None).form == "yolov8"
    assert resolve_postprocess(None, "detect", "yolov8-heads").form == "yolov8-heads"
    assert resolve_postprocess(None, "classify", None).form == "logits"
    assert resolve_postprocess("ppocr-det", "text-detect", None).score_threshold == 0.3
    with pytest.raises(UsageError, match="--task"):
        resolve_postprocess(None, "dream", None)


@pytest.mark.parametrize(
    "choice, task, form",
    [("yolo", "detect", "foo"), (None, "classify", "yolov8"), (None, None, "logits"), ("imagenet", None, "")],
)
def test_forms_that_the_task_does_not_read_are_refused(choice, task, form):
    with pytest.raises(UsageError, match=r"--form.*expected"):
        resolve_postprocess(choice, task, form)


def test_labels_from_metadata():
    ctc = PostprocessSpec(task="text-recognize", form="ctc")
    assert metadata_labels({"character": "a\nb\nc\n"}, ctc) == ("blank", "a", "b", "c", " ")
    names = "{0: 'person', 1: \"traffic light\", 2: 'it\\'s'}"
    assert metadata_labels({"names": names}, PostprocessSpec()) == ("person", "traffic light", "it's")
    assert metadata_labels({"names": "{0: 'a', 5: 'b'}"}, PostprocessSpec()) == ()


def test_labels_from_a_file(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("cat\ndog\n")
    assert given_labels(path, PostprocessSpec(task="classify")) == ("cat", "dog")
    assert given_labels(("x", "y"), PostprocessSpec()) == ("x", "y") and given_labels(None, PostprocessSpec()) is None
    with pytest.raises(UsageError, match=r"none\.txt"):
        given_labels(tmp_path / "none.txt", PostprocessSpec())
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="UTF-8"):
        given_labels(path, PostprocessSpec())


def test_labels_name_every_class_and_no_more():
    classify, ctc = PostprocessSpec(task="classify"), PostprocessSpec(task="text-recognize")
    check_label_count(("a", "b"), 2, classify)
    check_label_count((), 2, classify)
    check_label_count(("a", "b"), 0, classify)  # the number of classes is not known
    check_label_count(("blank", "a", " "), 2, ctc)  # a model without the space
    for labels, task in ((("a",), classify), (("a", "b", "c"), classify), (("blank",), ctc), ((*"abcd",), ctc)):
        with pytest.raises(UsageError, match=rf"--labels.*got {len(labels)}, expected 2"):
            check_label_count(labels, 2, task)


def test_recipe_gives_the_options_back():
    options = ConvertOptions(
        model=Path('a "quoted"\\name.onnx'),
        output=Path("out.ekpkg"),
        device="raspberry-pi-5",
        precision="int8",
        calibration="images/",
        shapes=("x=1x3x48x320", "x=1x3x48x640"),
        preprocess="ppocr-rec",
        preprocess_overrides={"mean": "0.5,0.5,0.5"},
        labels=Path("labels.txt"),
        max_drop=1.5,
        keep_float=("a", "b\t\x7f"),
        seed=3,
    )
    data = recipe_toml(options, "0" * 64, "0.1.0")
    assert read_recipe(data) == options
    assert read_recipe(data, output=Path("other.ekpkg")).output == Path("other.ekpkg")
    for bad in (b"", b"\xff", b"model = 3", b'unknown = "x"\nmodel="a"\noutput="b"'):
        with pytest.raises(UsageError):
            read_recipe(bad)


@pytest.mark.parametrize(
    "changes",
    [
        {"precision": "int4"},
        {"method": "magic"},
        {"engines": ("tensorrt",)},
        {"engines": ()},
        {"max_drop": -1.0},
        {"max_samples": 0},
        {"precision": "int8"},
        {"output": Path("model.zip")},
    ],
)
def test_bad_options_are_refused(changes):
    values = {"model": Path("m.onnx"), "output": Path("m.ekpkg")} | changes
    with pytest.raises(UsageError):
        ConvertOptions(**values)
