"""Device profiles: all that are shipped, how they extend each other, and what is said of wrong ones."""

from pathlib import Path

import msgspec
import pytest
import tomllib

from edgekit import _native
from edgekit.engines.registry import engine_names
from edgekit.errors import ProfileError
from edgekit.target import list_profiles, load_profile, native_isa
from edgekit.target.isa import ISA_NAMES
from edgekit.target.loading import THIS_MACHINE, parse_profile

DEVICES = Path(__file__).parents[2] / "devices"
SHIPPED = sorted(path.stem for path in DEVICES.glob("[a-z]*.toml"))

EXPECTED_ISA = {
    "raspberry-pi-4": "arm_neon",
    "raspberry-pi-5": "arm_neon_dotprod",
    "jetson-orin-nano": "arm_neon_dotprod",
    "intel-n100": "x86_avx_vnni",
    "rk3588": "arm_neon_dotprod",
    "coral-edgetpu": "arm_neon",
    "snapdragon-8gen2": "arm_neon_i8mm",
    "qcm6490": "arm_neon_dotprod",
    "generic-x86-avx512-vnni": "x86_avx512_vnni",
    "generic-x86-avx-vnni": "x86_avx_vnni",
    "generic-x86-avx2": "x86_avx2",
    "generic-arm64": "arm_neon",
    "generic-arm64-dotprod": "arm_neon_dotprod",
    "generic-arm64-i8mm": "arm_neon_i8mm",
}


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def test_the_list_is_complete():
    assert set(SHIPPED) == set(EXPECTED_ISA)
    assert list_profiles() == (THIS_MACHINE, *SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_profiles(name):
    profile = load_profile(name)
    assert profile.id == name and profile.isa == EXPECTED_ISA[name]
    assert profile.quant.activation == ("u8" if profile.cpu.architecture == "x86_64" else "s8")
    assert set(profile.engines) <= set(engine_names()) and profile.engines[0] == "native"
    assert profile.cpu.isa_source and len(profile.sha256) == 64
    assert msgspec.convert(msgspec.to_builtins(profile), type(profile)) == profile


@pytest.mark.parametrize("name", [*SHIPPED, "_template"])
def test_every_number_has_a_source_beside_it(name):
    table = tomllib.loads((DEVICES / f"{name}.toml").read_text())
    bare = [path for path in _numbers(table) if path[-1] not in ("value", "schema", "count", "max_rank")]
    assert [path for path in bare if path[0] not in ("limits", "ops")] == []
    for cluster in table.get("cpu", {}).get("clusters", []):
        assert cluster["source"]


def _numbers(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from _numbers(item, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def test_the_template_is_a_valid_profile():
    profile = parse_profile((DEVICES / "_template.toml").read_text(), "_template.toml")
    assert profile.isa == "arm_neon_dotprod" and profile.core_count == 4


def test_figures_from_the_table_of_the_design():
    five = load_profile("raspberry-pi-5")
    assert (five.core_count, five.cpu.clusters[0].core, five.cpu.l2_kib.value, five.cpu.l3_kib.value) == (
        4,
        "Cortex-A76",
        512,
        2048,
    )
    assert load_profile("raspberry-pi-4").memory.measured_gb_s.value == 5.6
    assert load_profile("jetson-orin-nano").accelerators[0].int8_tops.value == 67
    assert load_profile("rk3588").memory.peak_gb_s is None


def test_extending_replaces_figures_and_keeps_the_rest():
    text = 'extends = "raspberry-pi-5"\nid = "mine"\n[memory]\ncapacity_gib = { value = 8, source = "its box" }'
    mine, five = parse_profile(text, "mine"), load_profile("raspberry-pi-5")
    assert mine.memory.capacity_gib.value == 8 and mine.memory.peak_gb_s == five.memory.peak_gb_s
    assert mine.parents == ("raspberry-pi-5", *five.parents) and mine.cpu == five.cpu
    assert mine.sha256 != five.sha256


def test_a_profile_of_ones_own_goes_first(tmp_path):
    own = tmp_path / "edgekit" / "devices"
    own.mkdir(parents=True)
    (own / "my-box.toml").write_text('extends = "intel-n100"\nid = "my-box"\nname = "The box in the hall"')
    assert "my-box" in list_profiles() and load_profile("my-box").isa == "x86_avx_vnni"
    assert load_profile(own / "my-box.toml") == load_profile("my-box")


@pytest.mark.parametrize("wrong", ["raspberrypi5", "raspberry-pi5", "raspberry_pi_5", "Raspberry-Pi-5"])
def test_unknown_names_bring_the_nearest(wrong):
    with pytest.raises(ProfileError, match=r"did you mean .*raspberry-pi-5"):
        load_profile(wrong)


@pytest.mark.parametrize("features", [(), ("sse4_2",), ("avx2", "fma"), ("avx512_vnni",), ("asimddp",)])
def test_an_isa_needs_all_of_its_features(features):
    assert native_isa(features) == "scalar"


def test_isa_names_are_those_of_the_programs():
    from edgekit.package.program_schema import program_schema

    assert set(ISA_NAMES) == set(program_schema().enums["isa"])


def test_this_machine_agrees_with_the_native_core():
    profile = load_profile(THIS_MACHINE)
    assert profile.isa == _native.best_isa() == native_isa(_native.cpu_features())
    assert profile.core_count >= 1 and profile.memory.capacity_gib.value > 0
