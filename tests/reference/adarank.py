"""AdaRank by the formulas of its paper (Xu & Li 2007), query by query."""

import math

from . import measures


def performances(measure, data, scores):
    """E of each query; NaN where it is skipped."""
    bounds = zip(data.indptr[:-1], data.indptr[1:], strict=True)
    return [measures.query_value(measure, data.y[a:b], scores[a:b]) for a, b in bounds]


def scores_of(data, theta):
    return [math.fsum(float(x) * w for x, w in zip(row, theta, strict=True)) for row in data.X]


def shares(weight, performed):
    """P of each query after a model that did ``performed``: skipped queries have none."""
    heavy = [0.0 if math.isnan(e) else w * math.exp(-e) for w, e in zip(weight, performed, strict=True)]
    return [h / math.fsum(heavy) for h in heavy]


def mean(share, performed):
    return math.fsum(p * e for p, e in zip(share, performed, strict=True) if p > 0)


def candidates(measure, data, share, turned):
    """phi of every feature alone, by (sign, feature)."""
    signs = (1, -1) if turned else (1,)
    return {
        (sign, k): mean(share, performances(measure, data, [sign * float(x) for x in data.X[:, k]]))
        for sign in signs
        for k in range(data.n_features)
    }
