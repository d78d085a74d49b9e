"""The measure as a function of the systems' weights, and its exact values along segments of weights.

With x_j the comparable scores of system j, a document's fused score is

    s = sum_j w_j x_j,   w >= 0 and sum w = 1,   or of any sign and sum |w| = 1                                 (1)

since a positive factor changes no ranking. From weights u to weights v the scores move along a ray,

    s(alpha) = s(u) + alpha (s(v) - s(u)),   0 <= alpha <= 1,                                                   (2)

so the measure is a step function of alpha, known exactly (`exactrank.learning.objectives.profile`). The step functions of single queries
can be kept apart, so that they can be weighted again:

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
from exactrank._support.arrays import Floats, PerDocument, PerQuery, Rows
from exactrank._support.threads import Pool, thread_count
from exactrank.data.ranking_data import RankingData
from exactrank.fusion.normalize import Retrieved, SystemScores
from exactrank.learning.objectives.constrained import constrain
from exactrank.learning.objectives.line_search import LineSearch, check_pairs
from exactrank.learning.objectives.profile import ray_of
from exactrank.learning.objectives.step_function import LEAST_WIDTH, SAME_VALUE, Interval, StepFunction
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure, mean_over_queries
from exactrank.measures.corrected_queries import CorrectedQueries
from exactrank.measures.goal import Constraint
from exactrank.measures.machine_grades import CorrectedMean

Weights = npt.NDArray[np.float64]  #: one per system
Combine = Callable[[Weights, SystemScores], PerDocument]  #: systems' scores to fused ones
Cell = npt.NDArray[np.float64]  #: a part of the weights, corners x systems; what holds at all its corners holds in all of it, by (1)


def all_weights(systems: int, nonnegative: bool) -> list[Cell]:
    """Return the weights of two systems as a segment or the sides of a square, of three as a triangle or the faces of an octahedron.

    >>> [cell.tolist() for cell in all_weights(2, nonnegative=True)]
    [[[1.0, 0.0], [0.0, 1.0]]]
    """
    if systems == 2:
        around = [np.array(corner) for corner in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (1.0, 0.0))]
        return [np.stack(ends) for ends in pairwise(around[:2] if nonnegative else around)]
    signs = [(1.0, 1.0, 1.0)] if nonnegative else product((1.0, -1.0), repeat=3)
    return [np.diag(sign) for sign in signs] if systems == 3 else []


def halves(cell: Cell) -> list[Cell]:
    """Divide a cell in two at the middle of its longest edge.

    >>> [half.tolist() for half in halves(np.eye(2))]
    [[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.0, 1.0]]]
    """
    i, j = max(combinations(range(len(cell)), 2), key=lambda edge: numerics.norm(cell[edge[0]] - cell[edge[1]]))
    parts = cell.copy(), cell.copy()
    parts[0][j] = parts[1][i] = (cell[i] + cell[j]) / 2
    return list(parts)


def weighted_sum(weights: Weights, values: SystemScores) -> PerDocument:
    """Return sum_j w_j x_j, added in the same order for each document: a matrix product may round equal documents differently."""
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
        """Return the weights at ``alpha``."""
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
    """The tuning of a measure of the weighted sum of ``values``, where ``ranked``, on the queries of ``data``."""

    measure: Measure
    data: RankingData  #: in its own order, without features
    values: SystemScores
    ranked: Retrieved
    nonnegative: bool = True
    threads: int | None = None
    combine: Combine = weighted_sum  #: of the scores that are measured; sweeps are of (1) in double precision
    limits: "tuple[tuple[FusionProblem, Constraint], ...]" = ()  #: other measures of the same systems, with their constraints
    corrected: CorrectedQueries | None = None  #: which queries people and a machine have graded; None without a machine
    machine_weight: float = 0.0  #: of its grades

    @property
    def systems(self) -> int:
        """The number of systems."""
        return len(self.values)

    @cached_property
    def bound(self) -> BoundMeasure:
        """The measure on the data."""
        return self.measure.on(self.data, threads=self.threads)

    @cached_property
    def is_skipped(self) -> npt.NDArray[np.bool_]:
        """A mask of the queries that the measure skips."""
        return np.isnan(self.per_query(np.full(self.systems, 1 / self.systems)))

    def has_queries(self, query_weight: PerQuery) -> bool:
        """Return whether there is a query to tune on."""
        return bool(np.any(query_weight[~self.is_skipped]))

    def query_weights(self, counts: npt.NDArray[np.float64] | npt.NDArray[np.bool_] | float = 1.0) -> PerQuery:
        """Return the weight of each query, if it is drawn ``counts`` times; signed if a machine's grades correct the mean."""
        weight = self.data.weights * counts
        return weight if self.corrected is None else self.corrected.weights(self.machine_weight, weight, self.is_skipped)

    def mean(self, values: PerQuery) -> float:
        """Return the mean of the queries' ``values``; NaN is left out."""
        return mean_over_queries(values, self.query_weights(~np.isnan(values)))

    def with_best_machine_weight(self, weights: Weights) -> "FusionProblem":
        """Return the problem with the machine weight of the least variance at ``weights``."""
        return replace(self, machine_weight=self.corrected_mean(self.per_query(weights)).machine_weight)

    def corrected_mean(self, values: PerQuery, machine_weight: float | None = None) -> CorrectedMean:
        """Return the corrected mean of the queries' ``values``, with the best machine weight unless another is given."""
        assert self.corrected is not None
        return self.corrected.mean(values, self.data.weights, machine_weight)

    def part(self, queries: Rows) -> "FusionProblem":
        """Return the problem of some of the queries."""
        data = self.data.take_queries(queries)
        rows = np.repeat(self.data.indptr[queries] - data.indptr[:-1], data.sizes) + np.arange(data.n_documents)
        limits = tuple((limit.part(queries), constraint) for limit, constraint in self.limits)
        return replace(self, data=data, values=self.values[:, rows], ranked=self.ranked[rows], limits=limits)

    def with_combine(self, combine: Combine) -> "FusionProblem":
        """Return the problem with scores that are combined in another way."""
        limits = tuple((limit.with_combine(combine), constraint) for limit, constraint in self.limits)
        return replace(self, combine=combine, limits=limits)

    def scores(self, weights: Weights) -> PerDocument:
        """Return the scores (1) by ``combine``, -inf for documents that are not ranked."""
        return np.where(self.ranked, self.combine(weights, self.values), -np.inf)

    def per_query(self, weights: Weights) -> PerQuery:
        """Return the measure of each query, NaN if it is skipped."""
        return self.bound.values(self.scores(weights))

    def value(self, weights: Weights, query_weight: PerQuery) -> float:
        """Return the measure's mean over queries, or minus the shortfall if ``limits`` are violated."""
        shortfall = math.fsum(constraint.shortfall(limit.value(weights, query_weight)) for limit, constraint in self.limits)
        return -shortfall if shortfall > 0 else mean_over_queries(self.per_query(weights), query_weight)

    def ray(self, start: Weights, end: Weights) -> tuple[PerDocument, PerDocument]:
        """Return the scores at ``start`` and their direction towards ``end``, (2)."""
        scores, direction = weighted_sum(start, self.values), weighted_sum(end - start, self.values)
        return np.where(self.ranked, scores, -np.inf), np.where(self.ranked, direction, 0.0)

    def sweep(self, start: Weights, end: Weights, query_weight: PerQuery) -> Sweep:
        """Return the measure on the segment from ``start`` to ``end``, (2)."""
        scores, direction = ray_of(self.data, *self.ray(start, end))
        search = LineSearch(replace(self.bound, weights=query_weight))
        search.start(scores)
        steps = search.profile(direction, 0.0, 1.0).part(0.0, 1.0)
        limits = [(limit.sweep(start, end, query_weight).steps, constraint) for limit, constraint in self.limits]
        return Sweep(start, end, constrain(steps, limits) if limits else steps)


@dataclass(frozen=True, eq=False)
class QuerySteps(Segment):
    """The step function of each query on a segment, (3)."""

    start_values: PerQuery  #: the values at ``start``, NaN if a query is skipped
    points: Floats  #: of the jumps, rising
    to_point: Floats  #: the jump from left of the point to it
    across: Floats  #: the jump from left of the point to right of it
    query: Rows  #: the query of the jump
    limits: "tuple[tuple[QuerySteps, Constraint], ...]" = ()

    @classmethod
    def of(cls, problem: FusionProblem, start: Weights, end: Weights) -> "QuerySteps":
        """Sweep all queries."""
        bound = problem.measure.on(problem.data)
        check_pairs(bound)
        ray = ray_of(problem.data, *problem.ray(start, end))
        points, to, beyond, counts, start_values = _core.query_jumps(bound.native, *ray, 0.0, 1.0, thread_count(problem.threads))
        jumps = np.flatnonzero((np.abs(to) > SAME_VALUE) | (np.abs(beyond) > SAME_VALUE))  # the rest is rounding
        order = jumps[np.argsort(points[jumps], kind="stable")]
        query = np.repeat(np.arange(problem.data.n_queries), counts)
        limits = tuple((cls.of(limit, start, end), constraint) for limit, constraint in problem.limits)
        return cls(start, end, start_values, points[order], to[order], (to + beyond)[order], query[order], limits)

    def sweep(self, query_weight: PerQuery) -> Sweep:
        """Return (4), with a breakpoint wherever a query that counts has one."""
        share, start_value = self._shares(query_weight)
        counting = np.flatnonzero(share[self.query])
        points, shares = self.points[counting], share[self.query[counting]]
        running = start_value + np.append(0.0, np.cumsum(shares * self.across[counting]))
        first = np.flatnonzero(np.append(True, points[1:] != points[:-1])[: len(points)])  # of the jumps at one point
        values = np.append(running[first], running[-1])
        reached = np.add.reduceat(shares * self.to_point[counting], first) if len(first) else np.zeros(0)
        steps = StepFunction(points[first], values, values[:-1] + reached)
        limits = [(limit.sweep(query_weight).steps, constraint) for limit, constraint in self.limits]
        return Sweep(self.start, self.end, constrain(steps, limits) if limits else steps)

    def best(self, query_weight: PerQuery) -> Interval:
        """Return the widest interval where (4) is largest; neighbors of the same value count as one interval."""
        if self.limits:
            return self.sweep(query_weight).best
        share, start_value = self._shares(query_weight)
        running = np.append(0.0, np.cumsum(share[self.query] * self.across))
        inside, low, high = self._intervals
        values = running[inside]
        near = np.concatenate([[False], values >= values.max() - SAME_VALUE, [False]])
        first, last = np.flatnonzero(near[1:] & ~near[:-1]), np.flatnonzero(near[:-1] & ~near[1:]) - 1
        widest = int(np.argmax(high[last] - low[first]))
        return Interval(float(low[first[widest]]), float(high[last[widest]]), start_value + float(values[first[widest]]))

    @cached_property
    def _intervals(self) -> tuple[Rows, Floats, Floats]:
        """The number of points left of each interval that is wider than a rounding error, and its two ends."""
        ends = np.concatenate([[0.0], self.points, [1.0]])
        inside = np.flatnonzero(np.diff(ends) > LEAST_WIDTH * ends[1:])
        return inside, ends[inside], ends[inside + 1]

    def _shares(self, query_weight: PerQuery) -> tuple[PerQuery, float]:
        """Return each query's share of the mean, 0 if it is skipped, and the mean at ``start``."""
        counted = np.where(np.isnan(self.start_values), 0.0, query_weight)
        share = counted / counted.sum()
        return share, numerics.dot(np.nan_to_num(self.start_values), share)


def best_weights(segments: Iterable[QuerySteps], query_weights: Sequence[PerQuery], threads: int | None) -> list[Weights]:
    """Return the best weights on any of the segments, the first of equals, for each of ``query_weights``."""
    values, weights = np.full(len(query_weights), -np.inf), [np.zeros(0)] * len(query_weights)
    with Pool(thread_count(threads)) as pool:
        for steps in segments:
            for i, interval in enumerate(pool.map(steps.best, query_weights)):
                if interval.value > values[i] + SAME_VALUE:
                    values[i], weights[i] = interval.value, steps.weights(interval.middle())
    return weights
