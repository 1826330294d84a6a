"""Quantization: observers, ranges, placement, equalisation, bias correction, sensitivity, mixed precision."""

from edgekit.converters.quantization.quantize import QuantizeOptions, quantize

__all__ = ["QuantizeOptions", "quantize"]
