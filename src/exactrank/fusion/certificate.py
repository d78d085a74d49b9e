"""A certificate of the distance from the optimum: branch and bound over triangles of weights.

A measure of the positional family, sum_r u_r d_r with falling discounts d, has an upper bound over a whole triangle of weights.
Scores are linear in the weights, so document j is above document i everywhere in the triangle if it is at its three
corners. A document's *best rank* is 1 + the number of documents certainly above it. With the usefulness levels
u_(1) > u_(2) > ... > u_(L) > u_(L+1) = 0,

    sum_r u_r d_r = sum_l (u_(l) - u_(l+1)) sum_{documents with u >= u_(l)} d(rank)                             (1)

and each inner sum is at most what it is when those documents, in order of best rank, take rank

    r_m = max(best rank_m, r_{m-1} + 1),                                                                        (2)

the earliest that no two share. The bound falls as triangles get smaller, and equals the value once every order is certain. The triangle
with the largest bound is halved, again and again; at every moment that largest bound is an upper bound of the measure over all weights.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from exactrank import _core
from exactrank._support.threads import thread_count
from exactrank.fusion.problem import Cell, FusionProblem, Weights, all_weights, halves, weighted_sum
from exactrank.fusion.search import ascend
from exactrank.measures.bound import mean_over_queries
from exactrank.measures.families import Positional

DOCUMENTS = 200_000_000  #: number to examine, over all triangles
LEAST_CELLS, MOST_CELLS = 50, 20_000
IN_CACHE = 1 << 13  #: documents


@dataclass(frozen=True)
class Certificate:
    """Bounds of the best value of the measure: no weights exceed ``upper``, and some reach ``lower``."""

    lower: float
    upper: float
    cells: int  #: number of triangles that were examined

    @property
    def gap(self) -> float:
        """The largest possible gain of the best weights."""
        return self.upper - self.lower


def certifiable(problem: FusionProblem) -> bool:
    """Return whether the bound holds for this measure; rounding to single precision (ties='docid') could reverse a certain order."""
    measure = problem.measure
    if (
        problem.corrected is not None
        or not isinstance(measure, Positional)
        or measure.normalizer == "mean_ideal"
        or measure.ties == "docid"
    ):
        return False
    discounts, useful = measure.discounts(min(measure.cutoff, problem.data.longest)), measure.usefulness(problem.data.y)
    return bool(np.all(np.diff(discounts) <= 0) and np.all(discounts >= 0) and np.all(useful >= 0))


def certify(problem: FusionProblem, weights: Weights, *, tolerance: float, cells: int | None = None) -> tuple[Weights, Certificate]:
    """Return the weights, or better ones if the search meets them, with their certificate.

    It stops after ``cells`` triangles, by default after a few seconds, given the number of documents that matter.
    """
    limit = int(np.clip(DOCUMENTS // max(1, problem.data.n_documents), LEAST_CELLS, MOST_CELLS)) if cells is None else cells
    bound, even = upper_bound(problem), problem.data.weights
    best, value = weights, problem.value(weights, even)
    # The largest bound comes first, and among equal bounds the earliest triangle.
    queue = [(-bound(triangle), number, triangle) for number, triangle in enumerate(all_weights(3, problem.nonnegative))]
    heapq.heapify(queue)
    examined = len(queue)
    while -queue[0][0] - value > tolerance and examined < limit:
        triangle = heapq.heappop(queue)[2]
        center = triangle.mean(axis=0)
        if problem.value(center, even) > value:
            best = ascend(problem, center, even)
            value = problem.value(best, even)
        for half in halves(triangle):
            heapq.heappush(queue, (-bound(half), examined, half))
            examined += 1
    return best, Certificate(value, max(value, -queue[0][0]), examined)


def upper_bound(problem: FusionProblem) -> Callable[[Cell], float]:
    """Return a function that bounds the mean of the measure over a triangle of weights from above."""
    measure, indptr, rows = problem.measure, problem.data.indptr, np.flatnonzero(problem.ranked)
    if not isinstance(measure, Positional):
        raise TypeError(f"{measure} is not positional")
    useful, discounts = measure.usefulness(problem.data.y), measure.discounts(min(measure.cutoff, problem.data.longest))
    ideal_value = replace(measure, ties="input").on(problem.data, threads=problem.threads).values(useful)  # NaN: skipped
    # The largest sum (1) of any order of each query.
    relevant = np.flatnonzero(useful > 0)
    query = np.searchsorted(indptr, relevant, "right") - 1
    order = np.lexsort((-useful[relevant], query))
    relevant, query = relevant[order], query[order]
    counts = np.bincount(query, minlength=len(indptr) - 1)
    rank = np.arange(len(relevant)) - np.repeat(np.cumsum(counts) - counts, counts)
    counted = rank < len(discounts)
    terms = useful[relevant[counted]] * discounts[rank[counted]]
    ideal_sum = np.bincount(query[counted], terms, minlength=len(indptr) - 1).astype(np.float64)

    values, useful, indptr = problem.values[:, rows], useful[rows], np.searchsorted(rows, indptr)
    at_corners = np.empty((3, len(rows)))  # allocated once, since fresh memory is slow

    def bound(triangle: Cell) -> float:
        for first in range(0, len(rows), IN_CACHE):
            block = np.s_[:, first : first + IN_CACHE]
            for scores, corner in zip(at_corners[block], triangle, strict=True):
                scores[:] = weighted_sum(corner, values[block])
        sums = _core.optimistic(at_corners, indptr, useful, discounts, thread_count(problem.threads))
        share = np.divide(sums, ideal_sum, out=np.ones_like(sums), where=ideal_sum > 0)
        return mean_over_queries(share * ideal_value, problem.data.weights)

    return bound
