"""Softmax cross entropy: a convex surrogate that puts useful documents on top.

With u the usefulness of a document to the measure (its grade if the measure has no usefulness, or too large a one; the grade of a
Bradley-Terry fit if the measure counts pairs of the data), less the least of its query, and U the sum of all,

    f(w) = 1/U sum over queries of sum_i u_i (s_i - log sum_l exp s_l)  -  ridge/2 |sigma w|^2,    s = X w       (1)

the log likelihood of drawing each unit of usefulness from the softmax of the scores. Queries count by their
usefulness; sigma holds the features' standard deviations within queries, so the penalty does not depend on their units.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank._support.numerics import dot, exp, log
from exactrank._support.threads import thread_count
from exactrank.data.blocks import wide_blocks
from exactrank.data.dataset import EachBlock, EachPart, Part, Weigh
from exactrank.data.ranking_data import RankingData
from exactrank.learning.objectives.bradley_terry import grades_for
from exactrank.learning.objectives.within_query import squares_by_block
from exactrank.measures.base import Measure
from exactrank.measures.bound import DatasetMeasure
from exactrank.models.architecture import Theta

#: Beyond this the usefulness of one document hides that of all others.
MOST_USEFUL = 1e6


class SoftmaxLikelihood:
    """(1) on the data of a measure, by its weights; sums are taken by wide blocks of queries."""

    def __init__(self, measure: DatasetMeasure, ridge: float) -> None:
        self._parts, self._ridge = measure.data.with_memo(), ridge
        self._blocks = _Softmax(measure.measure, measure.weigh, thread_count(measure.threads))
        small, differs = zip(*self._parts.ask(EachPart(self._blocks.usefulness)), strict=True)
        self._blocks = replace(self._blocks, by_grade=not (all(small) and any(differs)))
        sums = self._parts.ask(EachBlock(self._blocks))
        self._total = float(np.sum([total for total, _ in sums]))
        sigma = np.sqrt(np.sum([squares for _, squares in sums], axis=0) / measure.data.n_documents)
        self.sigma = np.where(sigma > 0, sigma, np.inf)

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """Return (1) and its gradient."""
        gain, slope = 0.0, np.zeros(len(theta))
        slopes = replace(self._blocks, what="slope", theta=np.ascontiguousarray(theta), total=self._total)
        for block_gain, block_slope in self._parts.ask(EachBlock(slopes)):
            gain += block_gain
            slope += block_slope
        scaled = np.where(np.isinf(self.sigma), 0.0, self.sigma) ** 2 * theta
        return gain - self._ridge / 2 * dot(theta, scaled), slope - self._ridge * scaled


@dataclass(frozen=True, eq=False)
class InDeviations:
    """A likelihood as a function of weights in units of the features' deviations, so that one step size suits all."""

    likelihood: SoftmaxLikelihood

    def value_and_slope(self, scaled: Theta) -> tuple[float, Theta]:
        """Return (1) and its gradient."""
        value, slope = self.likelihood.value_and_slope(scaled / self.likelihood.sigma)
        return value, slope / self.likelihood.sigma


@dataclass(frozen=True, eq=False)
class _Softmax:
    """The terms of (1) and its gradient by wide blocks; or first, as "sums", their usefulness and the squared deviations of features."""

    measure: Measure
    weigh: Weigh | None  #: returns the weights of queries, if they are not the data's own
    threads: int
    what: Literal["sums", "slope"] = "sums"
    by_grade: bool = False  #: True if grades are used, since usefulness is too large, or does not differ within any query
    theta: Theta | None = None
    total: float = 1.0

    def __call__(self, part: Part) -> list[tuple[float, Theta]]:
        data = part.data
        above = part.once(("useful", repr(self.measure)), lambda: self._above(part))
        if self.what == "sums":
            squares = np.transpose([squares_by_block(column, data.indptr) for column in data.X.T])
            ends = data.indptr[wide_blocks(data.indptr)]
            return [(float(above[a:b].sum()), block) for (a, b), block in zip(pairwise(ends.tolist()), squares, strict=True)]
        return self._slopes(data, above)

    def _slopes(self, data: RankingData, above: PerDocument) -> list[tuple[float, Theta]]:
        slopes = []
        for first, last in pairwise(wide_blocks(data.indptr).tolist()):
            bounds = data.indptr[first : last + 1]
            rows, starts, sizes = slice(int(bounds[0]), int(bounds[-1])), bounds[:-1] - bounds[0], data.sizes[first:last]
            share = above[rows] / self.total
            query_share = np.add.reduceat(share, starts)
            s = _core.linear_scores(data.X[rows], np.asarray(self.theta), self.threads)
            largest = np.maximum.reduceat(s, starts)
            chance = exp(s - np.repeat(largest, sizes))
            sums = np.add.reduceat(chance, starts)
            slope = share - chance * np.repeat(query_share / sums, sizes)
            gain = dot(share, s) - dot(query_share, log(sums) + largest)
            slopes.append((gain, _core.pulled_back(data.X[rows], slope, self.threads)))
        return slopes

    def usefulness(self, part: Part) -> tuple[bool, bool]:
        """Return whether the usefulness of all documents is small enough, and whether it differs within a query."""
        useful = self._useful(part.data, self.measure.grades(part.data))
        if useful is None:
            return True, True
        return bool(np.all(np.abs(useful) < MOST_USEFUL)), bool(np.any(_above_least(useful, part.data) > 0))

    def _above(self, part: Part) -> PerDocument:
        """Return the usefulness of each document less the least of its query, times the query's weight."""
        data = part.data
        y, _ = grades_for(self.measure, data)
        weights = data.weights if self.weigh is None else self.weigh(part.first, data.weights)
        useful = None if self.by_grade else self._useful(data, y)
        return np.asarray(_above_least(y if useful is None else useful, data) * np.repeat(weights, data.sizes))

    def _useful(self, data: RankingData, y: PerDocument) -> PerDocument | None:
        """Return the usefulness of documents of grades ``y``; None if the grades are used instead."""
        if not hasattr(self.measure, "usefulness") or (self.measure.counts_pairs and data.preferences is not None):
            return None
        with np.errstate(over="ignore"):
            return np.asarray(self.measure.usefulness(y), np.float64)


def _above_least(values: PerDocument, data: RankingData) -> PerDocument:
    """Return ``values`` less the least of their query."""
    with np.errstate(invalid="ignore"):  # infinity less infinity
        return np.asarray(values - np.repeat(np.minimum.reduceat(values, data.indptr[:-1]), data.sizes))
