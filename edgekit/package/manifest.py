"""manifest.json of a package, as typed values. design.md ("The package") says what each part is for."""

# No `from __future__ import annotations`: decode() reads the annotations of these classes.
from typing import Literal

from edgekit.package.specs import PostprocessSpec, PreprocessSpec, TensorSpec
from edgekit.records import EMPTY, Record

FORMAT_MAJOR = 1
FORMAT_MINOR = 0

PartKind = Literal["native", "onnxruntime"]


class Part(Record, closed=True):
    """One step of a variant: parts run in order, each reading values that inputs or earlier parts gave.

    Attributes:
        kind: native: a program.ekn. onnxruntime: an .onnx sub-graph that the native core can't run.
        member: Name of the member in the package.
        inputs: Names of the values it reads, in the artefact's order.
        outputs: Names of the values it gives, in the artefact's order.
    """

    kind: PartKind
    member: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Variant(Record, closed=True):
    """One engine's artefact, under variants/<name>/.

    Attributes:
        name: Unique in the package, such as native-x86_avx2, onnx, openvino.
        engine: native, onnxruntime or openvino.
        isa: native: the name in enums.isa of program_schema.toml; otherwise null.
        members: All members that belong to it, main file first.
        parts: native: the steps; empty for other engines.
        precision: fp32, int8 or mixed.
        int8_macs_share: Share of multiply-accumulates that run in INT8, 0..1.
    """

    name: str
    engine: Literal["native", "onnxruntime", "openvino"]
    isa: str | None
    members: tuple[str, ...]
    parts: tuple[Part, ...] = ()
    precision: Literal["fp32", "int8", "mixed"] = "fp32"
    int8_macs_share: float = 0.0


class MemberRecord(Record, closed=True):
    """Size and hash of one member."""

    size_bytes: int
    sha256: str


class Manifest(Record):
    """All of manifest.json. Unknown fields are ignored: a newer minor version may add some.

    Attributes:
        format_major, format_minor: Version of the format.
        converter_version: Version of edgekit that wrote it.
        source_sha256: Hash of the source model's file.
        source_name: File name of the source model, without folders.
        profile: Id of the device profile; profile_sha256: hash of its resolved form.
        inputs, outputs: As run() takes and gives them.
        buckets: One entry a shape bucket, smallest first: symbolic dim -> size. Empty when all shapes are fixed.
            Bucket i is plan i of every native program.
        preprocess: Null when the model takes no picture.
        postprocess: What model(image) does with the outputs.
        labels: Class names, or the characters of a text recognizer (blank included).
        variants: In order of preference.
        metrics: What was measured at conversion, name to number.
        members: Every member but manifest.json itself.
    """

    format_major: int
    format_minor: int
    converter_version: str
    source_sha256: str
    source_name: str
    profile: str
    profile_sha256: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    variants: tuple[Variant, ...]
    members: dict[str, MemberRecord]
    buckets: tuple[dict[str, int], ...] = ()
    preprocess: PreprocessSpec | None = None
    postprocess: PostprocessSpec = PostprocessSpec()
    labels: tuple[str, ...] = ()
    metrics: dict[str, float] = EMPTY
