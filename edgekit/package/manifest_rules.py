"""What must hold in a manifest beyond its types: names, references, shapes, numbers. Used by writer and reader."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from edgekit.errors import PackageError
from edgekit.package.archive import safe_name
from edgekit.package.layout import MANIFEST_MEMBER, is_sha256
from edgekit.package.manifest import Manifest, Variant
from edgekit.package.specs import PreprocessSpec, TensorSpec

MAX_DIM = 1 << 31
MAX_ELEMENTS = 1 << 31
MAX_RANK = 8
DTYPES = ("float32", "uint8", "int8", "int32", "int64", "bool")

_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz")
_DIGITS = frozenset("0123456789")
_LETTERS = _LOWER | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_IN_VARIANT_NAME = _LOWER | _DIGITS | frozenset("_.-")
_IN_SYMBOL = _LETTERS | _DIGITS | frozenset("./:-")


def check_manifest(manifest: Manifest, where: object) -> None:
    """Checks what types alone can't say.

    Args:
        manifest: With members filled in.
        where: Path for messages.

    Raises:
        PackageError: The first rule that is broken, in one line.
    """
    for problem in _problems(manifest):
        raise PackageError(problem, where=f"{where}: {MANIFEST_MEMBER}")


def _problems(manifest: Manifest) -> Iterator[str]:
    yield from _member_problems(manifest)
    yield from _variant_problems(manifest)
    symbols = {symbol for bucket in manifest.buckets for symbol in bucket}
    yield from _bucket_problems(manifest, symbols)
    for kind, specs in (("input", manifest.inputs), ("output", manifest.outputs)):
        if not specs:
            yield f"has no {kind}s"
        if len({spec.name for spec in specs}) != len(specs):
            yield f"has two {kind}s of the same name"
        for spec in specs:
            yield from _tensor_problems(kind, spec, manifest, symbols)
    if manifest.preprocess is not None:
        yield from _preprocess_problems(manifest.preprocess)
    yield from _number_problems(manifest)


def _member_problems(manifest: Manifest) -> Iterator[str]:
    if len({name.casefold() for name in manifest.members}) != len(manifest.members):
        yield "lists members whose names differ in case only"
    for name, record in manifest.members.items():
        if not safe_name(name) or name == MANIFEST_MEMBER:
            yield f"lists a member whose name is not allowed: {ascii(name)[:120]}"
        if record.size_bytes < 0 or not is_sha256(record.sha256):
            yield f"has a malformed size or hash for {name}"


def _variant_problems(manifest: Manifest) -> Iterator[str]:
    names = [variant.name for variant in manifest.variants]
    if len(set(names)) != len(names):
        yield "has two variants of the same name"
    if not names:
        yield "has no variants"
    for variant in manifest.variants:
        yield from _one_variant(variant, manifest)


def _one_variant(variant: Variant, manifest: Manifest) -> Iterator[str]:
    name = variant.name
    if not _made_of(name, _LOWER | _DIGITS, _IN_VARIANT_NAME, 64):
        yield f"has a variant with a malformed name: {ascii(name)[:80]}"
    if not variant.members:
        yield f"variant {name} has no members"
    if (variant.engine == "native") != bool(variant.parts) or (variant.engine == "native") != (variant.isa is not None):
        yield f"variant {name} must have parts and an isa exactly when its engine is native"
    if not 0.0 <= variant.int8_macs_share <= 1.0:
        yield f"variant {name} has an int8_macs_share outside 0..1"
    for member in variant.members:
        if member not in manifest.members:
            yield f"variant {name} needs a member that is not listed: {ascii(member)[:120]}"
        elif not member.startswith(f"variants/{name}/"):
            yield f"variant {name} has a member outside its folder: {member}"
    known = {spec.name for spec in manifest.inputs}
    for part in variant.parts:
        if part.member not in variant.members:
            yield f"variant {name} has a part whose member is not its own: {ascii(part.member)[:120]}"
        missing = [value for value in part.inputs if value not in known]
        if missing:
            yield f"variant {name} reads a value that nothing gives: {ascii(missing[0])[:120]}"
        known |= set(part.outputs)
    if variant.parts and not {spec.name for spec in manifest.outputs} <= known:
        yield f"variant {name} does not give every output"


def _bucket_problems(manifest: Manifest, symbols: set[str]) -> Iterator[str]:
    for bucket in manifest.buckets:
        if set(bucket) != symbols:
            yield "has buckets that do not name the same dims"
        if not all(1 <= size < MAX_DIM for size in bucket.values()):
            yield "has a bucket with a size out of range"
    malformed = [each for each in symbols if not _made_of(each, _LETTERS, _IN_SYMBOL, 128)]
    if malformed:
        yield f"has a dim with a malformed name: {ascii(malformed[0])[:80]}"


def _tensor_problems(kind: str, spec: TensorSpec, manifest: Manifest, symbols: set[str]) -> Iterator[str]:
    label = f"{kind} {ascii(spec.name)[:80]}"
    if not 0 < len(spec.name) <= 512:
        yield f"{label} has an empty or overlong name"
    if spec.dtype not in DTYPES:
        yield f"{label} has an unknown dtype {ascii(spec.dtype)[:40]}"
    if len(spec.shape) > MAX_RANK:
        yield f"{label} has more than {MAX_RANK} dims"
    for dim in spec.shape:
        if isinstance(dim, str) and dim not in symbols:
            yield f"{label} has a dim that no bucket sets: {ascii(dim)[:80]}"
        if isinstance(dim, int) and not 1 <= dim < MAX_DIM:
            yield f"{label} has a dim out of range: {dim}"
    for bucket in manifest.buckets or ({},):
        if math.prod(bucket.get(dim, 1) if isinstance(dim, str) else dim for dim in spec.shape) > MAX_ELEMENTS:
            yield f"{label} has too many elements"
    quantization = spec.quantization
    if quantization is not None and not (
        _positive(quantization.scale) and -(1 << 31) <= quantization.zero_point < 1 << 31
    ):
        yield f"{label} has a scale or zero point out of range"


def _preprocess_problems(spec: PreprocessSpec) -> Iterator[str]:
    channels = 1 if spec.color == "gray" else 3
    if len(spec.mean) not in (1, channels) or len(spec.std) not in (1, channels):
        yield f"preprocess.mean and preprocess.std must have 1 or {channels} values"
    rules: tuple[tuple[str, bool], ...] = (
        ("scale", _positive(spec.scale)),
        ("mean", _all(math.isfinite, spec.mean)),
        ("std", _all(_positive, spec.std)),
        ("pad_value", spec.pad_value is None or 0.0 <= spec.pad_value <= 255.0),
        ("crop_ratio", 0.0 < spec.crop_ratio <= 1.0),
        ("side_multiple", 1 <= spec.side_multiple <= 4096),
        ("side_limit_px", 1 <= spec.side_limit_px <= 1 << 16),
    )
    for name, holds in rules:
        if not holds:
            yield f"preprocess.{name} is out of range"


def _number_problems(manifest: Manifest) -> Iterator[str]:
    post = manifest.postprocess
    rules: tuple[tuple[str, bool], ...] = (
        ("score_threshold", 0.0 <= post.score_threshold <= 1.0),
        ("iou_threshold", 0.0 <= post.iou_threshold <= 1.0),
        ("box_threshold", 0.0 <= post.box_threshold <= 1.0),
        ("unclip_ratio", 0.0 < post.unclip_ratio <= 100.0),
        ("max_detections", 1 <= post.max_detections <= 1 << 20),
        ("top_k", 1 <= post.top_k <= 1 << 20),
        ("strides", all(1 <= stride <= 1 << 16 for stride in post.strides)),
        ("anchors", _all(math.isfinite, post.anchors)),
        ("blank", 0 <= post.blank < 1 << 31),
    )
    for name, holds in rules:
        if not holds:
            yield f"postprocess.{name} is out of range"
    for key, value in manifest.metrics.items():
        if not math.isfinite(value):
            yield f"metric {ascii(key)[:80]} is not finite"


def _made_of(text: str, first: frozenset[str], rest: frozenset[str], longest: int) -> bool:
    """Tells whether a text begins with a character of one set and goes on with those of another."""
    return 0 < len(text) <= longest and text[0] in first and rest.issuperset(text[1:])


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0.0


def _all(rule: Callable[[float], bool], values: Iterable[float]) -> bool:
    return all(rule(value) for value in values)
