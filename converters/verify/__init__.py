"""Accuracy against the float model, coverage audit, report, gate."""
