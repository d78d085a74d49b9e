"""The hinge over pairs by its formula, one query at a time: every pair is a cell of a matrix, its better document the row."""

import numpy as np


def pair_hinge(squared, y, s):
    """The sum over all pairs, the slope of its negation, the curvature, and how many pairs there are."""
    better = y[:, None] > y[None, :]
    z = np.where(better, 1 - (s[:, None] - s[None, :]), 0.0)
    active = z > 0
    z[~active] = 0
    pull = 2 * z if squared else active.astype(float)
    curvature = 2.0 * (active.sum(1) + active.sum(0)) if squared else np.zeros(len(y))
    return (z**2 if squared else z).sum(), pull.sum(1) - pull.sum(0), curvature, better.sum()
