"""Winograd's F(4x4, 3x3) for INT8 convolutions, exact in whole numbers: where it pays, and its weights.

The formulas stand at conv_q8_winograd in program_schema.toml.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COLUMNS = 16  # output channels of a panel
MOST_SUM = 2**25  # sums stay below, so that the division by a power of two finds them whole
_G = np.array([[6, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 6]], np.int32)

_TILE_BYTES, _DIRECT_BYTES = 72, 9  # of a pair of channels' weights
_MARGIN = 1.15  # by which Winograd has to be cheaper


@dataclass(frozen=True)
class _Costs:
    """What it takes beside a direct multiply-accumulate of the same instruction set.

    Attributes:
        product: A multiply-accumulate of transformed values.
        input, output: A tile's transforms of one channel.
        byte: A byte of weights, as if none were in the level-2 cache.
    """

    product: float
    input: float
    output: float
    byte: float


# Counted from the instructions of the kernels. On AVX2 they agree with what bench_q8 measures on Zen 3; on AVX-512 they
# have not been measured. A cycle does 32 direct multiply-accumulates, 128 on AVX-512, and of 16 bits 32 and 64.
_COSTS = {"x86_avx2": _Costs(1, 160, 430, 32 / 3), "x86_avx512_vnni": _Costs(2, 480, 1040, 16)}


def winograd_pays(weight: NDArray[np.int8], out_pixels: tuple[int, int, int], isa: str) -> bool:
    """Whether conv_q8_winograd computes a convolution exactly and faster than conv_q8.

    Args:
        weight: int8 [OC, IC, 3, 3], one group, stride and dilation 1.
        out_pixels: Images, height and width of the result.
        isa: Instruction set that has the kernels.
    """
    if not _sums_fit(weight):
        return False
    costs = _COSTS[isa]
    out_channels, in_channels = weight.shape[:2]
    images, height, width = out_pixels
    tiles = images * -(-height // 4) * -(-width // 4)
    products = out_channels * in_channels
    winograd = products * (36 * tiles * costs.product + _TILE_BYTES * costs.byte)
    winograd += tiles * (costs.input * in_channels + costs.output * out_channels)
    direct = products * (9 * images * height * width + _DIRECT_BYTES * costs.byte)
    return winograd * _MARGIN < direct


def _sums_fit(weight: NDArray[np.int8]) -> bool:
    """Whether no sum of products with bytes leaves [-2^25, 2^25)."""
    rows = weight.reshape(len(weight), -1).astype(np.int64)
    greatest = np.maximum(rows, 0).sum(1).max(), -np.minimum(rows, 0).sum(1).min()
    return 255 * int(max(greatest)) < MOST_SUM


def pack_winograd(weight: NDArray[np.int8]) -> NDArray[np.int32]:
    """Transforms and packs weights.

    Args:
        weight: int8 [OC, IC, 3, 3].

    Returns:
        int32 [ceil(OC / 16), 36, ceil(IC / 2), 16], two 16-bit values each.
    """
    out_channels, in_channels = weight.shape[:2]
    square = _G @ weight.astype(np.int32) @ _G.T
    padded = np.pad(square, ((0, -out_channels % COLUMNS), (0, in_channels % 2), (0, 0), (0, 0)))
    pairs = padded.reshape(-1, COLUMNS, padded.shape[1] // 2, 2, 36).transpose(0, 4, 2, 1, 3)
    return np.ascontiguousarray(pairs.astype("<i2")).view("<i4")[..., 0]
