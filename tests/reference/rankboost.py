"""RankBoost by the formulas of its paper (Freund, Iyer, Schapire & Singer 2003): every pair by itself."""

import itertools
import math
from collections import Counter
from fractions import Fraction


def thresholds(values, limit):
    """At most ``limit`` places between distinct values (0: all), after each further part of the documents; no value fills two parts."""
    counts = Counter(float(v) for v in values)
    rising, parts = sorted(counts), limit + 1
    middles = [(a + b) / 2 for a, b in itertools.pairwise(rising)]
    if limit == 0 or len(middles) <= limit:
        return middles
    filled = [min(Fraction(counts[v]), Fraction(len(values), parts)) for v in rising]
    total = sum(filled)
    found, passed = [], 0
    for middle, seen in zip(middles, itertools.accumulate(filled), strict=False):
        if math.floor(seen * parts / total) > passed:
            found.append(middle)
            passed = math.floor(seen * parts / total)
    return found


def pairs(data, weight):
    """(worse, better, weight of the query) for all pairs of different grades in a query."""
    bounds = zip(data.indptr[:-1], data.indptr[1:], weight, strict=True)
    return [(i, j, w) for a, b, w in bounds for i in range(a, b) for j in range(a, b) if data.y[i] < data.y[j]]


def loss(pairs, scores):
    return math.fsum(w * math.exp(scores[i] - scores[j]) for i, j, w in pairs) / math.fsum(w for *_, w in pairs)


def edge(pairs, scores, column, threshold):
    """The mean of h(better) - h(worse) over pairs, by their weights."""
    weights = [w * math.exp(scores[i] - scores[j]) for i, j, w in pairs]
    gains = [(float(column[j]) > threshold) - (float(column[i]) > threshold) for i, j, _ in pairs]
    return math.fsum(d * g for d, g in zip(weights, gains, strict=True)) / math.fsum(weights)
