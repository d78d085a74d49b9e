"""Experiments: artificial data, and in time comparisons, probes and reports."""
