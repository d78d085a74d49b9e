"""Measures by their definitions, one query at a time, in plain Python.

`value` takes the grades in ranked order (and those of documents without a rank); `query_value` ranks by score first,
averaging over every order of tied documents where the measure says so.
"""

import itertools
import math

from exactrank.measures import AP, DCG, ERR, NDCG, RBP, RR, Bpref, Judged, MeanNDCG, PairwiseCorrect, Precision, Recall, Success, Total


def gain(measure, y):
    if isinstance(measure.gain, str):
        y = max(y, 0)
        return 2**y - 1 if measure.gain == "exp2" else y
    return dict(measure.gain)[y]


def discount(measure, rank):
    if not isinstance(measure.discount, str):
        return measure.discount[rank - 1] if rank <= len(measure.discount) else 0
    return 1 / math.log2(1 + rank) if measure.discount == "log2" else 1 / math.log2(max(rank, 2))


def dcg(measure, ranked, rest):
    return sum(gain(measure, y) * discount(measure, r) for r, y in enumerate(ranked, 1))


def ndcg(measure, ranked, rest):
    everything = sorted(ranked + rest, key=lambda y: gain(measure, y), reverse=True)
    if measure.short == "zero" and measure.k is not None and len(everything) < measure.k:
        return 0
    return dcg(measure, ranked[: measure.k], rest) / dcg(measure, everything[: measure.k], [])


def mean_ndcg(measure, ranked, rest):
    everything = sorted(ranked + rest, key=lambda y: gain(measure, y), reverse=True)
    cutoffs = range(1, min(measure.k or len(everything), len(everything)) + 1)
    return sum(dcg(measure, ranked[:k], rest) / dcg(measure, everything[:k], []) for k in cutoffs) / len(cutoffs)


def relevant(measure, grades):
    return sum(y >= measure.rel for y in grades)


def precision(measure, ranked, rest):
    ranks = min(measure.k, len(ranked + rest)) if measure.norm == "list" else measure.k
    return relevant(measure, ranked[: measure.k]) / ranks


def recall(measure, ranked, rest):
    return relevant(measure, ranked[: measure.k]) / relevant(measure, ranked + rest)


def success(measure, ranked, rest):
    return float(relevant(measure, ranked[: measure.k]) > 0)


def reciprocal_rank(measure, ranked, rest):
    return next((1 / r for r, y in enumerate(ranked[: measure.k], 1) if y >= measure.rel), 0.0)


def average_precision(measure, ranked, rest):
    total = sum(relevant(measure, ranked[:r]) / r for r, y in enumerate(ranked[: measure.k], 1) if y >= measure.rel)
    count = relevant(measure, ranked + rest)
    return total / (min(count, measure.k or count) if measure.norm == "cutoff" else count)


def err(measure, ranked, rest):
    value, reach = 0.0, 1.0
    for r, y in enumerate(ranked[: measure.k], 1):
        stop = (2 ** max(y, 0) - 1) / 2**measure.max_grade
        value += reach * stop / r
        reach *= 1 - stop
    return value


def rbp(measure, ranked, rest):
    return (1 - measure.p) * sum(measure.p ** (r - 1) for r, y in enumerate(ranked[: measure.k], 1) if y >= measure.rel)


def bpref(measure, ranked, rest):
    count = relevant(measure, ranked + rest)
    nonrelevant = sum(0 <= y < measure.rel for y in ranked + rest)
    value, above = 0.0, 0
    for y in ranked:
        if y >= measure.rel:
            value += 1 if above == 0 else 1 - min(above, count) / min(count, nonrelevant)
        elif y >= 0:
            above += 1
    return value / count


def judged(measure, ranked, rest):
    first = ranked[: measure.k]
    return sum(y >= 0 for y in first) / len(first) if first else 0.0


def total(measure, ranked, rest):
    return sum(max(y, 0) for y in ranked[: measure.k])


def pairwise_correct(measure, ranked, rest):
    def u(y):
        return y if measure.rel is None else y >= measure.rel

    pairs = sum(u(a) != u(b) for a, b in itertools.combinations(ranked + rest, 2))
    within = sum(u(a) > u(b) for a, b in itertools.combinations(ranked, 2))
    return (within + sum(u(a) > u(b) for a in ranked for b in rest)) / pairs


DEFINITION = {
    DCG: lambda m, ranked, rest: dcg(m, ranked[: m.k], rest),
    NDCG: ndcg,
    MeanNDCG: mean_ndcg,
    Precision: precision,
    Recall: recall,
    Success: success,
    RR: reciprocal_rank,
    AP: average_precision,
    ERR: err,
    RBP: rbp,
    Bpref: bpref,
    PairwiseCorrect: pairwise_correct,
    Total: total,
    Judged: judged,
}


def is_empty(measure, grades):
    if isinstance(measure, PairwiseCorrect):
        return len({y if measure.rel is None else y >= measure.rel for y in grades}) == 1
    if isinstance(measure, Judged):
        return max(grades) < 0
    if hasattr(measure, "rel"):
        return relevant(measure, grades) == 0
    return max(grades) <= 0 if not hasattr(measure, "gain") else all(gain(measure, y) <= 0 for y in grades)


def value(measure, ranked, rest=()):
    """The measure of a list of grades in ranked order; ``rest`` are those of documents without a rank."""
    ranked, rest = list(ranked), list(rest)
    if is_empty(measure, ranked + rest):
        return math.nan if measure.empty == "skip" else float(measure.empty)
    return DEFINITION[type(measure)](measure, ranked, rest)


def query_value(measure, y, s, docid=None):
    """The measure of one query's grades ``y`` and scores ``s``."""
    y, s = list(y), list(s)
    found = [i for i in range(len(y)) if s[i] > -math.inf]
    rest = [y[i] for i in range(len(y)) if s[i] == -math.inf]
    groups = [[i for i in found if s[i] == level] for level in sorted({s[i] for i in found}, reverse=True)]
    if measure.ties == "pessimistic":
        groups = [sorted(group, key=lambda i: (y[i], i)) for group in groups]
    elif measure.ties == "docid":
        groups = [sorted(group, key=lambda i: docid[i], reverse=True) for group in groups]
    elif measure.ties == "expected":
        orders = [list(itertools.chain(*order)) for order in itertools.product(*(itertools.permutations(g) for g in groups))]
        return math.fsum(value(measure, [y[i] for i in order], rest) for order in orders) / len(orders)
    return value(measure, [y[i] for group in groups for i in group], rest)
