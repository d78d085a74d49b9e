"""The drop in a measure by its definition: whole copies, a document and a query at a time."""

import math

import numpy as np

from tests.reference.measures import query_value


def drops(measure, scorer, data, repeats, seed):
    """(value, [(drop, error) of each feature]); the columns of ``data`` are those of the scorer."""
    weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    ranges = list(zip(data.indptr[:-1].tolist(), data.indptr[1:].tolist(), strict=True))
    here = values(measure, scorer, data.X, data.y, ranges)
    orders = exchanges(ranges, repeats, seed)
    counted = [q for q in range(data.n_queries) if not math.isnan(here[q]) and weight[q] > 0]
    total = math.fsum(weight[q] for q in counted)
    found = []
    for j in range(data.n_features):
        there = [values(measure, scorer, exchanged(data.X, j, order), data.y, ranges) for order in orders]
        lost = {q: math.fsum(here[q] - each[q] for each in there) / repeats for q in counted}
        drop = math.fsum(weight[q] * lost[q] for q in counted) / total
        square = math.fsum((weight[q] * (lost[q] - drop) / total) ** 2 for q in counted)
        n = len(counted)
        found.append((drop, math.sqrt(square * n / (n - 1)) if n > 1 else math.nan))
    return math.fsum(weight[q] * here[q] for q in counted) / total, found


def values(measure, scorer, X, y, ranges):
    scores = [float(scorer.score(np.array([row], np.float32))[0]) for row in X]
    return [query_value(measure, y[start:stop].tolist(), scores[start:stop]) for start, stop in ranges]


def exchanged(X, j, order):
    return [[X[order[i]][j] if column == j else row[column] for column in range(len(row))] for i, row in enumerate(X)]


def exchanges(ranges, repeats, seed):
    """Each query's documents in the order of random numbers of their own."""
    rng = np.random.default_rng(seed)
    numbers = [rng.random(ranges[-1][1]) for _ in range(repeats)]
    return [[i for start, stop in ranges for i in sorted(range(start, stop), key=own.__getitem__)] for own in numbers]
