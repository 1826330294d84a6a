"""What is read from a machine: trees of /proc and /sys as boards have them; measured figures kept and found again."""

import pytest

from edgekit.errors import UsageError
from edgekit.target import load_profile
from edgekit.target.loading import parse_profile
from edgekit.target.machine import read_machine
from edgekit.target.measure import MachinePeaks, measure_machine, measurement_toml, profile_toml
from edgekit.target.this_machine import detect_profile, measured_file

ARM_FEATURES = frozenset({"asimd", "asimddp"})


def _board(root, cores, memory_kib=4_000_000, limit=None):
    """cores: (part, capacity, max_khz) of each CPU."""
    blocks = [
        f"processor\t: {i}\nCPU implementer\t: 0x41\nCPU part\t: {part}\n" for i, (part, _, _) in enumerate(cores)
    ]
    files = {"proc/cpuinfo": "\n".join(blocks), "proc/meminfo": f"MemTotal:       {memory_kib} kB\n"}
    files["proc/device-tree/model"] = "Test Board Rev 1.0\0"
    for i, (_, capacity, max_khz) in enumerate(cores):
        folder = f"sys/devices/system/cpu/cpu{i}"
        files |= {f"{folder}/cpu_capacity": f"{capacity}\n", f"{folder}/cpufreq/cpuinfo_max_freq": f"{max_khz}\n"}
        files |= {f"{folder}/cpufreq/scaling_governor": "ondemand\n"}
        for index, (level, kind, size) in enumerate(((1, "Data", 64), (1, "Instruction", 64), (2, "Unified", 512))):
            cache = f"{folder}/cache/index{index}"
            files |= {f"{cache}/level": f"{level}", f"{cache}/type": kind, f"{cache}/size": f"{size}K"}
    if limit is not None:
        files["sys/fs/cgroup/memory.max"] = limit
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_big_and_little_cores(tmp_path):
    cores = [("0xd05", 400, 1_800_000)] * 4 + [("0xd0b", 1024, 2_400_000)] * 4
    found = read_machine(_board(tmp_path, cores), ARM_FEATURES)
    assert [(group.core, group.cpus, group.max_ghz) for group in found.groups] == [
        ("Cortex-A76", (4, 5, 6, 7), 2.4),
        ("Cortex-A55", (0, 1, 2, 3), 1.8),
    ]
    assert (found.l2_kib, found.l3_kib, found.governor, found.board) == (512, None, "ondemand", "Test Board Rev 1.0")
    assert found.memory_bytes == 4_000_000 * 1024


def test_memory_limit_of_the_cgroup(tmp_path):
    board = _board(tmp_path, [("0xd08", 1024, 1_500_000)] * 4, limit="1073741824\n")
    assert read_machine(board, ARM_FEATURES).memory_bytes == 1 << 30
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert read_machine(board, ARM_FEATURES).memory_bytes == 4_000_000 * 1024


def test_unknown_cores_are_named_by_their_numbers(tmp_path):
    found = read_machine(_board(tmp_path, [("0xfff", 1024, 0)]), ARM_FEATURES)
    assert found.groups[0].core == "implementer 0x41 part 0xfff" and found.groups[0].max_ghz is None


def test_an_empty_tree_gives_unknowns_not_guesses(tmp_path):
    found = read_machine(tmp_path, frozenset())
    assert (found.l2_kib, found.l3_kib, found.memory_bytes, found.governor, found.board) == (None,) * 5


def test_the_profile_of_a_board(tmp_path):
    board = read_machine(_board(tmp_path, [("0xd0b", 1024, 2_400_000)] * 4), ARM_FEATURES)
    profile = detect_profile(board)
    assert profile.isa == "arm_neon_dotprod" and profile.quant.activation == "s8"
    assert profile.cpu.clusters[0].max_ghz.value == 2.4 and profile.measured is None
    assert profile.cpu.l2_kib.source == "detected on this machine"
    assert parse_profile(profile_toml(profile), "written") == profile


def test_measuring_gives_plausible_figures():
    peaks = measure_machine(1)
    assert peaks.threads == 1 and peaks.isa
    assert all(0.01 < value < 1e6 for value in (peaks.int8_gmac_s, peaks.fp32_gmac_s, peaks.read_gb_s))


@pytest.mark.parametrize("threads", [-1, 257])
def test_number_of_threads_is_checked(threads):
    with pytest.raises(UsageError):
        measure_machine(threads)


def test_measured_figures_are_kept_and_found_by_this_machine_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert load_profile("this-machine").measured is None
    peaks = MachinePeaks(2, "x86_avx2", 61.23456, 30.0, 12.5)
    path = measured_file()
    path.parent.mkdir(parents=True)
    path.write_text(measurement_toml(peaks))
    found = load_profile("this-machine")
    assert found.measured.int8_gmac_s.value == 61.23 and found.memory.measured_gb_s.value == 12.5
    assert "devices measure" in found.measured.fp32_gmac_s.source and "2 threads" in found.measured.fp32_gmac_s.source
    assert path.is_relative_to(tmp_path)
    other = read_machine(_board(tmp_path / "board", [("0xd0b", 1024, 2_400_000)] * 4), ARM_FEATURES)
    assert detect_profile(other).measured is None
