"""One file a group of operators; importing this package registers them all."""

from edgekit.converters.lowering.ops import (
    concat,
    conversion,
    convolution,
    elementwise,
    matmul,
    normalization,
    pad,
    pooling,
    quantize,
    recurrent,
    reduction,
    resize,
    softmax,
    transposed_convolution,
    views,
)

__all__ = [
    "concat",
    "conversion",
    "convolution",
    "elementwise",
    "matmul",
    "normalization",
    "pad",
    "pooling",
    "quantize",
    "recurrent",
    "reduction",
    "resize",
    "softmax",
    "transposed_convolution",
    "views",
]
