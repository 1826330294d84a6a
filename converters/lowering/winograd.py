"""Winograd's F(4x4, 3x3) for INT8 convolutions, exact in whole numbers: where it pays, and how its weights lie.

The formulas stand in native/kernels/winograd/winograd_q8.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COLUMNS = 16  # output channels of a panel
MOST_SUM = 2**25  # sums stay below, so that the division by a power of two finds them whole
_BLOCK_BYTES = 384 * 1024  # as the op has it
_MARGIN = 1.15  # by which Winograd has to be cheaper


@dataclass(frozen=True)
class _Costs:
    """What it takes beside a direct multiply-accumulate of the same instruction set.

    Attributes:
        product: A multiply-accumulate of transformed values.
        expand: The transform of the nine weights of a pair of channels, once for each block of tiles.
        input, output: A tile's transforms of one channel.
    """

    product: float
    expand: float
    input: float
    output: float


# On AVX2 fitted to layers of ResNet-50 in the network, where weights come from memory (`edgekit bench --layers`, both
# ways, on Zen 3). On AVX-512 counted from the instructions of the kernels, and not measured.
_COSTS = {"x86_avx2": _Costs(1.28, 230, 160, 430), "x86_avx512_vnni": _Costs(2.2, 200, 480, 1040)}


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
    blocks = -(-tiles * 36 * (2 * in_channels + 64) // _BLOCK_BYTES)
    winograd = products * (36 * tiles * costs.product + blocks * costs.expand)
    winograd += tiles * (costs.input * in_channels + costs.output * out_channels)
    direct = products * images * (3 * height - 2) * (3 * width - 2)  # taps inside the image: conv_q8 skips the others
    return bool(winograd * _MARGIN < direct)


def _sums_fit(weight: NDArray[np.int8]) -> bool:
    """Whether no sum of products with bytes leaves [-2^25, 2^25)."""
    rows = weight.reshape(len(weight), -1).astype(np.int64)
    greatest = np.maximum(rows, 0).sum(1).max(), -np.minimum(rows, 0).sum(1).min()
    return 255 * int(max(greatest)) < MOST_SUM


def pack_winograd(weight: NDArray[np.int8]) -> NDArray[np.int8]:
    """Packs weights for conv_q8_winograd.

    Args:
        weight: int8 [OC, IC, 3, 3].

    Returns:
        int8 [ceil(OC / 16), ceil(IC / 2), 9, 32].
    """
    out_channels, in_channels = weight.shape[:2]
    padded = np.pad(weight, ((0, -out_channels % COLUMNS), (0, in_channels % 2), (0, 0), (0, 0)))
    pairs = padded.reshape(-1, COLUMNS, padded.shape[1] // 2, 2, 9).transpose(0, 2, 4, 1, 3)
    return np.ascontiguousarray(pairs).reshape(*pairs.shape[:3], 2 * COLUMNS)
