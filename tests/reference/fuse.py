"""Fusion spelled out for one query at a time: normalisation in plain Python, and the optimistic bound by its definition."""

import math
from itertools import pairwise

import numpy as np


def normalised(scores, how, missing):
    """One system's scores of one query, None where a document was not retrieved, made comparable."""
    found = [s for s in scores if s is not None]
    if not found:
        return [0.0] * len(scores)
    low, high, n = min(found), max(found), len(found)
    mean = math.fsum(found) / n
    spread = math.sqrt(math.fsum((s - mean) ** 2 for s in found) / n)

    def rank(s):
        above, equal = sum(x > s for x in found), sum(x == s for x in found)
        return above + (equal + 1) / 2

    one = {
        "none": lambda s: s,
        "min-max": lambda s: 1.0 if low == high else (s - low) / (high - low),
        "z-score": lambda s: 0.0 if low == high else (s - mean) / spread,
        "rank": lambda s: 1 - (rank(s) - 1) / n,
        "reciprocal-rank": lambda s: 1 / (60 + rank(s)),
    }[how]
    absent = min(map(one, found)) if missing == "worst" else 0.0
    return [absent if s is None else one(s) for s in scores]


def optimistic(at_vertices, indptr, usefulness, discounts):
    """An upper bound of sum_r u_r d_r over all score vectors in the hull of ``at_vertices`` (vertices x documents)."""
    bounds = []
    for begin, end in pairwise(indptr):
        s, u = at_vertices[:, begin:end], usefulness[begin:end]
        best_rank = [1 + sum(all(s[:, j] > s[:, i]) for j in range(end - begin)) for i in range(end - begin)]
        levels = sorted({x for x in u if x > 0}, reverse=True)
        total = 0.0
        for level, below in pairwise([*levels, 0.0]):
            rank = 0
            for best in sorted(r for r, x in zip(best_rank, u, strict=True) if x >= level):
                rank = max(best, rank + 1)
                total += (level - below) * (discounts[rank - 1] if rank <= len(discounts) else 0.0)
        bounds.append(total)
    return np.array(bounds)
