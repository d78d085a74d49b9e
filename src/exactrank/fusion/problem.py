"""The measure as a function of the systems' weights, and its exact values along segments of weights.

With x_j the comparable scores of system j, a document's fused score is

    s = sum_j w_j x_j,   w >= 0 and sum w = 1,   or of any sign and sum |w| = 1                                 (1)

since a positive factor changes no ranking. From weights u to weights v the scores move along a ray,

    s(alpha) = s(u) + alpha (s(v) - s(u)),   0 <= alpha <= 1,                                                   (2)

so the measure is a step function of alpha, known exactly (`exactrank.learning.objectives.profile`). The step functions of single queries
can be kept apart, so that they can be weighted anew:

    f_q(alpha) = f_q(0) + sum of the jumps of q at points below alpha                                           (3)
    f(alpha) = sum_q w_q f_q(alpha) / sum_q w_q                                                                 (4)

With the jumps of all queries in order of their points, (4) is a running sum for any query weights: a bootstrap sample or a
training fold costs only one pass over the jumps. With constraints on other measures f is that of
`exactrank.learning.objectives.constrained`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise, product

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support import numerics
from exactrank._support.arrays import PerDocument, PerQuery, Rows
from exactrank._support.threads import Pool, thread_count
from exactrank.data.ranking_data import RankingData
from exactrank.fusion.normalize import Retrieved, SystemScores
from exactrank.learning.objectives.constrained import constrain
from exactrank.learning.objectives.line_search import check_pairs
from exactrank.learning.objectives.profile import profile, ray_of
from exactrank.learning.objectives.step_function import LEAST_WIDTH, SAME_VALUE, Floats, Interval, StepFunction
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure, mean_over_queries
from exactrank.measures.goal import Constraint

Weights = npt.NDArray[np.float64]  #: one per system
Combine = Callable[[Weights, SystemScores], PerDocument]  #: systems' scores to fused ones
Cell = npt.NDArray[np.float64]  #: a part of the weights, corners x systems; what holds at all its corners holds in all of it, by (1)


def all_weights(systems: int, nonnegative: bool) -> list[Cell]:
    """The weights of two systems as a segment or the sides of a square, of three as a triangle or the faces of an octahedron.

    >>> [cell.tolist() for cell in all_weights(2, nonnegative=True)]
    [[[1.0, 0.0], [0.0, 1.0]]]
    """
    if systems == 2:
        around = [np.array(corner) for corner in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (1.0, 0.0))]
        return [np.stack(ends) for ends in pairwise(around[:2] if nonnegative else around)]
    signs = [(1.0, 1.0, 1.0)] if nonnegative else product((1.0, -1.0), repeat=3)
    return [np.diag(sign) for sign in signs] if systems == 3 else []


def halves(cell: Cell) -> list[Cell]:
    """The two parts on either side of the middle of the longest edge.

    >>> [half.tolist() for half in halves(np.eye(2))]
    [[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.0, 1.0]]]
    """
    i, j = max(combinations(range(len(cell)), 2), key=lambda edge: numerics.norm(cell[edge[0]] - cell[edge[1]]))
    parts = cell.copy(), cell.copy()
    parts[0][j] = parts[1][i] = (cell[i] + cell[j]) / 2
    return list(parts)


def weighted_sum(weights: Weights, values: SystemScores) -> PerDocument:
    """sum_j w_j x_j, in the same order for each document: a matrix product may round equal documents apart."""
    total: PerDocument = weights[0] * values[0]
    for weight, scores in zip(weights[1:], values[1:], strict=True):
        total += weight * scores
    return total


@dataclass(frozen=True, eq=False)
class Segment:
    """The weights from ``start`` to ``end``."""

    start: Weights
    end: Weights

    def weights(self, alpha: float) -> Weights:
        """The weights at ``alpha``."""
        return (1 - alpha) * self.start + alpha * self.end


@dataclass(frozen=True, eq=False)
class Sweep(Segment):
    """The measure on a segment, (2)."""

    steps: StepFunction

    @property
    def best(self) -> Interval:
        """The best interval of alpha."""
        return self.steps.best(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class FusionProblem:
    """What is tuned: a measure of the weighted sum of ``values``, where ``ranked``, on the queries of ``data``."""

    measure: Measure
    data: RankingData  #: in its own order, without features
    values: SystemScores
    ranked: Retrieved
    nonnegative: bool = True
    threads: int | None = None
    combine: Combine = weighted_sum  #: what measures; sweeps are of (1) in double precision
    limits: "tuple[tuple[FusionProblem, Constraint], ...]" = ()  #: other measures of the same systems, each with what it must keep

    @property
    def systems(self) -> int:
        """How many systems there are."""
        return len(self.values)

    @cached_property
    def bound(self) -> BoundMeasure:
        """The measure on the data."""
        return self.measure.on(self.data, threads=self.threads)

    @cached_property
    def skipped(self) -> npt.NDArray[np.bool_]:
        """The queries that the measure leaves out."""
        return np.isnan(self.per_query(np.full(self.systems, 1 / self.systems)))

    def counts(self, query_weight: PerQuery) -> bool:
        """Is there a query to tune on?"""
        return bool(np.any(query_weight[~self.skipped]))

    def part(self, queries: Rows) -> "FusionProblem":
        """The problem of some of the queries."""
        data = self.data.take_queries(queries)
        rows = np.repeat(self.data.indptr[queries] - data.indptr[:-1], data.sizes) + np.arange(data.n_documents)
        limits = tuple((other.part(queries), each) for other, each in self.limits)
        return replace(self, data=data, values=self.values[:, rows], ranked=self.ranked[rows], limits=limits)

    def combined(self, combine: Combine) -> "FusionProblem":
        """The problem as it is measured by scores that are combined otherwise."""
        return replace(self, combine=combine, limits=tuple((other.combined(combine), each) for other, each in self.limits))

    def scores(self, weights: Weights) -> PerDocument:
        """(1), as ``combine`` has it, -inf where a document is not ranked."""
        return np.where(self.ranked, self.combine(weights, self.values), -np.inf)

    def per_query(self, weights: Weights) -> PerQuery:
        """The measure of each query, NaN where it is skipped."""
        return self.bound.values(self.scores(weights))

    def value(self, weights: Weights, query_weight: PerQuery) -> float:
        """The measure's mean over queries; where ``limits`` are missed, minus the shortfall."""
        missed = math.fsum(each.shortfall(other.value(weights, query_weight)) for other, each in self.limits)
        return -missed if missed > 0 else mean_over_queries(self.per_query(weights), query_weight)

    def ray(self, start: Weights, end: Weights) -> tuple[PerDocument, PerDocument]:
        """The scores at ``start`` and their direction towards ``end``, (2)."""
        here, direction = weighted_sum(start, self.values), weighted_sum(end - start, self.values)
        return np.where(self.ranked, here, -np.inf), np.where(self.ranked, direction, 0.0)

    def sweep(self, start: Weights, end: Weights, query_weight: PerQuery) -> Sweep:
        """The measure on the segment from ``start`` to ``end``, (2)."""
        ray = self.ray(start, end)
        steps = profile(self.data, *ray, self.measure, low=0.0, high=1.0, weight=query_weight, threads=self.threads)
        others = [(other.sweep(start, end, query_weight).steps, each) for other, each in self.limits]
        return Sweep(start, end, constrain(steps, others) if others else steps)


@dataclass(frozen=True, eq=False)
class QuerySteps(Segment):
    """Each query's step function on a segment, (3)."""

    here: PerQuery  #: the values at ``start``, NaN where a query is skipped
    points: Floats  #: of the jumps, rising
    to: Floats  #: the jump from left of the point to it
    whole: Floats  #: the jump from left of the point to right of it
    query: Rows  #: whose jump it is
    limits: "tuple[tuple[QuerySteps, Constraint], ...]" = ()

    @classmethod
    def of(cls, problem: FusionProblem, start: Weights, end: Weights) -> "QuerySteps":
        """Sweeps all queries."""
        bound = problem.measure.on(problem.data)
        check_pairs(bound)
        ray = ray_of(problem.data, *problem.ray(start, end))
        at, to, beyond, counts, here = _core.query_jumps(bound.native, *ray, 0.0, 1.0, thread_count(problem.threads))
        real = np.flatnonzero((np.abs(to) > SAME_VALUE) | (np.abs(beyond) > SAME_VALUE))  # the rest is rounding
        order = real[np.argsort(at[real], kind="stable")]
        query = np.repeat(np.arange(problem.data.n_queries), counts)
        limits = tuple((cls.of(other, start, end), each) for other, each in problem.limits)
        return cls(start, end, here, at[order], to[order], (to + beyond)[order], query[order], limits)

    def sweep(self, query_weight: PerQuery) -> Sweep:
        """(4), with a breakpoint wherever a query that counts has one."""
        share, here = self._shares(query_weight)
        counting = np.flatnonzero(share[self.query])
        points, shares = self.points[counting], share[self.query[counting]]
        running = here + np.append(0.0, np.cumsum(shares * self.whole[counting]))
        first = np.flatnonzero(np.append(True, points[1:] != points[:-1])[: len(points)])  # of the jumps at one point
        values = np.append(running[first], running[-1])
        reached = np.add.reduceat(shares * self.to[counting], first) if len(first) else np.zeros(0)
        steps = StepFunction(points[first], values, values[:-1] + reached)
        others = [(other.sweep(query_weight).steps, each) for other, each in self.limits]
        return Sweep(self.start, self.end, constrain(steps, others) if others else steps)

    def best(self, query_weight: PerQuery) -> Interval:
        """Where (4) is largest, the widest of such places; neighbors of the same value count as one."""
        if self.limits:
            return self.sweep(query_weight).best
        share, here = self._shares(query_weight)
        running = np.append(0.0, np.cumsum(share[self.query] * self.whole))
        inside, low, high = self._intervals
        values = running[inside]
        near = np.concatenate([[False], values >= values.max() - SAME_VALUE, [False]])
        first, last = np.flatnonzero(near[1:] & ~near[:-1]), np.flatnonzero(near[:-1] & ~near[1:]) - 1
        widest = int(np.argmax(high[last] - low[first]))
        return Interval(float(low[first[widest]]), float(high[last[widest]]), here + float(values[first[widest]]))

    @cached_property
    def _intervals(self) -> tuple[Rows, Floats, Floats]:
        """How many points are left of each interval that is wider than rounding could make it, and its two ends."""
        ends = np.concatenate([[0.0], self.points, [1.0]])
        inside = np.flatnonzero(np.diff(ends) > LEAST_WIDTH * ends[1:])
        return inside, ends[inside], ends[inside + 1]

    def _shares(self, query_weight: PerQuery) -> tuple[PerQuery, float]:
        """Each query's share of the mean, 0 where it is skipped, and the mean at ``start``."""
        counted = np.where(np.isnan(self.here), 0.0, query_weight)
        share = counted / counted.sum()
        return share, numerics.dot(np.nan_to_num(self.here), share)


def best_weights(segments: Iterable[QuerySteps], query_weights: Sequence[PerQuery], threads: int | None) -> list[Weights]:
    """The best weights on any of the segments, of which the first that is not beaten, for each of ``query_weights``."""
    values, weights = np.full(len(query_weights), -np.inf), [np.zeros(0)] * len(query_weights)
    with Pool(thread_count(threads)) as pool:
        for steps in segments:
            for i, found in enumerate(pool.map(steps.best, query_weights)):
                if found.value > values[i] + SAME_VALUE:
                    values[i], weights[i] = found.value, steps.weights(found.middle())
    return weights
