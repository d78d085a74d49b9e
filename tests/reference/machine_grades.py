"""Means that are corrected by human grades, term by term."""

import numpy as np


def slow_mean(human, machine, further, share):
    """The corrected mean and its standard error, with ``share`` of the machine's values."""
    n, m = len(human), len(further)
    mean = share * sum(further) / m + sum(h - share * k for h, k in zip(human, machine, strict=True)) / n
    variance = np.var(human - share * machine, ddof=1) / n + share**2 * np.var(further, ddof=1) / m
    return mean, np.sqrt(variance)


def slow_share(human, machine, further):
    """The share of the least variance."""
    variance = np.var(machine, ddof=1)
    return 0.0 if variance == 0 else float(np.clip(np.cov(human, machine)[0, 1] / ((1 + len(human) / len(further)) * variance), 0, 1))
