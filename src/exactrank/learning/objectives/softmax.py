"""Softmax cross entropy: a convex surrogate that puts useful documents on top.

With u the usefulness of a document to the measure (its grade where that does not say, or is too large; the grade of a Bradley-Terry fit
where the measure counts pairs that are given), less the least of its query, and U the sum of all,

    f(w) = 1/U sum over queries of sum_i u_i (s_i - log sum_l exp s_l)  -  ridge/2 |sigma w|^2,    s = X w       (1)

the log likelihood of drawing each unit of usefulness from the softmax of the scores. Queries count by what there is to find in
them; sigma holds the features' standard deviations within queries, so the penalty does not depend on their units.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

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

Theta = npt.NDArray[np.float64]
#: Beyond this the usefulness of one document drowns that of all others.
MOST_USEFUL = 1e6


class SoftmaxLikelihood:
    """(1) on the data of a measure, by its weights; sums are taken by wide blocks of queries."""

    def __init__(self, measure: DatasetMeasure, ridge: float) -> None:
        self._parts, self._ridge = measure.data.with_memo(), ridge
        self._blocks = _Softmax(measure.measure, measure.weigh, thread_count(measure.threads))
        small, differs = zip(*self._parts.ask(EachPart(self._blocks.usefulness)), strict=True)
        self._blocks = replace(self._blocks, by_grade=not (all(small) and any(differs)))
        facts = self._parts.ask(EachBlock(self._blocks))
        self._total = float(np.sum([total for total, _ in facts]))
        sigma = np.sqrt(np.sum([squares for _, squares in facts], axis=0) / measure.data.n_documents)
        self.sigma = np.where(sigma > 0, sigma, np.inf)

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """(1) and its gradient."""
        gain, slope = 0.0, np.zeros(len(theta))
        slopes = replace(self._blocks, what="slope", theta=np.ascontiguousarray(theta), total=self._total)
        for block_gain, block_slope in self._parts.ask(EachBlock(slopes)):
            gain += block_gain
            slope += block_slope
        scaled = np.where(np.isinf(self.sigma), 0.0, self.sigma) ** 2 * theta
        return gain - self._ridge / 2 * dot(theta, scaled), slope - self._ridge * scaled


@dataclass(frozen=True, eq=False)
class InDeviations:
    """A likelihood as a function of the weights in units of the features' deviations, in which one step suits all of them."""

    likelihood: SoftmaxLikelihood

    def value_and_slope(self, scaled: Theta) -> tuple[float, Theta]:
        """(1) and its gradient."""
        value, slope = self.likelihood.value_and_slope(scaled / self.likelihood.sigma)
        return value, slope / self.likelihood.sigma


@dataclass(frozen=True, eq=False)
class _Softmax:
    """What each wide block adds to (1) and its gradient; first, as facts, how useful its documents are and how far each feature varies."""

    measure: Measure
    weigh: Weigh | None  #: makes the weights of queries, if they are not the data's own
    threads: int
    what: Literal["facts", "slope"] = "facts"
    by_grade: bool = False  #: is a document as useful as its grade, since usefulness is too large, or nowhere differs within a query?
    theta: Theta | None = None
    total: float = 1.0

    def __call__(self, part: Part) -> list[tuple[float, Theta]]:
        data = part.data
        above = part.once(("useful", repr(self.measure)), lambda: self._above(part))
        if self.what == "facts":
            squares = np.transpose([squares_by_block(column, data.indptr) for column in data.X.T])
            ends = data.indptr[wide_blocks(data.indptr)]
            return [(float(above[a:b].sum()), own) for (a, b), own in zip(pairwise(ends.tolist()), squares, strict=True)]
        return self._slopes(data, above)

    def _slopes(self, data: RankingData, above: PerDocument) -> list[tuple[float, Theta]]:
        found = []
        for first, last in pairwise(wide_blocks(data.indptr).tolist()):
            bounds = data.indptr[first : last + 1]
            rows, starts, sizes = slice(int(bounds[0]), int(bounds[-1])), bounds[:-1] - bounds[0], data.sizes[first:last]
            share = above[rows] / self.total
            query_share = np.add.reduceat(share, starts)
            s = _core.linear_scores(data.X[rows], np.asarray(self.theta), self.threads)
            most = np.maximum.reduceat(s, starts)
            chance = exp(s - np.repeat(most, sizes))
            sums = np.add.reduceat(chance, starts)
            slope = share - chance * np.repeat(query_share / sums, sizes)
            gain = dot(share, s) - dot(query_share, log(sums) + most)
            found.append((gain, _core.pulled_back(data.X[rows], slope, self.threads)))
        return found

    def usefulness(self, part: Part) -> tuple[bool, bool]:
        """Is the usefulness of all documents small enough, and does it differ within a query?"""
        data = part.data
        if self._worth(data) is None:
            return True, True
        useful = self._useful(data, self.measure.grades(data))
        return bool(np.all(np.abs(useful) < MOST_USEFUL)), bool(np.any(_above_least(useful, data) > 0))

    def _above(self, part: Part) -> PerDocument:
        """How much more useful than the least of its query each document is, times the query's weight."""
        data = part.data
        y, _ = grades_for(self.measure, data)
        weights = data.weights if self.weigh is None else self.weigh(part.first, data.weights)
        above = _above_least(y if self.by_grade else self._useful(data, y), data)
        return np.asarray(above * np.repeat(weights, data.sizes))

    def _useful(self, data: RankingData, y: PerDocument) -> PerDocument:
        worth = self._worth(data)
        with np.errstate(over="ignore"):
            return y if worth is None else np.asarray(worth(y), np.float64)

    def _worth(self, data: RankingData) -> Callable[[PerDocument], PerDocument] | None:
        """What says how useful documents of some grades are; None where their grades do."""
        from_pairs = self.measure.counts_pairs and data.preferences is not None
        return None if from_pairs else getattr(self.measure, "usefulness", None)


def _above_least(values: PerDocument, data: RankingData) -> PerDocument:
    """``values`` less the least of their query."""
    with np.errstate(invalid="ignore"):  # infinity less infinity
        return np.asarray(values - np.repeat(np.minimum.reduceat(values, data.indptr[:-1]), data.sizes))
