"""convert(): from a file to a package, and that no error leaves anything behind."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import edgekit as ek
from edgekit.converters.float_reference import FloatReference
from edgekit.converters.pipeline import ConvertOptions, convert
from edgekit.converters.verify.accuracy import CAP_DB, sqnr_of
from edgekit.converters.verify.report import parse_report
from edgekit.errors import CalibrationError, EdgekitError, GateError, ModelError, ProfileError, StorageError, UsageError
from edgekit.package.golden import read_golden
from edgekit.package.reader import open_package

NET = """<ir_version: 8, opset_import: ["" : 17]>
net (float[1,3,{size},{size}] image) => (float[1,5] logits)
{{ c = Conv <pads = [1,1,1,1], strides = [2,2]> (image, w1, b1) s = Sigmoid (c) a = Mul (c, s)
   d = Conv <pads = [1,1,1,1], group = 8> (a, w2) r = Relu (d) e = Conv (r, w3) f = Add (e, a)
   g = GlobalAveragePool (f) h = Flatten (g) logits = Gemm <transB = 1> (h, w4, b4) }}"""


@pytest.fixture
def net(tmp_path):
    """A small CNN with SiLU, depthwise, residual; its folder holds nothing else."""
    folder = tmp_path / "model"
    folder.mkdir()
    return write_net(folder / "net.onnx", 16)


def write_net(path, size):
    rng = np.random.default_rng(0)
    proto = onnx.parser.parse_model(NET.format(size=size))
    for node in proto.graph.node:
        node.name = node.output[0]
    shapes = {"w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 1, 3, 3), "w3": (8, 8, 1, 1), "w4": (5, 8), "b4": (5,)}
    for name, shape in shapes.items():
        scale = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
        proto.graph.initializer.append(
            onnx.numpy_helper.from_array((rng.normal(size=shape) * scale).astype(np.float32), name)
        )
    onnx.save(proto, path)
    return path


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "samples.npz"
    values = np.random.default_rng(1).uniform(-1, 1, (40, 3, 16, 16)).astype(np.float32)
    values *= np.linspace(0.3, 1, 40, dtype=np.float32).reshape(-1, 1, 1, 1)
    np.savez(path, image=values)
    return path


@pytest.fixture
def options(net, samples, tmp_path):
    (tmp_path / "out").mkdir()

    def make(**changes) -> ConvertOptions:
        values = {
            "model": net,
            "output": tmp_path / "out" / "net.ekpkg",
            "precision": "int8",
            "calibration": str(samples),
            "engines": ("onnx",),
        }
        return ConvertOptions(**(values | changes))

    return make


def test_int8_package_runs_and_reports(options, net, samples):
    stages = []
    result = convert(options(progress=lambda stage, share: stages.append((stage, share))))
    assert result.report.held_out_samples == 8
    assert result.report.calibration_samples == 32
    assert ("package", 1.0) in stages
    feeds = {"image": np.load(samples)["image"][:1]}
    with ek.load(result.output, engine="onnxruntime") as model:
        got = model.run(feeds)["logits"]
        assert model.self_test().passed
    expected = FloatReference(net.read_bytes()).run(feeds)["logits"]
    assert np.abs(got - expected).max() < 0.15 * np.abs(expected).max()
    package = open_package(result.output)
    assert parse_report(package.read("report.json")) == result.report
    assert {"report.html", "recipe.toml"} <= set(result.manifest.members)
    package.close()


@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_native_package_runs_as_verified(options, samples, precision):
    result = convert(options(engines=("native", "onnx"), precision=precision))
    assert [v.engine for v in result.manifest.variants] == ["native", "onnxruntime"]
    assert result.report.coverage.onnxruntime_layers == ()
    assert result.report.coverage.int8_macs_share > 0.99 or precision == "fp32"
    feeds = {"image": np.load(samples)["image"][:1]}
    with ek.load(result.output, engine="native") as model:
        native = model.run(feeds)["logits"]
        assert model.self_test().passed
    with ek.load(result.output, engine="onnxruntime") as model:
        assert sqnr_of(model.run(feeds)["logits"], native) > (20 if precision == "int8" else 90)


@pytest.mark.parametrize(
    ("device", "isa"), [("raspberry-pi-5", "arm_neon_dotprod"), ("snapdragon-8gen2", "arm_neon_i8mm")]
)
def test_a_program_for_an_arm_board_equals_the_hosts(options, device, isa):
    result = convert(options(engines=("native",), device=device))
    assert result.manifest.variants[0].isa == isa
    assert result.report.figures["foreign_program_sqnr_db"] == CAP_DB
    assert result.report.engines[0].measured_on != isa


def test_buckets_share_one_package(options, tmp_path):
    model = tmp_path / "model" / "wide.onnx"
    write_net(model, "N")
    result = convert(
        options(
            model=model,
            shapes=("1x3x16x16", "1x3x32x32"),
            engines=("native", "onnx"),
            calibration=None,
            precision="fp32",
        )
    )
    assert result.manifest.buckets == ({"N": 16}, {"N": 32})
    reference = FloatReference(model.read_bytes())
    with ek.load(result.output, engine="native") as loaded:
        for size in (16, 32):
            feeds = {"image": np.random.default_rng(size).random((1, 3, size, size), np.float32)}
            assert sqnr_of(reference.run(feeds)["logits"], loaded.run(feeds)["logits"]) > 90


def test_a_layer_asked_to_stay_float_does(options):
    """Fault "requested float layer still int8: silently ignored override"."""
    result = convert(options(engines=("native",), keep_float=("c",)))
    rows = {row.name: row for row in result.report.coverage.layers}
    kept = [row for name, row in rows.items() if "c" in name.split("+")]
    assert kept
    assert all(row.actual == "fp32" for row in kept)


def test_float_without_calibration_says_so(options):
    result = convert(options(precision="auto", calibration=None))
    assert result.report.precision == "fp32"
    assert any("--calib" in note for note in result.notes)
    assert result.report.engines[0].parts[0].sqnr_db > 90


@pytest.mark.parametrize("changes, noted", [({}, True), ({"task": "raw"}, True), ({"task": "classify"}, False)])
def test_labels_of_no_use_are_noted(options, changes, noted):
    result = convert(options(labels=tuple("abcde"), **changes))
    notes = [note for note in result.notes if "--labels" in note]
    assert len(notes) == noted
    assert all("no use to task raw" in note and "--task classify" in note for note in notes)
    assert not [note for note in convert(options(**changes)).notes if "--labels" in note]


def test_the_same_seed_gives_the_same_variants(options, tmp_path):
    first = convert(options())
    second = convert(options(output=tmp_path / "out" / "second.ekpkg"))
    members = [{k: v for k, v in r.manifest.members.items() if k.startswith("variants/")} for r in (first, second)]
    assert members[0] == members[1]


def failing(options, error, tmp_path) -> str:
    with pytest.raises(error) as caught:
        convert(options)
    assert not list((tmp_path / "out").iterdir())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missed_gate_writes_nothing(options, tmp_path):
    """The gate is --max-drop of a task that agreement counts; 0 points can't be held with one sample mean moved."""
    line = failing(options(max_drop=0.0), GateError, tmp_path)
    assert "drop" in line
    assert GateError.exit_code == 3


@pytest.mark.parametrize(
    "changes, error",
    [
        ({"device": "raspberry-pi-55"}, ProfileError),
        ({"calibration": "/nowhere"}, CalibrationError),
        ({"shapes": ("1x3x16x17",)}, UsageError),
        ({"preprocess": "imagnet"}, UsageError),
        ({"skip_passes": ("no-such-pass",)}, UsageError),
        ({"keep_float": ("no-such-layer",)}, UsageError),
        ({"task": "dream"}, UsageError),
    ],
)
def test_bad_options_write_nothing(options, tmp_path, changes, error):
    assert failing(options(**changes), error, tmp_path)


def test_bad_models_write_nothing(options, net, tmp_path):
    data = net.read_bytes()
    for content in (b"", b"junk", data[: len(data) // 2]):
        net.write_bytes(content)
        assert net.name in failing(options(), ModelError, tmp_path)
    net.unlink()
    assert net.name in failing(options(), ModelError, tmp_path)


SMALL_MODELS = [
    ("g (float[1] x) => (float[n,m] y) { t = ConstantOfShape (s) y = Add (x, t) }", [100000, 100000], "37.3 GiB"),
    ("g (float[3,4] x) => (int64[2,n] y) { k = Reshape (x, s) y = NonZero (k) }", [3, 4], "depends on the data"),
    ("g (float16[3,4] x) => (float16[3,4] y) { y = Reshape (x, s) }", [3, 4], "float16"),
    ("g (string[3] x) => (string[3] y) { y = Reshape (x, s) }", [3], "string"),
    ("g () => (float[3] y) { y = ConstantOfShape (s) }", [3], "no inputs"),
]


@pytest.mark.parametrize("text, shape, word", SMALL_MODELS)
def test_models_that_can_not_be_served_are_refused(options, net, tmp_path, text, shape, word):
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}')
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array(shape), "s"))
    onnx.save(proto, net)
    assert word in failing(options(precision="fp32", calibration=None), ModelError, tmp_path)


def test_an_endless_loop_is_stopped():
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[1] x) => (float[1] y)
        { y = Loop (trip, c, x) <body = b (int64 i, bool ci, float[1] a) => (bool co, float[1] o)
            { co = Identity(ci) o = Mul (a, a) } > }"""
    proto = onnx.parser.parse_model(text)
    for name, value in (("trip", np.array(1 << 60)), ("c", np.array(True))):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    reference = FloatReference(proto.SerializeToString(), deadline_s=0.5)
    with pytest.raises(ModelError, match="did not finish"):
        reference.run({"x": np.ones(1, np.float32)})


def test_a_model_in_qdq_form_is_converted_as_it_is(options, net, samples, tmp_path):
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[1,3,16,16] image) => (float[1,2,16,16] y)
        { q = QuantizeLinear (image, s, z) d = DequantizeLinear (q, s, z) k = DequantizeLinear (w, ws)
          c = Conv (d, k) p = QuantizeLinear (c, s, z) y = DequantizeLinear (p, s, z) }"""
    proto = onnx.parser.parse_model(text)
    weight = np.random.default_rng(0).integers(-127, 128, (2, 3, 1, 1)).astype(np.int8)
    values = {"s": np.float32(0.02), "z": np.int8(3), "w": weight, "ws": np.float32(0.01)}
    for name, value in values.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    onnx.save(proto, net)
    result = convert(options(engines=("native",), precision="auto"))
    figures = result.report.engines[0].parts[0]
    assert figures.sqnr_db > 40
    assert figures.max_abs < 0.02 * 1.01, "at most one step: ties, since ONNX Runtime sums in float"
    assert any("QuantizeLinear" in note for note in result.notes)


def test_no_folder_to_write_to(options, tmp_path):
    with pytest.raises(StorageError, match="no such folder"):
        convert(options(output=tmp_path / "none" / "net.ekpkg"))


def test_an_older_package_survives_a_failure(options, tmp_path):
    old = tmp_path / "out" / "net.ekpkg"
    old.write_bytes(b"old")
    with pytest.raises(EdgekitError):
        convert(options(device="nothing"))
    assert old.read_bytes() == b"old"
    assert list((tmp_path / "out").iterdir()) == [old]


def test_no_source_is_written_over(options, net, samples, tmp_path):
    """The model, a file or folder of calibration data, labels: whatever is read stays as it was."""
    folder = tmp_path / "calib"
    folder.mkdir()
    labels = tmp_path / "labels.ekpkg"
    labels.write_text("a\nb\nc\nd\ne\n")
    cases = {
        "model": {"model": _renamed(net, tmp_path / "model.ekpkg")},
        "calibration": {"calibration": str(_renamed(samples, tmp_path / "samples.ekpkg"))},
        "folder": {"calibration": str(folder)},
        "labels": {"labels": labels},
    }
    outputs = {"folder": _renamed(samples, folder / "0.ekpkg"), "labels": labels}
    for name, changes in cases.items():
        output = outputs.get(name) or tmp_path / f"{'model' if name == 'model' else 'samples'}.ekpkg"
        before = output.read_bytes()
        with pytest.raises(UsageError, match="over its own source"):
            convert(options(output=output, **changes))
        assert output.read_bytes() == before


def _renamed(source, target):
    target.write_bytes(source.read_bytes())
    return target


def test_options_are_refused_before_the_model_is_read(options, tmp_path):
    """A mistyped option must not cost the minutes of a conversion: the model here does not even exist."""
    missing = tmp_path / "none.onnx"
    for changes in (
        {"task": "dream"},
        {"task": "classify", "form": "foo"},
        {"labels": tmp_path / "none.txt"},
        {"output": tmp_path / "no" / "out.ekpkg"},
    ):
        with pytest.raises(EdgekitError) as caught:
            convert(options(model=missing, **changes))
        assert "none.onnx" not in str(caught.value)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range_are_refused(options, seed):
    with pytest.raises(UsageError, match="--seed"):
        options(seed=seed)


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"task": "detect"}, "--task detect, --form yolov8"),
        ({"task": "text-recognize"}, "--task text-recognize"),
        ({"task": "classify", "labels": ("a", "b")}, "got 2, expected 5"),
    ],
)
def test_a_task_or_labels_that_do_not_fit_are_refused_before_quantization(options, changes, match):
    stages = []
    with pytest.raises(UsageError, match=match):
        convert(options(progress=lambda stage, share: stages.append(stage), **changes))
    assert not {"calibrate", "quantize", "emit", "verify"} & set(stages)


def write_threshold_net(path):
    """Gives 1 where a value of the sample exceeds 0.5, else exact zeros: most samples move nothing."""
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> net (float[1,4] x) => (float[1,4] y) '
        "{ h = Constant <value = float {0.5}> () d = Sub (x, h) y = Relu (d) }"
    )
    onnx.save(proto, path)
    return path


def test_samples_that_move_no_output_prove_nothing(options, tmp_path):
    net = write_threshold_net(tmp_path / "threshold.onnx")
    quiet = tmp_path / "quiet.npz"
    np.savez(quiet, x=np.random.default_rng(0).uniform(0, 0.4, (40, 4)).astype(np.float32))
    for changes in ({}, {"max_drop": 1.0}, {"precision": "fp32"}):
        with pytest.raises(GateError, match="no held-out sample"):
            convert(options(model=net, calibration=str(quiet), **changes))
    assert list((tmp_path / "out").iterdir()) == []


def test_the_self_test_runs_a_sample_that_moves_the_outputs(options, tmp_path):
    net = write_threshold_net(tmp_path / "threshold.onnx")
    values = np.random.default_rng(0).uniform(0, 0.4, (40, 4)).astype(np.float32)
    values[::3] += 0.55
    np.savez(tmp_path / "some.npz", x=values)
    result = convert(options(model=net, calibration=str(tmp_path / "some.npz")))
    package = open_package(result.output)
    (sample,) = read_golden(package).samples
    package.close()
    assert np.ptp(sample.outputs["y"]) > 0.1 and sample.inputs["x"].max() > 0.5
