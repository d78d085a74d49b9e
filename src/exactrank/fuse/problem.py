"""The measure as a function of the systems' weights, and its exact values along segments of weights.

With x_j the comparable scores of system j, a document's fused score is

    s = sum_j w_j x_j,   w >= 0 and sum w = 1,   or of any sign and sum |w| = 1                                 (1)

since a positive factor changes no ranking. From weights u to weights v the scores move along a ray,

    s(alpha) = s(u) + alpha (s(v) - s(u)),   0 <= alpha <= 1,                                                   (2)

so the measure is a step function of alpha, known exactly (`exactrank.objectives.profile`).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerDocument, PerQuery, Rows
from exactrank.data.ranking_data import RankingData
from exactrank.fuse.normalise import Retrieved, SystemScores
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure, mean_over_queries
from exactrank.objectives.profile import profile
from exactrank.objectives.step_function import Interval, StepFunction

Weights = npt.NDArray[np.float64]  #: one a system


@dataclass(frozen=True, eq=False)
class Sweep:
    """The measure on the segment from weights ``start`` to weights ``end``, (2)."""

    start: Weights
    end: Weights
    steps: StepFunction

    def weights(self, alpha: float) -> Weights:
        """The weights at ``alpha``."""
        return between(self.start, self.end, alpha)

    @property
    def best(self) -> Interval:
        """The best interval of alpha."""
        return self.steps.best(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is tuned: a measure of the weighted sum of ``values``, where ``ranked``, on the queries of ``data``."""

    measure: Measure
    data: RankingData  #: in its own order, without features
    values: SystemScores
    ranked: Retrieved
    nonnegative: bool = True
    threads: int | None = None

    @property
    def systems(self) -> int:
        """How many systems there are."""
        return len(self.values)

    @cached_property
    def skipped(self) -> npt.NDArray[np.bool_]:
        """The queries that the measure leaves out."""
        return np.isnan(self.per_query(np.full(self.systems, 1 / self.systems)))

    def counts(self, query_weight: PerQuery) -> bool:
        """Is there a query to tune on?"""
        return bool(np.any(query_weight[~self.skipped]))

    def part(self, queries: Rows) -> "Problem":
        """The problem of some of the queries."""
        data = self.data.take_queries(queries)
        rows = np.repeat(self.data.indptr[queries] - data.indptr[:-1], data.sizes) + np.arange(data.n_documents)
        return replace(self, data=data, values=self.values[:, rows], ranked=self.ranked[rows])

    def scores(self, weights: Weights) -> PerDocument:
        """(1), -inf where a document is not ranked."""
        return np.where(self.ranked, weighted_sum(weights, self.values), -np.inf)

    def per_query(self, weights: Weights) -> PerQuery:
        """The measure of each query, NaN where it is skipped."""
        return self.measured(self.scores(weights))

    def measured(self, scores: PerDocument) -> PerQuery:
        """The measure of each query by any scores, NaN where it is skipped."""
        return self._bound.values(scores)

    @cached_property
    def _bound(self) -> BoundMeasure:
        return self.measure.on(self.data, threads=self.threads)

    def value(self, weights: Weights, query_weight: PerQuery) -> float:
        """The measure's mean over queries."""
        return mean_over_queries(self.per_query(weights), query_weight)

    def sweep(self, start: Weights, end: Weights, query_weight: PerQuery | None = None) -> Sweep:
        """The measure on the segment from ``start`` to ``end``, (2)."""
        weight = self.data.weights if query_weight is None else query_weight
        steps = profile(self.measure, self.data, *self.ray(start, end), low=0.0, high=1.0, weight=weight, threads=self.threads)
        return Sweep(start, end, steps)

    def ray(self, start: Weights, end: Weights) -> tuple[PerDocument, PerDocument]:
        """The scores at ``start`` and their direction towards ``end``, (2)."""
        return self.scores(start), np.where(self.ranked, weighted_sum(end - start, self.values), 0.0)


def between(start: Weights, end: Weights, alpha: float) -> Weights:
    """The weights at ``alpha`` on the way from ``start`` to ``end``."""
    return (1 - alpha) * start + alpha * end


def weighted_sum(weights: Weights, values: SystemScores) -> PerDocument:
    """sum_j w_j x_j, in the same order for each document: a matrix product may round equal documents apart."""
    total: PerDocument = weights[0] * values[0]
    for weight, scores in zip(weights[1:], values[1:], strict=True):
        total += weight * scores
    return total
