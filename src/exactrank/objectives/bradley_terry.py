"""Grades from pairs: the strengths of documents that explain best who was preferred to whom (Zermelo 1929; Bradley & Terry 1952).

A document of strength s_i is preferred to one of strength s_j with probability 1 / (1 + e^(s_j - s_i)). In each query, over the pairs that
are given, each by its weight w, and those of different grades, each with weight 1,

    most over s of  -sum over pairs of w_ij log(1 + e^(s_j - s_i))  -  prior/2 |s|^2                            (1)

which is RankNet's objective with a score for each document instead of a model, and a normal prior. The prior keeps the strengths of
undefeated documents finite, and those of groups without a pair between them comparable: the mean strength of each query is 0, and so is
the strength of a document without pairs. (1) is strictly concave, and solved by Newton's method; the standard errors are the square roots
of the diagonal of its inverse curvature. The grade of a document is

    scale / (1 + e^-s_i),                                                                                       (2)

``scale`` times the probability that it is preferred to an average document of its query.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerDocument
from exactrank.data.preferences import Preferences
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, SettingError
from exactrank.measures.base import Measure
from exactrank.table import Shown, Values

STEPS = 100  #: of Newton's method; it takes about ten
Square = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Strengths(Shown):
    """What `bradley_terry` found: one row per document, in the caller's order."""

    judged: RankingData  #: without its pairs, its grades those of (2)
    strength: PerDocument  #: of (1), 0 for an average document of the query
    error: PerDocument  #: the standard error of that

    @property
    def grades(self) -> PerDocument:
        """(2) of each row."""
        return self.judged.ungrouped(self.judged.y)

    def __repr__(self) -> str:
        return f"Strengths({self.judged.n_queries:,} queries, {len(self.strength):,} documents)"

    def _columns(self) -> dict[str, Values]:
        parts = {name: values for name, values in self.judged._columns().items() if name in ("query_id", "doc_id")}
        return {**parts, "strength": self.strength, "error": self.error, "grade": self.grades}


def bradley_terry(data: RankingData, *, prior: float = 0.1, scale: float = 4.0) -> Strengths:
    """Fit (1) to the pairs of ``data`` and to its grades where they differ; ``.judged`` is the data with grades (2), for any ranker.

    ``prior`` is the precision of the prior on strengths: the larger it is, the nearer to 0 they stay.

    >>> from exactrank import with_pairs
    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 0, 0], group=[3])
    >>> found = bradley_terry(with_pairs(data, {"better": [1, 1], "worse": [0, 0]}))
    >>> found.strength.round(2).tolist(), found.grades.round(2).tolist()
    ([-1.32, 1.32, 0.0], [0.84, 3.16, 2.0])
    """
    for name, value in (("prior", prior), ("scale", scale)):
        if not 0 < value < np.inf:
            raise SettingError(f"{name} must be a number above 0, got {value}")
    if data.preferences is None:
        raise DataError("the data has no pairs to make grades of; give it some with xr.with_pairs or xr.read_pairs")
    strength, error = np.zeros(data.n_documents), np.full(data.n_documents, np.sqrt(1 / prior))
    bounds = data.preferences.by_query(data.indptr)
    for q in range(data.n_queries):
        first, last = data.indptr[q : q + 2]
        weight = _weights(data.preferences, slice(bounds[q], bounds[q + 1]), data.y[first:last], first)
        compared = np.flatnonzero((weight + weight.T).any(axis=1))
        if len(compared):
            found = _fitted(weight[np.ix_(compared, compared)], prior)
            strength[first + compared], error[first + compared] = found
    judged = replace(data, y=scale / (1 + np.exp(-strength)), preferences=None)
    return Strengths(judged, data.ungrouped(strength), data.ungrouped(error))


def grades_for(measure: Measure, data: RankingData) -> tuple[PerDocument, bool]:
    """What ``measure`` reads as grades, or (2) where it counts pairs that are given; which of the two?"""
    from_pairs = measure.counts_pairs and data.preferences is not None
    return bradley_terry(data).judged.y if from_pairs else measure.grades(data), from_pairs


def _weights(preferences: Preferences, pairs: slice, y: PerDocument, first: int) -> Square:
    """By how much each document of a query was preferred to each other one."""
    weight = (y[:, None] > y[None, :]).astype(np.float64)
    weight[preferences.better[pairs] - first, preferences.worse[pairs] - first] += preferences.weight[pairs]
    return weight


def _fitted(weight: Square, prior: float) -> tuple[PerDocument, PerDocument]:
    """The maximum of (1), and standard errors."""
    strength = np.zeros(len(weight))
    both = weight + weight.T

    def goodness(s: PerDocument) -> float:
        return -float(np.sum(weight * np.logaddexp(0, s[None, :] - s[:, None]))) - prior / 2 * float(s @ s)

    for _ in range(STEPS):
        with np.errstate(over="ignore"):
            wins = 1 / (1 + np.exp(strength[None, :] - strength[:, None]))  # of the row's document
        slope = (weight * (1 - wins)).sum(axis=1) - (weight * (1 - wins)).sum(axis=0) - prior * strength
        pull = both * wins * (1 - wins)
        curvature = np.diag(pull.sum(axis=1) + prior) - pull
        step, size, here = np.linalg.solve(curvature, slope), 1.0, goodness(strength)
        while size > 1e-10 and goodness(strength + size * step) < here:
            size /= 2
        strength = strength + size * step
        if np.max(np.abs(size * step)) < 1e-10:
            break
    return strength, np.sqrt(np.diag(np.linalg.inv(curvature)))
