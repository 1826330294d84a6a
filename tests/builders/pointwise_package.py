"""A package with one INT8 convolution for the native engine: a layer that can run in several ways on every machine."""

from pathlib import Path

from engine_native.programs import Pointwise, pointwise

from builders.packages import small_manifest
from edgekit.package.manifest import Part, Variant
from edgekit.package.specs import TensorSpec
from edgekit.package.writer import write_package
from edgekit.records import replace

MEMBER = "variants/native/program.ekn"


def pointwise_package(path: Path, pixels: int = 4096) -> Pointwise:
    """Writes the package; gives the operands and what must come out. Its layer is conv_q8_0, of 48 filters."""
    case = pointwise(pixels)
    variant = Variant("native", "native", "scalar", (MEMBER,), (Part("native", MEMBER, ("x",), ("y",)),))
    manifest = replace(
        small_manifest((variant,)),
        inputs=(TensorSpec("x", "uint8", case.x.shape),),
        outputs=(TensorSpec("y", "uint8", (1, 1, pixels, 48)),),
    )
    write_package(path, manifest, {MEMBER: case.data})
    return case
