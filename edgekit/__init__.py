"""edgekit: run converted models on edge boxes. See README.md for a tour."""

__version__ = "0.1.0"
