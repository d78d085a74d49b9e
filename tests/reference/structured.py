"""Structured losses by looking at every ranking of a query, one query at a time."""

import functools
import itertools

import numpy as np

from exactrank.measures.families import Positional
from tests.reference.measures import is_empty, value


@functools.cache
def all_rankings(n):
    """Every order of n documents, a row each."""
    return np.array(list(itertools.permutations(range(n))))


def shape(structured, ranks, longest):
    """A at ranks 1 to ``ranks``."""
    measure, r = structured.measure, np.arange(1, ranks + 1)
    k = min(measure.cutoff, longest)
    if isinstance(structured.A, float):
        return np.array([(1 - (i / k)) ** structured.A if i < k else 0.0 for i in range(ranks)])
    if not isinstance(structured.A, str):
        return np.array([structured.A[i] if i < len(structured.A) else 0.0 for i in range(ranks)])
    values = {"linear": k + 1.0 - r, "sqrt": 1 / np.sqrt(r), "discount": measure.discounts(ranks)}[structured.A]
    return np.where(r <= k, values, 0.0)


def coefficients(structured, y, orders, longest=None):
    """c of the rankings that have the documents in ``orders``, a row each."""
    place = np.argsort(orders, axis=1)
    if isinstance(structured.measure, Positional):
        return shape(structured, len(y), longest or len(y))[place]
    relevant = y >= structured.measure.rel
    pairs = np.not_equal.outer(relevant, relevant)
    above = np.sign(place[:, None, :] - place[:, :, None])
    return (above * pairs).sum(axis=2) / max(1, relevant.sum() * (~relevant).sum())


class Rankings:
    """All rankings of one query: what each loses of the measure, and its coefficients, a row each."""

    def __init__(self, structured, y, longest=None):
        orders = all_rankings(len(y))
        worth = functools.cache(lambda grades: value(structured.measure, grades))
        values = np.array([worth(tuple(grades)) for grades in y[orders].tolist()])
        self.delta = np.zeros(len(values)) if is_empty(structured.measure, y) else values.max() - values
        self.c = coefficients(structured, y, orders, longest)
        self.sorted = np.all(np.diff(structured.measure.usefulness(y)[orders], axis=1) <= 0, axis=1)

    @property
    def tell_apart(self):
        return self.delta.max() > 1e-12

    @property
    def perfect(self):
        """The coefficients of every ranking by usefulness."""
        return np.unique(self.c[self.sorted], axis=0)

    def loss(self, s, target, rescaled=False):
        rise = (self.c - target) @ s
        return max(self.delta * (1 + rise)) if rescaled else max(self.delta + rise)


def by_score(structured, y, s):
    """c of the ranking by score, ties in the order listed."""
    return coefficients(structured, y, ranked(s)[None])[0]


def ranked(s):
    """Documents by score, ties in the order listed."""
    return np.argsort(-s, kind="stable")


def assignment_costs(structured, y, longest):
    """What a positional measure loses by each document (rows) at each rank."""
    measure, u = structured.measure, structured.measure.usefulness(y)
    d = np.where(np.arange(len(y)) < measure.cutoff, measure.discounts(len(y)), 0.0)
    norm = {"one": 1.0, "length": min(measure.cutoff, len(y)), "total": u.sum(), "ideal": np.sort(u)[::-1] @ d}[measure.normalizer]
    return np.outer(u, d) / norm, shape(structured, len(y), longest)


def best_interleaving(measure, y, s):
    """The largest delta(y) + c(y) . s for AP, RR and Success, by dynamic programming: relevant documents and the others each stay in
    order of score, and a state is how many of either have been placed."""
    relevant = [s[i] for i in ranked(s) if y[i] >= measure.rel]
    others = [s[i] for i in ranked(s) if y[i] < measure.rel]
    R, N = len(relevant), len(others)
    best = np.full((R + 1, N + 1), -np.inf)
    best[0, 0] = 1.0
    for i, j in itertools.product(range(R + 1), range(N + 1)):
        if i > 0:
            grades = [0] * j + [measure.rel] if i == 1 else []
            gain = i / (i + j) / R if measure.name == "AP" else value(measure, grades) if i == 1 else 0.0
            best[i, j] = max(best[i, j], best[i - 1, j] - gain + relevant[i - 1] * (N - 2 * j) / (R * N))
        if j > 0:
            best[i, j] = max(best[i, j], best[i, j - 1] + others[j - 1] * (R - 2 * i) / (R * N))
    return best[R, N]
