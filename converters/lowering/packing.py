"""Weight packing: the B operand of a product, laid out in panels as program_schema.toml's isa_packing says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def _rows_by_group(weight: NDArray[np.generic], groups: int) -> NDArray[np.generic]:
    """[OC, ICg, KH, KW] -> [groups, OCg, K] with depth K over (ky, kx, ic)."""
    out_channels = weight.shape[0]
    return np.moveaxis(weight, 1, 3).reshape(groups, out_channels // groups, -1)


def pack_conv_q8(weight: NDArray[np.int8], groups: int, nr: int, kg: int) -> NDArray[np.int8]:
    """Packs INT8 convolution weights.

    Args:
        weight: int8 [OC, IC / groups, KH, KW].
        groups: Groups of the convolution.
        nr: Output channels a panel.
        kg: Depth a group.

    Returns:
        int8 [groups, ceil(OCg / nr), ceil(K / kg), nr * kg], zero padded.
    """
    rows = _rows_by_group(weight, groups)
    _, channels, depth = rows.shape
    padded = np.pad(rows, ((0, 0), (0, -channels % nr), (0, -depth % kg)))
    panels = padded.reshape(groups, padded.shape[1] // nr, nr, padded.shape[2] // kg, kg)
    return np.ascontiguousarray(panels.transpose(0, 1, 3, 2, 4)).reshape(groups, panels.shape[1], panels.shape[3], -1)


def pack_conv_f32(weight: NDArray[np.float32], groups: int, nr: int) -> NDArray[np.float32]:
    """Packs float convolution weights [OC, IC / groups, KH, KW] into [groups, ceil(OCg / nr), K, nr], zero padded."""
    rows = _rows_by_group(weight, groups)
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % nr), (0, 0)))
    panels = padded.reshape(groups, padded.shape[1] // nr, nr, padded.shape[2])
    return np.ascontiguousarray(panels.transpose(0, 1, 3, 2))


def pack_depthwise(weight: NDArray[np.generic]) -> NDArray[np.generic]:
    """[C, 1, KH, KW] -> [KH * KW, C], dense."""
    return np.ascontiguousarray(weight.reshape(weight.shape[0], -1).T)
