"""The engine contract, over every engine: what edgekit/engines/base.py promises is what each of them does."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from builders.packages import INPUTS, OUTPUTS, engine_package, reference, small_feeds

import edgekit
from edgekit.engines.artefacts import package_artefact
from edgekit.engines.base import EngineOptions
from edgekit.engines.registry import engine_names, get_engine
from edgekit.errors import DeviceError, EngineError, FatalEngineError, TensorError
from edgekit.package.reader import open_package

SIMULATED_FAST = {"latency_ms": 0}


@pytest.fixture(scope="module", params=engine_names())
def name(request):
    capabilities = get_engine(request.param).capabilities()
    if not capabilities.available:
        pytest.skip(capabilities.reason)
    return request.param


@pytest.fixture(scope="module")
def path(name, tmp_path_factory):
    return engine_package(tmp_path_factory.mktemp(name) / "m.ekpkg", name)


@pytest.fixture
def compiled(name, path):
    with open_package(path) as package:
        settings = SIMULATED_FAST if name == "simulated" else {}
        artefact = package_artefact(package, package.manifest.variants[0])
        model = get_engine(name).compile(artefact, EngineOptions(threads=1, settings=settings))
        yield model
        model.close()


def test_capabilities_name_a_version_and_devices(name):
    found = get_engine(name).capabilities()
    assert found.version and found.devices and found.reason == ""
    assert get_engine(name).name == name and get_engine(name) is get_engine(name)


def test_supports_says_why_not_for_a_variant_of_another_engine(name, path):
    with open_package(path) as package:
        own = package.manifest.variants[0]
    assert get_engine(name).supports(own) is None
    for other in set(engine_names()) - {name, "simulated"}:
        reason = get_engine(other).supports(own)
        if own.engine != other:
            assert reason and "\n" not in reason


def test_outputs_equal_the_reference(name, compiled):
    session = compiled.create_session()
    feeds = small_feeds(3)
    outputs = session.run(feeds)
    assert list(outputs) == [spec.name for spec in OUTPUTS]
    expected = reference(feeds)
    for spec in OUTPUTS:
        array = outputs[spec.name]
        assert array.shape == spec.shape and array.dtype == np.dtype(spec.dtype)
        if name == "simulated":
            assert outputs.simulated
        else:
            np.testing.assert_allclose(array, expected[spec.name], rtol=1e-4, atol=1e-5)


def test_outputs_belong_to_the_caller(compiled):
    session = compiled.create_session()
    first = session.run(small_feeds(1))
    kept = {key: value.copy() for key, value in first.items()}
    second = session.run(small_feeds(2))
    for key, value in first.items():
        assert np.array_equal(value, kept[key]) and not np.shares_memory(value, second[key])
        value[...] = 0  # writable, and the engine does not mind
    again = session.run(small_feeds(1))
    assert all(np.array_equal(again[key], kept[key]) for key in kept)


def test_inputs_are_left_alone_and_any_strides_do(compiled):
    session = compiled.create_session()
    feeds = small_feeds(1)
    plain = session.run(feeds)
    strided = {key: np.asfortranarray(value) for key, value in feeds.items()}
    wide = np.zeros((1, 3, 8, 16), np.float32)
    wide[..., ::2] = feeds["/image"]
    strided["/image"] = wide[..., ::2]
    before = {key: value.copy() for key, value in strided.items()}
    outputs = session.run(strided)
    assert all(np.array_equal(outputs[key], plain[key]) for key in plain)
    assert all(np.array_equal(strided[key], before[key]) for key in before)
    frozen = small_feeds(1)
    for value in frozen.values():
        value.setflags(write=False)
    assert all(np.array_equal(array, plain[key]) for key, array in session.run(frozen).items())


WRONG_FEEDS = {
    "missing": lambda f: {"bias": f["bias"]},
    "nothing": lambda f: {},
    "unknown name": lambda f: {**f, "extra": f["bias"]},
    "wrong dtype": lambda f: {**f, "bias": f["bias"].astype(np.float64)},
    "wrong rank": lambda f: {**f, "bias": f["bias"][0]},
    "wrong shape": lambda f: {**f, "/image": f["/image"][:, :, :4]},
    "batch of two": lambda f: {**f, "bias": np.concatenate([f["bias"]] * 2)},
    "list": lambda f: {**f, "bias": f["bias"].tolist()},
    "none": lambda f: {**f, "bias": None},
    "objects": lambda f: {**f, "bias": f["bias"].astype(object)},
    "not a dict": lambda f: f["bias"],
    "a list of arrays": lambda f: list(f.values()),
    "none at all": lambda f: None,
    "big-endian": lambda f: {**f, "bias": f["bias"].astype(">f4")},
}


@pytest.mark.parametrize("fault", WRONG_FEEDS)
def test_wrong_feeds_are_refused_in_one_line_and_do_no_harm(compiled, fault):
    session = compiled.create_session()
    good = session.run(small_feeds())
    with pytest.raises(TensorError) as caught:
        session.run(WRONG_FEEDS[fault](small_feeds()))
    assert str(caught.value).isprintable()
    assert all(np.array_equal(array, good[key]) for key, array in session.run(small_feeds()).items())


def test_sessions_are_independent(compiled):
    """Two threads, each with its session and inputs of its own, get what they get alone."""
    expected = [compiled.create_session().run(small_feeds(seed)) for seed in (1, 2)]
    wrong: list[object] = []

    def work(seed):
        session = compiled.create_session()
        for _ in range(50):
            outputs = session.run(small_feeds(seed))
            wrong.extend(key for key in outputs if not np.array_equal(outputs[key], expected[seed - 1][key]))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_one_session_from_two_threads_is_refused_or_served(compiled):
    session = compiled.create_session()
    expected = session.run(small_feeds())
    faults: list[BaseException] = []
    served: list[bool] = []

    def work():
        for _ in range(200):
            try:
                outputs = session.run(small_feeds())
            except EngineError as error:
                faults.append(error)
            else:
                served.append(all(np.array_equal(outputs[key], expected[key]) for key in expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(served) + len(faults) == 800 and served and all(served)
    assert all("in use by another thread" in str(error) for error in faults)


def test_threads_do_not_change_the_result(name, path):
    with edgekit.load(path, engine=name, threads=1) as one, edgekit.load(path, engine=name, threads=2) as two:
        first, second = one.run(small_feeds()), two.run(small_feeds())
    for key, array in first.items():
        np.testing.assert_allclose(array, second[key], rtol=1e-5, atol=1e-6)


def test_close_twice_and_use_after_close(compiled):
    session, other = compiled.create_session(), compiled.create_session()
    session.close()
    session.close()
    with pytest.raises(FatalEngineError, match="closed"):
        session.run(small_feeds())
    other.run(small_feeds())
    compiled.close()
    compiled.close()
    for call in (lambda: other.run(small_feeds()), compiled.create_session):
        with pytest.raises(FatalEngineError, match="closed"):
            call()
    other.close()


def test_profile_names_layers(name, compiled):
    layers = compiled.create_session().profile(small_feeds())
    if name == "simulated":
        assert layers == []
        return
    assert layers and all(layer.name and layer.op and layer.time_us >= 0 for layer in layers)


def test_memory_is_a_table_of_bytes(compiled):
    assert all(isinstance(size, int) and size >= 0 for size in compiled.memory_bytes().values())


def test_declared_inputs_and_outputs(compiled):
    assert compiled.inputs == INPUTS and compiled.outputs == OUTPUTS and compiled.isa


def test_unknown_devices_are_refused(name, path):
    if name == "simulated":
        pytest.skip("the simulated engine has one device")
    with pytest.raises(DeviceError) as caught:
        edgekit.load(path, engine=name, device="no-such-device")
    assert str(caught.value).isprintable() and "expected" in str(caught.value)
    assert "edgekit convert" not in str(caught.value)  # which would not bring the device


FORK = """
import os, sys, time
import numpy as np
import edgekit
from edgekit.errors import FatalEngineError

def small_feeds():
    return {"/image": np.zeros((1, 3, 8, 8), np.float32), "bias": np.zeros((1, 4), np.float32)}

model = edgekit.load(sys.argv[1], engine=sys.argv[2], threads=2)
with model.pool.lease() as session:
    session.run(small_feeds())
    child = os.fork()
    if child == 0:
        for call in (model.run, session.run):
            try:
                call(small_feeds())
            except FatalEngineError as error:
                print(error, flush=True)
        sys.exit(7)  # a normal exit: atexit handlers, destructors and all
    for _ in range(1200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            print("exit", os.waitstatus_to_exitcode(status), flush=True)
            break
        time.sleep(0.05)
    else:
        os.kill(child, 9)
        print("hung", flush=True)
model.run(small_feeds())
model.close()
"""


def test_a_forked_child_is_refused_and_exits(name, path):
    """In the child every call fails in one line, and its exit does not hang although the parent had threads."""
    command = [sys.executable, "-c", FORK, str(path), name]
    ran = subprocess.run(command, cwd=sys.prefix, capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    assert lines[-1] == "exit 7" and len(lines) == 3, ran
    assert all("fork" in line or "parent process" in line for line in lines[:2]), lines
