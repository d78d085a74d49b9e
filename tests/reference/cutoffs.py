"""Cutoffs by their definition, in plain Python: every threshold, every depth, one query after the other."""

import math


def comparable(scores, by):
    """Return what a threshold is of, for the documents of one query; None for one that was not retrieved."""
    found = [s for s in scores if s > -math.inf]
    if by == "score":
        numbers = found
    elif by == "margin":
        numbers = [s - max(found) for s in found]
    elif by == "softmax":
        numbers = [math.exp(s - max(found)) / sum(math.exp(o - max(found)) for o in found) for s in found]
    elif by == "z-score":
        mean = sum(found) / len(found) if found else 0
        deviation = math.sqrt(sum((s - mean) ** 2 for s in found) / len(found)) if found else 0
        numbers = [(s - mean) / deviation if len(set(found)) > 1 else 0.0 for s in found]
    else:
        numbers = [-rank for rank in ranks(found)]
    left = iter(numbers)
    return [next(left) if s > -math.inf else None for s in scores]


def ranks(scores):
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return [order.index(i) + 1 for i in range(len(scores))]


def value(goal, kept, useful, relevant):
    """Return the value of a query."""
    name, *constants = goal
    if name == "F":
        (beta,) = constants
        return (1 + beta**2) * useful / (kept + beta**2 * relevant) if relevant else float(kept == 0)
    if name == "utility":
        gain, cost = constants
        return gain * useful - cost * (kept - useful)
    level, probability = constants
    return useful / relevant if probability is None else float(useful >= level * relevant - 1e-9)


def kept_of(query, by, threshold, depth):
    """Return which documents of a query, a list of scores, are kept."""
    return [
        x is not None and x >= threshold and (depth is None or rank <= depth)
        for x, rank in zip(comparable(query, by), ranks(query), strict=True)
    ]


def average(goal, queries, weights, by, threshold, depth=None, micro=False):
    """Return the average of a cutoff; queries are pairs of scores and flags."""
    counts = []
    for scores, flags in queries:
        kept = kept_of(scores, by, threshold, depth)
        counts.append((sum(kept), sum(k and f for k, f in zip(kept, flags, strict=True)), sum(flags)))
    if micro:
        return value(goal, *map(sum, zip(*counts, strict=True)))
    return sum(w * value(goal, *c) for w, c in zip(weights, counts, strict=True)) / sum(weights)


def thresholds(queries, by):
    return sorted({x for scores, _ in queries for x in comparable(scores, by) if x is not None} | {math.inf})


def best(goal, queries, weights, by, micro=False):
    """Return the largest average over all thresholds, or all thresholds and depths."""
    if by == "score and depth":
        depths = range(1, max(len(scores) for scores, _ in queries) + 1)
        return max(average(goal, queries, weights, "score", t, k) for t in thresholds(queries, "score") for k in depths)
    return max(average(goal, queries, weights, by, t, micro=micro) for t in thresholds(queries, by))


def guaranteed(goal, queries, by):
    """Return the largest threshold with the guarantee, or None."""
    _, level, probability = goal
    risk = 1 - (level if probability is None else probability)
    with_relevant = [query for query in queries if any(query[1])]
    n = len(with_relevant)
    possible = [
        t
        for t in thresholds(queries, by)
        if (sum(1 - average(goal, [query], [1], by, t) for query in with_relevant) + 1) / (n + 1) <= risk + 1e-12
    ]
    return max(possible, default=None)
