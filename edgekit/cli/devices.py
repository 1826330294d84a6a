"""`edgekit devices`: device profiles, and what there is to know about this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from edgekit.cli.output import print_json, print_table
from edgekit.errors import StorageError

if TYPE_CHECKING:
    from edgekit.target.profile import Figure, Profile

Flag = Annotated[bool, Parameter(negative=())]
_NO_SAVE = "measure with --no-save, or set XDG_CONFIG_HOME"


def list_command(*, json: Flag = False) -> None:
    """Lists device profiles: those shipped with edgekit and one's own.

    Args:
        json: Print JSON.
    """
    from edgekit.target import list_profiles, load_profile

    profiles = [load_profile(profile_id) for profile_id in list_profiles()]
    if json:
        print_json([{"id": each.id, "name": each.name, "isa": each.isa, "engines": each.engines} for each in profiles])
        return
    rows = [(each.id, each.name, each.isa, _cores(each), ", ".join(each.engines)) for each in profiles]
    print_table("", ("id", "device", "native ISA", "cores", "engines"), rows)


def show_command(device: str, /, *, json: Flag = False) -> None:
    """Shows a device profile with everything it extends filled in, and the source of every figure.

    Args:
        device: Id of a profile, or path of a .toml file.
        json: Print JSON.
    """
    from edgekit.target import load_profile

    _show(load_profile(device), json)


def detect_command(*, json: Flag = False) -> None:
    """Shows what can be found out about this machine without measuring.

    Args:
        json: Print JSON.
    """
    from edgekit.target import load_profile

    _show(load_profile("this-machine"), json)


def measure_command(*, threads: int = 0, save: bool = True, json: Flag = False) -> None:
    """Measures this machine's peaks for about a second and keeps them for this-machine.

    Args:
        threads: Threads to measure with; 0: as many as an inference would use.
        save: Keep the figures in the folder of one's own profiles.
        json: Print JSON.
    """
    from edgekit.package.storage import check_output, write_atomic
    from edgekit.target.measure import measure_machine, measurement_toml
    from edgekit.target.this_machine import measured_file

    path: Path | None = None
    if save:
        path = measured_file()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError("no place to keep the figures", where=path, got=error.strerror, hint=_NO_SAVE) from error
        check_output(path)
    peaks = measure_machine(threads)
    if path is not None:
        write_atomic(path, measurement_toml(peaks).encode())
    if json:
        import dataclasses

        print_json({**dataclasses.asdict(peaks), "file": None if path is None else str(path)})
        return
    rows = [
        ("INT8, exact sums", f"{peaks.int8_gmac_s:.1f}", "10^9 multiply-accumulates/s"),
        ("float32", f"{peaks.fp32_gmac_s:.1f}", "10^9 multiply-accumulates/s"),
        ("reading memory", f"{peaks.read_gb_s:.1f}", "10^9 bytes/s"),
    ]
    print_table(f"{peaks.isa}, {peaks.threads} threads", ("peak", "value", "unit"), rows, right=[1])
    if path is not None:
        print(f"kept in {path}")


def _show(profile: Profile, json: bool) -> None:
    import msgspec

    table = msgspec.to_builtins(profile)
    if json:
        print_json({**table, "native_isa": profile.isa, "sha256": profile.sha256})
        return
    rows = [("id", profile.id, ""), ("name", profile.name, ""), ("native ISA", profile.isa, "")]
    rows += [("extends", " -> ".join(profile.parents), "")] if profile.parents else []
    rows += [("cores", _cores(profile), profile.cpu.clusters[0].source)] if profile.cpu.clusters else []
    rows += [("CPU features", " ".join(profile.cpu.isa), profile.cpu.isa_source)]
    rows += [(name, text, figure.source) for name, text, figure in _figures(profile)]
    for accelerator in profile.accelerators:
        rows.append((accelerator.kind, f"{accelerator.name}, {'/'.join(accelerator.dtypes)}", accelerator.source))
    rows += [("engines", ", ".join(profile.engines), ""), ("layout", profile.layout, "")]
    quant = profile.quant
    rows.append(("INT8", f"{quant.activation} activations, {quant.weight} weights per {quant.granularity}", ""))
    rows += [("note", note, "") for note in profile.notes]
    print_table("", ("field", "value", "source"), rows)


def _figures(profile: Profile) -> list[tuple[str, str, Figure]]:
    memory, cpu, measured = profile.memory, profile.cpu, profile.measured
    candidates: list[tuple[str, str, Figure | None]] = [
        ("L2, a core", "KiB", cpu.l2_kib),
        ("L3", "KiB", cpu.l3_kib),
        ("memory", "GiB", memory.capacity_gib),
        ("bandwidth, peak", "GB/s", memory.peak_gb_s),
        ("bandwidth, measured", "GB/s", memory.measured_gb_s),
        ("INT8, measured", "GMAC/s", measured.int8_gmac_s if measured is not None else None),
        ("float32, measured", "GMAC/s", measured.fp32_gmac_s if measured is not None else None),
    ]
    candidates += [(f"clock of {cluster.core}", "GHz", cluster.max_ghz) for cluster in cpu.clusters]
    candidates += [(f"{each.kind}, INT8 peak", "TOPS", each.int8_tops) for each in profile.accelerators]
    return [(name, f"{figure.value:g} {unit}", figure) for name, unit, figure in candidates if figure is not None]


def _cores(profile: Profile) -> str:
    return " + ".join(f"{cluster.count}x {cluster.core}" for cluster in profile.cpu.clusters) or "any"
