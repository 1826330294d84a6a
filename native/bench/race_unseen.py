"""Races networks that no kernel was tuned for, by the same rules as the five of peerbench's race.py.

    python native/bench/race_unseen.py PEERBENCH [--nets shufflenetv2,regnetx400,...] [options of race.py]

PEERBENCH: the folder of peerbench. Weights are random, as there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Builder = Any  # peerbench's: it is imported by path


def squeeze_excite(b: Builder, x: str, inner: int) -> str:
    """Scales channels by a gate of two fully connected layers (Hu et al., 2018)."""
    channels, size = b.maps[x]
    pooled = b._op("GlobalAveragePool", [x], (channels, 1))
    gate = b._op("Sigmoid", [b.conv(b.conv(pooled, inner, 1, act="relu"), channels, 1, gain=1.0)])
    return b._op("Mul", [x, gate], (channels, size))


def regnet(b: Builder, stages: list[tuple[int, int]], group_width: int, squeezes: bool) -> str:
    """Builds a RegNet at 224 x 224 (Radosavovic et al., 2020) of stages of (blocks, channels)."""
    x = b.conv(b.image(224), 32, 3, 2, act="relu")
    for blocks, channels in stages:
        for block in range(blocks):
            stride = 2 if block == 0 else 1
            before = b.maps[x][0]
            y = b.conv(x, channels, 1, act="relu")
            y = b.conv(y, channels, 3, stride, groups=channels // group_width, act="relu")
            y = squeeze_excite(b, y, before // 4) if squeezes else y
            y = b.conv(y, channels, 1, gain=0.5)
            x = b.activation(b.add(b.conv(x, channels, 1, stride, gain=1.0) if block == 0 else x, y), "relu")
    return b.classifier(x)


def shuffle(b: Builder, x: str) -> str:
    """Interleaves the two halves of the channels."""
    channels, size = b.maps[x]
    split = b._reshape(x, 2, channels // 2, size, size)
    joined = b._reshape(b._op("Transpose", [split], perm=[0, 2, 1, 3, 4]), channels, size, size)
    b.maps[joined] = (channels, size)
    return joined


def shufflenet_v2(b: Builder) -> str:
    """Builds ShuffleNetV2 1.0x at 224 x 224 (Ma et al., 2018)."""

    def branch(x: str, channels: int, stride: int) -> str:
        y = b.conv(x, channels, 1, act="relu")
        return b.conv(b.conv(y, channels, 3, stride, groups=channels, gain=1.0), channels, 1, act="relu")

    x = b.max_pool(b.conv(b.image(224), 24, 3, 2, act="relu"), 3, 2)
    for blocks, channels in ((4, 116), (8, 232), (4, 464)):
        half = channels // 2
        for block in range(blocks):
            if block == 0:
                before = b.maps[x][0]
                kept = b.conv(b.conv(x, before, 3, 2, groups=before, gain=1.0), half, 1, act="relu")
                x = b.concat([kept, branch(x, half, 2)])
            else:
                kept, changed = b.halves(x)
                x = b.concat([kept, branch(changed, half, 1)])
            x = shuffle(b, x)
    return b.classifier(b.conv(x, 1024, 1, act="relu"))


def unet(b: Builder, transposed: bool) -> str:
    """Builds a U-Net of four levels at 224 x 224 (Ronneberger et al., 2015), 16 channels wide at its top.

    Args:
        b: Peerbench's builder.
        transposed: Go up by transposed convolutions rather than by nearest neighbours and a 3x3 convolution.
    """

    def twice(x: str, channels: int) -> str:
        return b.conv(b.conv(x, channels, 3, act="relu"), channels, 3, act="relu")

    def up(x: str, channels: int) -> str:
        if not transposed:
            return b.conv(b.upsample(x), channels, 3, act="relu")
        before, size = b.maps[x]
        weight, bias = b._weights(before, channels, 2, 2.0 * channels / before)
        inputs = [x, b._constant(weight), b._constant(bias[:channels])]
        b.macs += weight.size * size**2
        return b._op("ConvTranspose", inputs, (channels, 2 * size), kernel_shape=[2, 2], strides=[2, 2])

    kept, x = [], b.image(224)
    for channels in (16, 32, 64):
        kept.append(twice(x, channels))
        x = b.max_pool(kept[-1], 3, 2) if transposed else b.conv(kept[-1], channels, 3, 2, act="relu")
    x = twice(x, 128)
    for channels in (64, 32, 16):
        x = twice(b.concat([kept.pop(), up(x, channels)]), channels)
    return b.conv(x, 4, 1, gain=1.0)


NETS: dict[str, Callable[[Builder], str]] = {
    "shufflenetv2": shufflenet_v2,
    "regnetx400": partial(regnet, stages=[(1, 32), (2, 64), (7, 160), (12, 400)], group_width=16, squeezes=False),
    "regnety400": partial(regnet, stages=[(1, 48), (3, 104), (6, 208), (6, 440)], group_width=8, squeezes=True),
    "unet": partial(unet, transposed=True),
    "unet-nearest": partial(unet, transposed=False),
}


def main() -> int:
    """Makes the models that are missing, then races."""
    if len(sys.argv) < 2 or not (Path(sys.argv[1]) / "race.py").exists():
        print(__doc__, file=sys.stderr)
        return 2
    sys.path.insert(0, sys.argv.pop(1))
    import make_models
    import nets
    import race

    nets.NETS.update(NETS)
    race.NETS = ",".join(NETS)

    def make(command: list[str], **_: object) -> SimpleNamespace:
        sys.argv = command[1:]
        return SimpleNamespace(returncode=make_models.main())

    # Their maker of models, in this process: in one of its own it would know its own nets only.
    race.subprocess = SimpleNamespace(run=make)
    return int(race.main())


if __name__ == "__main__":
    sys.exit(main())
