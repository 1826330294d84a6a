"""Weight packing: the B operand of a product, laid out in panels as program_schema.toml's isa_packing says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgekit.converters.lowering.bounded_pairs import bounded_pairs
from edgekit.package.program_schema import Packing


@dataclass(frozen=True)
class PackedConv:
    """INT8 convolution weights as conv_q8 takes them.

    Attributes:
        w: int8 [groups, panels, depth groups, nr * kg], or as a list of rows [n, nr * kg].
        row_start, row_group, row_order: What makes it one, see RowList; None where there is none.
        complement: int64 [OC], what complemented bytes add to the sums and the bias has to take away.
    """

    w: NDArray[np.int8]
    row_start: NDArray[np.int32] | None = None
    row_group: NDArray[np.int32] | None = None
    row_order: NDArray[np.int32] | None = None
    complement: NDArray[np.int64] | None = None

    def row_list(self) -> list[NDArray[np.int32] | None]:
        """The operands that make w a list."""
        return [self.row_start, self.row_group, self.row_order]


def _rows_by_group(weight: NDArray[np.generic], groups: int) -> NDArray[np.generic]:
    """[OC, ICg, KH, KW] -> [groups, OCg, K] with depth K over (ky, kx, ic)."""
    out_channels = weight.shape[0]
    return np.moveaxis(weight, 1, 3).reshape(groups, out_channels // groups, -1)


def pack_conv_q8(weight: NDArray[np.int8], groups: int, packing: Packing) -> PackedConv:
    """Packs INT8 convolution weights.

    Args:
        weight: int8 [OC, IC / groups, KH, KW].
        groups: Groups of the convolution.
        packing: What the instruction set wants.
    """
    nr, kg = packing.nr_q8, packing.kg_q8
    rows = _rows_by_group(weight, groups)
    runs = rows.reshape(groups, rows.shape[1], weight.shape[2], -1)
    padded = np.pad(runs, ((0, 0), (0, -runs.shape[1] % nr), (0, 0), (0, -runs.shape[3] % kg)))
    panels = padded.reshape(groups, padded.shape[1] // nr, nr, -1, kg).transpose(0, 1, 3, 2, 4)
    dense = np.ascontiguousarray(panels).reshape(*panels.shape[:3], nr * kg)
    piece = weight.shape[1] // kg if weight.shape[1] % kg == 0 else dense.shape[2] // weight.shape[2]
    listed = bounded_pairs(dense.reshape(-1, *dense.shape[2:]), piece) if packing.saturating_pairs else None
    if listed is None:
        return PackedConv(dense)
    complement = listed.complement.reshape(groups, -1)[:, : rows.shape[1]].reshape(-1)
    return PackedConv(listed.w, listed.row_start, listed.row_group, listed.row_order, complement)


def pack_conv_f32(weight: NDArray[np.float32], groups: int, nr: int) -> NDArray[np.float32]:
    """Packs float convolution weights into panels of columns.

    Args:
        weight: [OC, IC / groups, KH, KW].
        groups: Of the convolution.
        nr: Columns of a panel, as the instruction set wants them.

    Returns:
        [groups, ceil(OC / groups / nr), KH * KW * IC / groups, nr], zero padded.
    """
    rows = _rows_by_group(weight, groups)
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % nr), (0, 0)))
    panels = padded.reshape(groups, padded.shape[1] // nr, nr, padded.shape[2])
    return np.ascontiguousarray(panels.transpose(0, 1, 3, 2))


def pack_depthwise(weight: NDArray[np.generic]) -> NDArray[np.generic]:
    """[C, 1, KH, KW] -> [KH * KW, C], dense."""
    return np.ascontiguousarray(weight.reshape(weight.shape[0], -1).T)
