"""Fusion spelled out for one query at a time: normalization in plain Python, and the optimistic bound by its definition."""

import math
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise

import numpy as np


def normalized(scores, how, missing, k=60):
    """One system's scores of one query, None where a document was not retrieved, made comparable."""
    found = [s for s in scores if s is not None]
    if not found:
        return [0.0] * len(scores)
    one = comparable(found, how, k)
    absent = min(one) if missing == "worst" else 0.0
    values = iter(one)
    return [absent if s is None else next(values) for s in scores]


def comparable(found, how, k=60):
    """A list of scores, made comparable."""
    low, high, n = min(found), max(found), len(found)
    mean = math.fsum(found) / n
    squares = math.fsum((s - mean) ** 2 for s in found)

    def rank(s):
        above, equal = sum(x > s for x in found), sum(x == s for x in found)
        return above + (equal + 1) / 2

    if how.startswith(("elasticsearch", "opensearch", "weaviate", "vespa")):
        return engine(found, how, k)
    one = {
        "none": lambda s: s,
        "min-max": lambda s: 1.0 if low == high else (s - low) / (high - low),
        "z-score": lambda s: 0.0 if low == high else (s - mean) / math.sqrt(squares / n),
        "l2": lambda s: s / (math.sqrt(math.fsum(x * x for x in found)) or 1),
        "rank": lambda s: 1 - (rank(s) - 1) / n,
        "reciprocal-rank": lambda s: 1 / (k + rank(s)),
    }[how]
    return list(map(one, found))


def engine(found, how, k):
    """What a search engine makes of a list of scores, in its own precision; places from 1, of equal scores the first comes first."""
    falling = sorted(range(len(found)), key=lambda i: -found[i])
    place = {i: at for at, i in enumerate(falling, 1)}
    if how == "vespa-linear":
        low, high = min(found), max(found)
        return [0.5 if low == high else 0.5 + 1.0 / (high - low) * (s - (low + high) * 0.5) for s in found]
    if how == "vespa-reciprocal-rank":
        return [1.0 / (k + place[i]) for i in range(len(found))]
    if how == "opensearch-rrf":
        tenth = Decimal("1e-10")
        return [np.float32((Decimal(1) / (k + place[i])).quantize(tenth, ROUND_HALF_UP)) for i in range(len(found))]
    if how == "elasticsearch-rrf":
        return [np.float32(1) / np.float32(k + place[i]) for i in range(len(found))]
    f = [np.float32(s) for s in found]
    low, high = min(f), max(f)
    if how.startswith(("elasticsearch", "opensearch")):
        high = max(high, np.float32(1.4e-45))
    if how == "elasticsearch-min-max":
        return [low if high - low < np.float32(1e-6) else (s - low) / (high - low) for s in f]
    if how == "weaviate-relative-score":
        return [np.float32(1) if high == low else (s - low) / (high - low) for s in f]
    if how == "opensearch-min-max":
        values = [np.float32(1) if high == low else (s - low) / (high - low) for s in f]
        return [np.float32(0.001) if v == 0 else v for v in values]
    if how == "elasticsearch-l2":
        norm = math.sqrt(sum(float(s * s) for s in f))
        return [s if norm < 1e-6 else np.float32(float(s) / norm) for s in f]
    if how == "opensearch-l2":
        total = np.float32(0)
        for i in falling:
            total += f[i] * f[i]
        return [np.float32(0) if total == 0 else s / np.float32(math.sqrt(total)) for s in f]
    if how == "opensearch-z-score":
        mean = math.fsum(map(float, f)) / len(f)
        std = np.float32(math.sqrt(math.fsum((float(s) - mean) ** 2 for s in f) / max(1, len(f) - 1)))
        mean = np.float32(mean)
        values = [max(f) if s == mean else min(f) if std == 0 else (s - mean) / std for s in f]
        return [np.float32(0.001) if s != mean and std != 0 and v <= 0 else v for s, v in zip(f, values, strict=True)]
    raise ValueError(how)


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
