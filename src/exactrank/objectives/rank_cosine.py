"""RankCosine: the angle between scores and grades (Qin, Zhang, Tsai, Wang, Liu & Li 2008).

    loss = 1/2 (1 - cos(g, s)),    cos(g, s) = g . s / (|g| |s|)                                                (1)

Here s and g, the grades, are first taken less their means over the query: a ranker's scores have no natural zero, and so the
loss does not change when all scores of a query rise together, and its slopes sum to zero. It is then 0 just where scores are
a positive multiple of the grades plus a constant, and 1 where a negative one.

Of losses that replace nDCG, (1) is not consistent: the scores of the least expected loss need not rank by expected nDCG, for
|g| differs between judgements. Ravikumar, Tewari & Yang (2011) divide by the ideal DCG instead:

    loss = 1/2 (1 - G . s / (|G|_D |s|)),    G_i = 2^{y_i} - 1,    |G|_D = max over orders of sum_r G_r / log2(1 + r)    (2)

The expected loss is then least where s points along the mean of G / |G|_D, whose order is the best for nDCG. Centred scores
(G . s is then the same for a centred G) keep that order. Since |G|_D >= |G|, (2) lies between 0 and 1, but reaches neither.

Where all scores of a query are equal there is no angle. The cosine counts as 0 there, its mean over all directions, so the
loss is 1/2; and the slope points at the target, as at distance 1 and a right angle to it, so that training leaves the point.
A query with a single grade, or for (2) nothing useful, contributes nothing. The loss is not convex and no curvature is given.
"""

from dataclasses import dataclass

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.measures.dcg import NDCG
from exactrank.objectives.bounded_gain import training_kernel
from exactrank.objectives.within_query import centred


@dataclass(frozen=True)
class RankCosine:
    """(1) negated, or (2) where ``consistent``."""

    consistent: bool = False

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""
        return _core.rank_cosine(_gain_shares(data) if self.consistent else _directions(data))


def _gain_shares(data: RankingData) -> PerDocument:
    """G / |G|_D, centred."""
    kernel, grades = training_kernel(NDCG(), data)
    return _centred(_core.worths(kernel, grades, data.indptr), data)


def _directions(data: RankingData) -> PerDocument:
    """g / |g|, centred; 0 where all grades are alike."""
    g = _centred(data.y, data)
    length = np.hypot.reduceat(g, data.indptr[:-1])
    return np.asarray(g / np.repeat(np.where(length > 0, length, 1.0), data.sizes))


def _centred(values: PerDocument, data: RankingData) -> PerDocument:
    """Less the mean of the query; taking off the least first makes equal values exactly 0."""
    least = np.minimum.reduceat(values, data.indptr[:-1])
    return centred(values - np.repeat(least, data.sizes), data.indptr)
