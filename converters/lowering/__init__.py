"""Lowering: a float or QDQ graph becomes native programs, with ONNX Runtime sub-graphs for what the core can't run.

lower() is the entrance. native_graph.py walks one graph; ops/ holds a file for each group of operators.
"""

from edgekit.converters.lowering.lower import LowerOptions, lower

__all__ = ["LowerOptions", "lower"]
