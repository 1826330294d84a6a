"""edgekit.load(): which variant and engine it takes, what it says when none will do, and what a Model does."""

import errno
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from builders.packages import (
    engine_package,
    openvino_ir,
    reference,
    small_feeds,
    small_manifest,
    small_network,
    small_package,
)

import edgekit
from edgekit.engines.registry import get_engine
from edgekit.errors import (
    DeviceError,
    DeviceLostError,
    FatalEngineError,
    InputError,
    IsaError,
    PackageError,
    RetryableError,
    UsageError,
)
from edgekit.package import reader
from edgekit.package.golden import GoldenSample, golden_members
from edgekit.package.manifest import Part, Variant
from edgekit.package.writer import write_package
from edgekit.runtime.model import sqnr_db
from edgekit.runtime.sessions import SessionPool

FAST = {"latency_ms": 0}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return small_package(tmp_path_factory.mktemp("load") / "m.ekpkg", openvino=True, samples=2)


def test_auto_takes_the_first_variant_that_runs_here(path):
    with edgekit.load(path) as model:
        assert (model.engine_name, model.variant.name, model.skipped) == ("onnxruntime", "onnx", ())
        assert model.threads >= 1


def test_auto_goes_on_to_the_next_variant_and_says_why(tmp_path):
    """A native variant for another instruction set comes first; this machine can't run it."""
    foreign = "arm_neon" if get_engine("native").capabilities().version.find("x86") >= 0 else "x86_avx2"
    member = "variants/foreign/program.ekn"
    inputs, outputs = (
        tuple(spec.name for spec in specs) for specs in (small_manifest().inputs, small_manifest().outputs)
    )
    native = Variant("foreign", "native", foreign, (member,), (Part("native", member, inputs, outputs),))
    onnx = Variant("onnx", "onnxruntime", None, ("variants/onnx/model.onnx",))
    members = {member: b"x", onnx.members[0]: small_network().SerializeToString()}
    write_package(tmp_path / "m.ekpkg", small_manifest((native, onnx)), members)
    with edgekit.load(tmp_path / "m.ekpkg") as model:
        assert model.variant == onnx
        assert len(model.skipped) == 1 and model.skipped[0].startswith("foreign: ")
    with pytest.raises(DeviceError, match="foreign: ") as caught:
        edgekit.load(tmp_path / "m.ekpkg", engine="native")
    assert str(caught.value).isprintable() and "edgekit convert" in str(caught.value)


def test_auto_never_takes_simulated(tmp_path):
    broken = Variant("openvino", "openvino", None, ("variants/openvino/model.xml", "variants/openvino/model.bin"))
    members = dict(zip(broken.members, openvino_ir(small_network()), strict=True))
    write_package(tmp_path / "m.ekpkg", small_manifest((broken,)), members)
    with pytest.raises(DeviceError):
        edgekit.load(tmp_path / "m.ekpkg", device="NPU.7")
    with edgekit.load(tmp_path / "m.ekpkg", engine="simulated", settings=FAST) as model:
        assert model.engine_name == "simulated" and model.run(small_feeds()).simulated


def test_engine_and_variant_by_name(path):
    with edgekit.load(path, engine="openvino") as model:
        assert model.variant.name == "openvino"
    with edgekit.load(path, variant="openvino") as model:
        assert model.engine_name == "openvino"
    with pytest.raises(UsageError, match="no such variant"):
        edgekit.load(path, variant="tensorrt")
    with pytest.raises(UsageError, match="did you mean onnxruntime"):
        edgekit.load(path, engine="onnxruntme")
    with pytest.raises(DeviceError, match="the package holds onnx"):
        edgekit.load(path, engine="native")


@pytest.mark.parametrize("threads", [-1, 257, 1.5, "2", True])
def test_number_of_threads_is_checked(path, threads):
    with pytest.raises(UsageError, match="number of threads"):
        edgekit.load(path, threads=threads)


def test_run_equals_the_reference_from_many_threads(path):
    expected = [reference(small_feeds(seed)) for seed in range(8)]
    wrong = []
    with edgekit.load(path) as model:

        def work(seed):
            for _ in range(20):
                outputs = model.run(small_feeds(seed))
                wrong.extend(k for k, v in outputs.items() if not np.allclose(v, expected[seed][k], atol=1e-5))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_self_test_passes_and_notices_a_machine_that_computes_something_else(path, tmp_path):
    with edgekit.load(path) as model:
        tested = model.self_test()
        assert tested.passed and tested.samples == 2 and min(tested.sqnr_db.values()) > 100
    onnx = Variant("onnx", "onnxruntime", None, ("variants/onnx/model.onnx",))
    manifest = small_manifest((onnx,))
    wrong = {name: array * 1.1 for name, array in reference(small_feeds()).items()}
    members = {onnx.members[0]: small_network().SerializeToString()}
    members |= golden_members(manifest, [GoldenSample(small_feeds(), wrong)], {"scores": 40.0})
    write_package(tmp_path / "m.ekpkg", manifest, members)
    with edgekit.load(tmp_path / "m.ekpkg") as model:
        tested = model.self_test()
        assert not tested.passed and tested.sqnr_db["scores"] < 25


def test_self_test_needs_golden_data(tmp_path):
    with edgekit.load(engine_package(tmp_path / "m.ekpkg", "onnxruntime")) as model:
        with pytest.raises(InputError, match="no golden data"):
            model.self_test()
        assert {name: array.shape for name, array in model.example_feeds().items()} == {
            "/image": (1, 3, 8, 8),
            "bias": (1, 4),
        }


def test_sqnr_of_known_values():
    signal = np.array([3.0, 4.0], np.float32)
    assert sqnr_db(signal, signal) == float("inf")
    assert sqnr_db(signal + np.float32([0.5, 0]), signal) == pytest.approx(20.0)
    assert sqnr_db(np.array([np.nan, 4.0]), signal) == float("-inf")
    assert sqnr_db(signal[:1], signal) == float("-inf")
    assert sqnr_db(np.array([1.0]), np.array([0.0])) == float("-inf")


def test_a_lost_device_is_told_and_its_session_thrown_away(path):
    settings = {**FAST, "faults": "2:error,3:lost"}
    with edgekit.load(path, engine="simulated", settings=settings, warm_up=False) as model:
        assert model.run(small_feeds()).simulated
        with pytest.raises(RetryableError):
            model.run(small_feeds())
        for _ in range(2):
            with pytest.raises(DeviceLostError):
                model.run(small_feeds())


@pytest.mark.parametrize(
    "settings",
    [{"latency_ms": -1}, {"latency_ms": "soon"}, {"latency_ms": float("nan")}, {"speed": 3}, {"faults": "1"}],
)
def test_settings_of_the_simulated_engine_are_checked(path, settings):
    with pytest.raises(UsageError) as caught:
        edgekit.load(path, engine="simulated", settings=settings)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("engine", ["native", "onnxruntime", "openvino", "simulated"])
@pytest.mark.parametrize("settings", [{"bogus": 1}, {"latency": 5}, {"Session.x": "1"}])
def test_unknown_settings_are_refused(tmp_path, engine, settings):
    package = engine_package(tmp_path / "m.ekpkg", engine)
    for asked in (engine, "auto") if engine != "simulated" else (engine,):
        with pytest.raises(UsageError, match="setting") as caught:
            edgekit.load(package, engine=asked, settings=settings)
        assert next(iter(settings)) in str(caught.value) and str(caught.value).isprintable()
        assert len(str(caught.value)) < 400


def test_known_settings_are_taken(path):
    for engine, settings in (
        ("onnxruntime", {"session.intra_op.allow_spinning": "0"}),
        ("openvino", {"NUM_STREAMS": 1}),
        ("simulated", FAST),
    ):
        with edgekit.load(path, engine=engine, settings=settings) as model:
            assert set(model.run(small_feeds())) == {"scores", "/features"}


@pytest.mark.parametrize(
    "changes",
    [
        *({name: "maybe"} for name in ("tuning", "warm_up", "settings")),
        *({name: 1} for name in ("tuning", "warm_up", "settings", "device", "variant", "engine")),
        *({name: None} for name in ("tuning", "warm_up", "engine", "threads")),
        *({"settings": settings} for settings in ([("latency_ms", 1)], {1: 1}, {"latency_ms": None}, {"a": [1]})),
    ],
    ids=str,
)
def test_arguments_of_another_type_are_refused(path, changes):
    with pytest.raises(UsageError) as caught:
        edgekit.load(path, **changes)
    said = str(caught.value)
    assert said.isprintable() and ("expected" in said or "takes a path" in said)


def test_an_unreadable_package_is_one_line_with_advice(path, monkeypatch):
    for code, advice in ((errno.EACCES, "chmod"), (errno.ELOOP, "check the path"), (errno.EIO, "check the path")):

        def refuse(*_, code=code):
            raise OSError(code, os.strerror(code), str(path))

        monkeypatch.setattr(reader.os, "open", refuse)
        with pytest.raises(PackageError, match=advice) as caught:
            edgekit.load(path)
        monkeypatch.undo()
        assert str(caught.value).startswith(f"{path}: ") and "Errno" not in str(caught.value)


class _Session:
    def __init__(self):
        self.closed = False

    def close(self):
        self.closed = True


def test_the_pool_lends_at_most_its_limit_within_the_deadline():
    pool = SessionPool(_Session, 2)
    with pool.lease() as first, pool.lease() as second:
        assert first is not second
        with pytest.raises(RetryableError, match="no session became free"), pool.lease(timeout_s=0.01):
            pass
    with pool.lease(timeout_s=0) as again:
        assert again in (first, second)


def test_the_pool_serves_waiting_threads_and_drains_on_close():
    pool = SessionPool(_Session, 1)
    order = []
    held, go = threading.Event(), threading.Event()

    def hold():
        with pool.lease():
            held.set()
            go.wait()
            order.append("held")

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    closer = threading.Thread(target=lambda: (pool.close(), order.append("closed")))
    closer.start()
    go.set()
    thread.join()
    closer.join()
    pool.close()
    assert order == ["held", "closed"]
    with pytest.raises(FatalEngineError, match="closed"), pool.lease():
        pass


def test_a_session_that_failed_for_good_is_not_lent_again():
    pool = SessionPool(_Session, 1)
    with pytest.raises(FatalEngineError), pool.lease() as first:
        raise FatalEngineError("broken")
    with pool.lease(timeout_s=0) as second:
        assert second is not first and first.closed


def test_a_pool_whose_sessions_can_not_be_made_does_not_leak_its_places():
    def fail():
        raise DeviceError("gone")

    pool = SessionPool(fail, 1)
    for _ in range(3):
        with pytest.raises(DeviceError), pool.lease(timeout_s=0):
            pass


def test_use_after_close(path):
    model = edgekit.load(path)
    model.close()
    model.close()
    with pytest.raises(FatalEngineError, match="closed"):
        model.run(small_feeds())


def test_leaving_with_a_run_in_progress_ends_cleanly(path):
    """Models are drained at interpreter exit: a daemon thread inside the engine must not abort the process."""
    script = f"""
import sys, threading
sys.path[:0] = {[p for p in sys.path if p.endswith("tests")]!r}
import edgekit
from builders.packages import small_feeds
model = edgekit.load({str(path)!r}, engine=sys.argv[1])
def forever():
    while True:
        try:
            model.run(small_feeds())
        except Exception:
            return
thread = threading.Thread(target=forever, daemon=True)
thread.start()
"""
    for engine in ("onnxruntime", "openvino"):
        ran = subprocess.run([sys.executable, "-c", script, engine], cwd=sys.prefix, capture_output=True, text=True)
        assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    "use", ["edgekit.load(sys.argv[1], engine='openvino').close()", "emit_openvino(open(sys.argv[2], 'rb').read())"]
)
def test_openvino_is_used_without_its_telemetry(path, tmp_path, use):
    """It forks this process; in the middle of a dlopen() of another thread that ends with a complaint of ld.so."""
    (tmp_path / "model.onnx").write_bytes(small_network().SerializeToString())
    script = f"""
import os, sys
os.register_at_fork(before=lambda: print("forked"))
import edgekit
from edgekit.converters.emitters.openvino_ir import emit_openvino
{use}
print(sys.modules["openvino_telemetry"])
"""
    command = [sys.executable, "-c", script, str(path), str(tmp_path / "model.onnx")]
    ran = subprocess.run(command, cwd=sys.prefix, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "None\n", "")


def test_manifest_is_the_one_in_the_file(path):
    with edgekit.load(path) as model:
        assert model.manifest.source_name == "small.onnx"
        assert model.inputs == model.manifest.inputs and model.outputs == model.manifest.outputs


@pytest.mark.parametrize("engine", ["auto", "native", "onnxruntime", "simulated"])
def test_no_engine_is_a_way_around_a_wrong_instruction_set(path, engine, monkeypatch):
    monkeypatch.setenv("EDGEKIT_ISA", "x86_sse9")
    with pytest.raises(UsageError, match="EDGEKIT_ISA: unknown instruction set"):
        edgekit.load(path, engine=engine)
    foreign = "arm_neon" if get_engine("native").capabilities().version.find("arm") < 0 else "x86_avx2"
    monkeypatch.setenv("EDGEKIT_ISA", foreign)
    with pytest.raises(IsaError, match="EDGEKIT_ISA"):
        edgekit.load(path, engine=engine)
    monkeypatch.setenv("EDGEKIT_ISA", "")  # as if it were not set
    edgekit.load(path).close()


@pytest.mark.parametrize("path, engine", [(3, "auto"), (None, "auto"), ("m.ekpkg", None), ("m.ekpkg", 1)])
def test_wrong_types_are_refused_in_one_line(path, engine):
    with pytest.raises(UsageError, match="takes a path"):
        edgekit.load(path, engine=engine)


def test_converting_anew_is_not_advised_for_what_is_not_installed(path, monkeypatch):
    monkeypatch.setattr(
        type(get_engine("openvino")), "supports", lambda *_: "openvino is not installed; pip install it"
    )
    with pytest.raises(DeviceError, match="pip install it") as caught:
        edgekit.load(path, engine="openvino")
    assert "edgekit convert" not in str(caught.value)
