"""Second moments of what a weighted layer multiplies its weights with, streamed over the calibration samples.

For weights w of one output channel and patches x of the input, the mean squared error of rounding w to q is
(w - q) H (w - q)^T with H = E[x x^T]; its mean error is (w - q) E[x]. Both are all that rounding.py needs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgekit.converters.quantization.graph_access import attribute_int, attribute_text
from edgekit.converters.quantization.layers import WeightedLayer

MAX_DEPTH = 2304  # moments take depth^2 numbers
_ROWS_PER_COLUMN = 2
_BLOCK_ROWS = 1024  # multiplied at once
_LEAST_ROWS = 2048


class LayerInputs:
    """Moments of one layer's input.

    Args:
        layer: Its input tensor is observed.
        samples: How many samples will come; each gives its share of patches.
        seed: Of the choice of patches.

    Attributes:
        name: Name of the observed tensor.
    """

    def __init__(self, layer: WeightedLayer, samples: int, seed: int) -> None:
        source = layer.node.inputs[0]
        self.name = (source.name if source is not None else None) or ""
        self._layer = layer
        self._groups = layer.groups
        self._depth = layer.depth
        wanted = max(_LEAST_ROWS, _ROWS_PER_COLUMN * layer.depth)
        self._rows_per_sample = -(-wanted // max(1, samples))
        self._rng = np.random.default_rng(seed)
        self._moments = np.zeros((self._groups, self._depth, self._depth), np.float64)
        self._sums = np.zeros((self._groups, self._depth), np.float64)
        self._rows = 0
        self._waiting: list[NDArray[np.float32]] = []

    def update(self, values: NDArray[np.floating]) -> None:
        """Takes patches out of one sample; nothing else of it is kept."""
        self._waiting.append(self._patches(np.asarray(values, np.float32)))
        if sum(patches.shape[1] for patches in self._waiting) >= _BLOCK_ROWS:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        patches = np.concatenate(self._waiting, axis=1)
        self._waiting.clear()
        self._moments += np.matmul(patches.transpose(0, 2, 1), patches)
        self._sums += patches.sum(axis=1, dtype=np.float64)
        self._rows += patches.shape[1]

    @property
    def moments(self) -> NDArray[np.float64]:
        """E[x x^T], float64 [groups, depth, depth]."""
        self._flush()
        return self._moments / max(1, self._rows)

    @property
    def mean(self) -> NDArray[np.float64]:
        """E[x], float64 [groups, depth]."""
        self._flush()
        return self._sums / max(1, self._rows)

    def _patches(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Patches drawn from the sample, float32 [groups, rows, depth], in the order of the stored weights."""
        if self._layer.node.op_type != "Conv":
            rows = values.reshape(-1, values.shape[-1])
            picked = self._rng.permutation(rows.shape[0])[: self._rows_per_sample]
            return rows[picked][None]
        window = _Window(self._layer, values.ndim - 2)
        places = window.places(values.shape[2:], self._rng, values.shape[0], self._rows_per_sample)
        padded = np.pad(values, [(0, 0), (0, 0), *window.pads])
        return window.gather(padded, places, self._groups)


class _Window:
    """Geometry of a convolution."""

    def __init__(self, layer: WeightedLayer, rank: int) -> None:
        def sizes(name: str, default: list[int]) -> list[int]:
            attribute = layer.node.attributes.get(name)
            return default if attribute is None else [int(number) for number in attribute.as_ints()]

        self.kernel = list(layer.weight.shape[2:])
        self.strides = sizes("strides", [1] * rank)
        self.dilations = sizes("dilations", [1] * rank)
        pads = sizes("pads", [0] * (2 * rank))
        self.pads = [(pads[axis], pads[axis + rank]) for axis in range(rank)]

    def places(
        self, dims: tuple[int, ...], rng: np.random.Generator, batch: int, count: int
    ) -> tuple[NDArray[np.intp], ...]:
        """Draws output positions: index of the picture, then one index an axis."""
        outputs = []
        for axis, size in enumerate(dims):
            reach = self.dilations[axis] * (self.kernel[axis] - 1) + 1
            outputs.append(max(1, (size + sum(self.pads[axis]) - reach) // self.strides[axis] + 1))
        total = batch * int(np.prod(outputs))
        drawn = rng.choice(total, min(count, total), replace=False)
        return np.unravel_index(drawn, (batch, *outputs))

    def gather(
        self, padded: NDArray[np.float32], places: tuple[NDArray[np.intp], ...], groups: int
    ) -> NDArray[np.float32]:
        """Cuts the windows out: float32 [groups, rows, channels * kernel]."""
        rank = len(self.kernel)
        index = []
        for axis in range(rank):
            offsets = np.arange(self.kernel[axis]) * self.dilations[axis]
            shape = [1] * (rank + 1)
            shape[axis + 1] = -1
            start = (places[axis + 1] * self.strides[axis]).reshape(-1, *[1] * rank)
            index.append(start + offsets.reshape(shape))
        pictures = places[0].reshape(-1, *[1] * rank)
        windows = np.moveaxis(padded, 1, -1)[(pictures, *index)]  # [rows, *kernel, channels]
        rows, channels = windows.shape[0], windows.shape[-1]
        ordered = np.moveaxis(windows, -1, 1).reshape(rows, groups, channels // groups * int(np.prod(self.kernel)))
        return np.ascontiguousarray(ordered.transpose(1, 0, 2))


def can_observe(layer: WeightedLayer) -> bool:
    """Whether moments of the layer's input can be had: not too deep, padding stated, not transposed."""
    node = layer.node
    if layer.depth > MAX_DEPTH or node.op_type == "ConvTranspose" or layer.weight.size == 0:
        return False
    if node.op_type == "Conv":
        return attribute_text(node, "auto_pad", "NOTSET") == "NOTSET"
    return layer.weight.ndim == 2 and not attribute_int(node, "transA", 0)
