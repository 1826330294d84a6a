"""`edgekit inspect`: what a package or a native program holds, every byte of it verified."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from edgekit.cli.output import human_bytes, print_json, print_table
from edgekit.errors import GateError

if TYPE_CHECKING:
    from edgekit._native import Program
    from edgekit.package.manifest import Manifest
    from edgekit.package.reader import Package
    from edgekit.package.specs import TensorSpec
    from edgekit.runtime.model import SelfTest

Flag = Annotated[bool, Parameter(negative=())]
_PROGRAM_MAGIC = b"EKNPROG1"
_FIRST_OUTPUTS = 400  # characters of a long list


def inspect_command(file: Path, /, *, layers: Flag = False, self_test: Flag = False, json: Flag = False) -> None:
    """Shows what a package or a native program holds.

    Args:
        file: An .ekpkg package, or a program.ekn.
        layers: List the operations of every native program.
        self_test: Run the golden inputs of the package and compare with what the host computed.
        json: Print JSON.
    """
    if _is_program(file):
        from edgekit._native import Program

        _print_program(file.name, _describe_program(Program(str(file), isa="scalar"), layers), json)
        return
    from edgekit.package.reader import open_package

    with open_package(file) as package:
        described = _describe_package(package, layers)
    tested = _run_self_test(file) if self_test else None
    if json:
        print_json({**described, "self_test": tested and _describe_self_test(tested)})
        return
    _print_package(described)
    if tested is not None:
        _print_self_test(tested)


def _is_program(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return file.is_file() and opened.read(len(_PROGRAM_MAGIC)) == _PROGRAM_MAGIC
    except (OSError, ValueError):  # ValueError: a zero byte in the name
        return False  # the package reader says what is wrong


def _describe_package(package: Package, layers: bool) -> dict[str, Any]:
    from edgekit.records import to_builtins

    manifest = package.manifest
    described: dict[str, Any] = to_builtins(manifest)
    described["file_bytes"] = Path(package.path).stat().st_size
    described["programs"] = {}
    for variant in manifest.variants:
        for part in variant.parts:
            if part.kind == "native":
                described["programs"][part.member] = _describe_program(
                    _program(package, part.member, variant.isa), layers
                )
    return described


def _program(package: Package, member: str, isa: str | None) -> Program:
    """Opens a program as it would run here, or with the scalar kernels, which run every one: any can be inspected."""
    from edgekit._native import Program, isa_problem

    path, offset, size = package.file(member)
    runs_here = isa is not None and isa_problem(isa) is None
    return Program(path, offset, size, isa="" if runs_here else "scalar")


def _describe_program(program: Program, layers: bool) -> dict[str, Any]:
    plans = []
    for index in range(program.plan_count):
        ops = program.ops(index)
        plan: dict[str, Any] = {
            "inputs": [_describe_port(port) for port in program.inputs(index)],
            "outputs": [_describe_port(port) for port in program.outputs(index)],
            "ops": len(ops),
            "macs": sum(op[3] for op in ops),
            "arena_bytes": program.arena_bytes(index),
        }
        if layers:
            keys = ("name", "op", "kernel", "macs", "bytes_moved")
            plan["layers"] = [dict(zip(keys, op, strict=True)) for op in ops]
        plans.append(plan)
    return {
        "isa": program.isa,
        "size_bytes": program.size_bytes,
        "constants_bytes": program.constants_bytes,
        "plans": plans,
    }


def _describe_port(port: tuple[str, Any, tuple[int, ...], float, int]) -> dict[str, Any]:
    name, dtype, shape, scale, zero_point = port
    described: dict[str, Any] = {"name": name, "dtype": str(dtype), "shape": list(shape)}
    return {**described, "scale": scale, "zero_point": zero_point} if scale else described


def _print_package(described: dict[str, Any]) -> None:
    from edgekit.package.manifest import Manifest
    from edgekit.records import decode

    manifest: Manifest = decode(described, Manifest)
    print_table("", ("field", "value"), _summary_rows(manifest, described["file_bytes"]))
    ports = [_port_row("input", spec) for spec in manifest.inputs]
    ports += [_port_row("output", spec) for spec in manifest.outputs]
    print_table("", ("", "name", "dtype", "shape", "layout"), ports)
    rows = []
    for variant in manifest.variants:
        size = sum(manifest.members[member].size_bytes for member in variant.members)
        share = f"{variant.int8_macs_share:.1%}"
        rows.append((variant.name, variant.engine, variant.isa or "", variant.precision, share, human_bytes(size)))
    print_table("", ("variant", "engine", "isa", "precision", "MACs in INT8", "size"), rows, right=[4, 5])
    for member, program in described["programs"].items():
        _print_plans(member, program)


def _summary_rows(manifest: Manifest, file_bytes: int) -> list[tuple[str, str]]:
    rows = [
        ("format", f"{manifest.format_major}.{manifest.format_minor}, written by edgekit {manifest.converter_version}"),
        ("size", human_bytes(file_bytes)),
        ("source", f"{manifest.source_name}, SHA-256 {manifest.source_sha256}"),
        ("profile", manifest.profile),
        ("task", f"{manifest.postprocess.task}, {manifest.postprocess.form}"),
    ]
    if manifest.preprocess is not None:
        rows.append(("preprocess", f"{manifest.preprocess.color}, {manifest.preprocess.resize}"))
    if manifest.labels:
        rows.append(("labels", f"{len(manifest.labels)}: {', '.join(manifest.labels)[:_FIRST_OUTPUTS]}"))
    rows += [("bucket", ", ".join(f"{dim}={size}" for dim, size in bucket.items())) for bucket in manifest.buckets]
    rows += [(name, f"{value:.6g}") for name, value in manifest.metrics.items()]
    return rows


def _port_row(kind: str, spec: TensorSpec) -> tuple[str, str, str, str, str]:
    return kind, spec.name, spec.dtype, "x".join(str(dim) for dim in spec.shape) or "scalar", spec.layout


def _print_program(name: str, described: dict[str, Any], json: bool) -> None:
    if json:
        print_json(described)
        return
    for kind in ("inputs", "outputs"):
        rows = [
            (port["name"], port["dtype"], "x".join(map(str, port["shape"]))) for port in described["plans"][0][kind]
        ]
        print_table(kind, ("name", "dtype", "shape"), rows)
    _print_plans(name, described)


def _print_plans(name: str, program: dict[str, Any]) -> None:
    title = f"{name}: {program['isa']}, constants {human_bytes(program['constants_bytes'])}"
    rows = [
        (index, plan["ops"], f"{plan['macs'] / 1e6:.1f}", human_bytes(plan["arena_bytes"]))
        for index, plan in enumerate(program["plans"])
    ]
    print_table(title, ("plan", "ops", "10^6 MACs", "arena"), rows, right=range(4))
    for index, plan in enumerate(program["plans"]):
        if "layers" in plan:
            cells = [tuple(layer.values()) for layer in plan["layers"]]
            print_table(f"plan {index}", ("layer", "op", "kernel", "MACs", "least bytes"), cells, right=[3, 4])


def _run_self_test(file: Path) -> SelfTest:
    import edgekit

    with edgekit.load(file) as model:
        tested = model.self_test()
    if not tested.passed:
        worst = min(tested.sqnr_db, key=lambda name: tested.sqnr_db[name] - tested.min_sqnr_db[name])
        raise GateError(
            "self-test failed: this machine computes something else than the host did",
            where=f"{file}: {worst}",
            got=f"{tested.sqnr_db[worst]:.1f} dB",
            expected=f"at least {tested.min_sqnr_db[worst]:.1f} dB",
        )
    return tested


def _describe_self_test(tested: SelfTest) -> dict[str, Any]:
    finite = {name: value if value != float("inf") else None for name, value in tested.sqnr_db.items()}
    return {"passed": tested.passed, "samples": tested.samples, "sqnr_db": finite, "min_sqnr_db": tested.min_sqnr_db}


def _print_self_test(tested: SelfTest) -> None:
    rows = [(name, f"{value:.1f}", f"{tested.min_sqnr_db[name]:.1f}") for name, value in tested.sqnr_db.items()]
    title = f"self-test passed, {tested.samples} samples"
    print_table(title, ("output", "SQNR dB", "least"), rows, right=[1, 2])
