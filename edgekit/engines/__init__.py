"""Inference engines: base.py is the contract, registry.py the table, one file an engine."""
