"""Slow, obvious twins of the kernels: what the fast code must agree with."""
