"""Finds device profiles by id, resolves what they extend, and checks them."""

from __future__ import annotations

import difflib
import os
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from edgekit.errors import ProfileError
from edgekit.target.isa import activation_dtype, native_isa
from edgekit.target.profile import SCHEMA_VERSION, Profile

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

THIS_MACHINE = "this-machine"
MAX_PROFILE_BYTES = 1 << 20
_MAX_PARENTS = 8
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


def load_profile(profile: str | Path) -> Profile:
    """Loads a device profile.

    Args:
        profile: An id: a profile of one's own (user_profiles_folder()) goes before one shipped with edgekit, and
            this-machine is detected now. Or the path of a .toml file.

    Returns:
        The profile with everything it extends filled in.

    Raises:
        ProfileError: Unknown (with the nearest names) or malformed.
    """
    text = str(profile)
    if isinstance(profile, Path) or text.endswith(".toml") or "/" in text:
        return _resolve(_read_file(Path(text)), Path(text), [])
    if text == THIS_MACHINE:
        from edgekit.target.this_machine import detect_profile

        return detect_profile()
    return _resolve(_read_id(text), text, [text])


def list_profiles() -> tuple[str, ...]:
    """Returns the ids of all profiles, this-machine first, then sorted."""
    ids = {path.name.removesuffix(".toml") for path in files("edgekit").joinpath("devices").iterdir()}
    ids |= {path.stem for path in user_profiles_folder().glob("*.toml")}
    return (THIS_MACHINE, *sorted(name for name in ids - {THIS_MACHINE} if _ID.fullmatch(name)))


def user_profiles_folder() -> Path:
    """Returns the folder of one's own profiles: $XDG_CONFIG_HOME/edgekit/devices, by default under ~/.config."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".config") / "edgekit" / "devices"


def parse_profile(text: str, where: object) -> Profile:
    """Parses the TOML of a profile that stands for itself or extends one by id.

    Raises:
        ProfileError: Malformed.
    """
    return _resolve(_parse_toml(text, where), where, [])


def _read_id(profile_id: str) -> dict[str, Any]:
    if not _ID.fullmatch(profile_id):
        raise _unknown(profile_id)
    own = user_profiles_folder() / f"{profile_id}.toml"
    if own.is_file():
        return _read_file(own)
    shipped = files("edgekit").joinpath("devices", f"{profile_id}.toml")
    if not shipped.is_file():
        raise _unknown(profile_id)
    return _parse_toml(shipped.read_text(encoding="utf-8"), profile_id)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() or path.stat().st_size > MAX_PROFILE_BYTES:
            raise ProfileError("is not a profile file", where=path, expected="a .toml file of at most 1 MiB")
        return _parse_toml(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        hint = "check the path and its permissions"
        raise ProfileError(f"can't be read: {error.strerror or error}", where=path, hint=hint) from error
    except ValueError as error:
        raise ProfileError(f"can't be read: {error}", where=path) from error


def _parse_toml(text: str, where: object) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ProfileError("is not valid TOML", where=where, got=str(error)[:160]) from error


def _resolve(table: dict[str, Any], where: object, chain: list[str]) -> Profile:
    parents: list[str] = []
    while (parent := table.pop("extends", None)) is not None:
        if not isinstance(parent, str) or parent in chain or len(parents) >= _MAX_PARENTS:
            raise ProfileError("extends itself, or too many others", where=where, got=ascii(parent)[:80])
        chain = [*chain, parent]
        parents.append(parent)
        table = _merge(_read_parent(parent, where), table)
    _check_schema(table, where)
    try:
        loaded = msgspec.convert({**table, "parents": parents}, Profile)
    except msgspec.ValidationError as error:
        raise ProfileError("does not have the right form", where=where, got=str(error)) from error
    _check_profile(loaded, where)
    return loaded


def _read_parent(parent: str, where: object) -> dict[str, Any]:
    try:
        return _read_id(parent)
    except ProfileError as error:
        raise ProfileError(f"extends {error}", where=where) from error


def _merge(parent: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    merged = dict(parent)
    for key, value in child.items():
        both_tables = isinstance(value, dict) and isinstance(merged.get(key), dict)
        is_figure = isinstance(value, dict) and "value" in value  # a figure is replaced together with its source
        merged[key] = _merge(merged[key], value) if both_tables and not is_figure else value
    return merged


def _check_schema(table: dict[str, Any], where: object) -> None:
    schema = table.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or not 1 <= schema <= SCHEMA_VERSION:
        raise ProfileError(
            "profile is of an unknown schema", where=where, got=ascii(schema)[:40], expected=f"1 to {SCHEMA_VERSION}"
        )


def _check_profile(profile: Profile, where: object) -> None:
    if not _ID.fullmatch(profile.id):
        raise ProfileError("has a malformed id", where=where, got=ascii(profile.id)[:80])
    if any(not 1 <= cluster.count <= 1024 for cluster in profile.cpu.clusters):
        raise ProfileError("has an impossible number of cores", where=where)
    if not all(value > 0.0 and source.strip() for value, source in _figures(msgspec.to_builtins(profile))):
        raise ProfileError("has a figure that is not positive or has no source", where=where)
    activation = activation_dtype(native_isa(profile.cpu.isa))
    if profile.quant.activation != activation:
        got = profile.quant.activation
        raise ProfileError("quant.activation is not that of its CPU", where=where, got=got, expected=activation)


def _figures(value: Any) -> list[tuple[float, str]]:
    if isinstance(value, dict):
        if set(value) == {"value", "source"}:
            return [(value["value"], value["source"])]
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [figure for item in value for figure in _figures(item)]
    return []


def _unknown(profile_id: str) -> ProfileError:
    known = list_profiles()
    near = difflib.get_close_matches(profile_id, known, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}? " if near else ""
    return ProfileError("no such device profile", where=ascii(profile_id)[:80], hint=f"{hint}see: edgekit devices list")
