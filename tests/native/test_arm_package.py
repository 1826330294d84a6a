"""A package for the Raspberry Pi 5 under qemu-user: bit-equal to the scalar reference on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edgekit.cli.demo.clip import scenes
from edgekit.converters.pipeline import ConvertOptions, convert
from edgekit.package.reader import open_package
from native import building

MODEL = building.ROOT / "samples" / "models" / "shapes_det.onnx"
FRAMES = 2

# Runs in a process of its own: the instruction set is chosen once a process.
SCALAR = """
import sys
import numpy as np
import edgekit
package, inputs, outputs = sys.argv[1:]
with edgekit.load(package, engine="native") as model:
    np.save(outputs, np.stack([model.run({"images": x})["predictions"] for x in np.load(inputs)]))
"""


def frames(seed: int, count: int) -> np.ndarray:
    """Scenes as the detector takes them: float32 (count, 3, 320, 320), RGB in [0, 1]."""
    images = np.stack([scene.image_hwc for scene in scenes(seed, count, (320, 320))])
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2), dtype=np.float32) / np.float32(255)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shapes detector for the Raspberry Pi 5."""
    pytest.importorskip("PIL")
    folder = tmp_path_factory.mktemp("pi5")
    np.savez(folder / "calibration.npz", images=np.concatenate([frames(seed, 2) for seed in range(100, 110)]))
    options = ConvertOptions(
        model=MODEL,
        output=folder / "shapes.ekpkg",
        device="raspberry-pi-5",
        precision="int8",
        calibration=str(folder / "calibration.npz"),
        engines=("native",),
    )
    convert(options)
    return folder / "shapes.ekpkg"


@pytest.mark.parametrize("cpu", ["cortex-a76", "max"])
def test_outputs_equal_the_scalar_reference(cpu: str, package: Path, native_build_arm64: Path, tmp_path: Path) -> None:
    building.build(native_build_arm64, ["ek_run"])
    tool = native_build_arm64 / "native" / "tools" / "ek_run"
    opened = open_package(package)
    (variant,) = opened.manifest.variants
    assert variant.isa == "arm_neon_dotprod"
    assert variant.int8_macs_share > 0.99
    (tmp_path / "program.ekn").write_bytes(opened.read(variant.parts[0].member))
    inputs = frames(7, FRAMES)[:, None]
    np.save(tmp_path / "inputs.npy", inputs)

    command = [sys.executable, "-c", SCALAR, package, tmp_path / "inputs.npy", tmp_path / "scalar.npy"]
    environment = os.environ | {"EDGEKIT_ISA": "scalar"}
    done = subprocess.run(list(map(str, command)), cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = np.load(tmp_path / "scalar.npy")

    for index, x in enumerate(inputs):
        (tmp_path / "x.bin").write_bytes(x.tobytes())
        words = [building.QEMU, "-cpu", cpu, tool, tmp_path / "program.ekn"]
        words += ["--input", f"images={tmp_path / 'x.bin'}", "--output-dir", tmp_path / "out", "--threads", "2"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["kernels"] == "arm_neon_dotprod"
        got = np.fromfile(report["outputs"][0]["file"], np.float32).reshape(expected[index].shape)
        np.testing.assert_array_equal(got.view(np.uint32), expected[index].view(np.uint32))
    assert np.abs(expected[0, 0, 4:]).max() > 0.25, "nothing was found: the comparison would mean little"
