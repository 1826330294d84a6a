"""Scenarios, statistics, roofline, diagnosis and reports of benchmarks."""
