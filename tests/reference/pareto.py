"""Slow twins of the Pareto front and of constrained line search: every pair of intervals compared, one by one."""

import itertools

import numpy as np


def middles(*functions, low=-np.inf, high=np.inf):
    """A point in each interval between the breakpoints of all functions, except those too narrow to be more than rounding."""
    points = sorted({float(p) for f in functions for p in f.breakpoints if low < p < high})
    left, right = (
        (points[0] - 1 if points else -1.0) if np.isinf(low) else low,
        (points[-1] + 1 if points else 1.0) if np.isinf(high) else high,
    )
    ends = [left, *points, right]
    return [(a + b) / 2 for a, b in itertools.pairwise(ends) if b - a > 1e-9]


def front_of(pairs):
    """The pairs that no other dominates, up to rounding; sorted, the first falling."""
    kept = []
    for a in pairs:
        better = any(b[0] >= a[0] - 1e-11 and b[1] >= a[1] - 1e-11 and (b[0] > a[0] + 1e-11 or b[1] > a[1] + 1e-11) for b in pairs)
        if not better and not any(abs(a[0] - b[0]) < 1e-10 and abs(a[1] - b[1]) < 1e-10 for b in kept):
            kept.append(a)
    return sorted(kept, key=lambda pair: -pair[0])


def best_under(f, g, level, low=-np.inf, high=np.inf):
    """The largest f in any interval where g is at least ``level``; None where there is none."""
    reached = [f(at) for at in middles(f, g, low=low, high=high) if g(at) >= level - 1e-12]
    return max(reached, default=None)
