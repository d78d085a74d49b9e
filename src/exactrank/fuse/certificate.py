"""How far the weights found can be from the best there are: branch and bound over triangles of weights.

A measure of the positional family, sum_r u_r d_r with falling discounts d, has an upper bound over a whole triangle of weights.
Scores are linear in the weights, so document j stands above document i in all of the triangle if it does so at its three
corners. A document's *best rank* is 1 + the number of documents certainly above it. With the usefulness levels
u_(1) > u_(2) > ... > u_(L) > u_(L+1) = 0,

    sum_r u_r d_r = sum_l (u_(l) - u_(l+1)) sum_{documents with u >= u_(l)} d(rank)                             (1)

and each inner sum is at most what it is when those documents, in order of best rank, take rank

    r_m = max(best rank_m, r_{m-1} + 1),                                                                        (2)

the earliest that no two share. The bound falls as triangles get smaller: where every order is certain it is the value.
The triangle with the largest bound is halved, again and again; that largest bound is at every moment an upper bound of the
measure over all weights.
"""

import heapq
from dataclasses import dataclass, field, replace

import numpy as np

from exactrank import _core
from exactrank.arrays import Boundaries, PerDocument, PerQuery
from exactrank.fuse.cells import Cell, halves, triangles
from exactrank.fuse.normalise import SystemScores
from exactrank.fuse.problem import Problem, Weights, weighted_sum
from exactrank.fuse.search import ascended
from exactrank.measures.bound import mean_over_queries
from exactrank.measures.families import Positional
from exactrank.threads import thread_count

DOCUMENTS = 200_000_000  #: to look at, over all triangles
LEAST_CELLS, MOST_CELLS = 50, 20_000
IN_CACHE = 1 << 13  #: documents


@dataclass(frozen=True)
class Certificate:
    """The measure is nowhere above ``upper``; ``lower`` is what was found."""

    lower: float
    upper: float
    cells: int  #: how many triangles were looked at

    @property
    def gap(self) -> float:
        """What the best weights can gain at most."""
        return self.upper - self.lower


def certified(problem: Problem, weights: Weights, *, tolerance: float, cells: int | None = None) -> tuple[Weights, Certificate]:
    """The weights, or better ones met on the way, and how far they can be from the best; after ``cells`` triangles at most."""
    most = affordable(problem) if cells is None else cells
    ceiling, even = Ceiling.of(problem), problem.data.weights
    best, value = weights, problem.value(weights, even)
    queue = [_Queued(-ceiling.over(triangle), number, triangle) for number, triangle in enumerate(triangles(problem.nonnegative))]
    heapq.heapify(queue)
    seen = len(queue)
    while -queue[0].key - value > tolerance and seen < most:
        triangle = heapq.heappop(queue).triangle
        centre = triangle.mean(axis=0)
        if problem.value(centre, even) > value:
            best = ascended(problem, centre, even)
            value = problem.value(best, even)
        for half in halves(triangle):
            heapq.heappush(queue, _Queued(-ceiling.over(half), seen, half))
            seen += 1
    return best, Certificate(value, max(value, -queue[0].key), seen)


def affordable(problem: Problem) -> int:
    """As many triangles as take some seconds, by the number of documents that matter."""
    return int(np.clip(DOCUMENTS // max(1, problem.data.n_documents), LEAST_CELLS, MOST_CELLS))


def certifiable(problem: Problem) -> bool:
    """Does the bound hold for this measure? Rounding to single precision (ties='docid') could undo a certain order."""
    measure = problem.measure
    if not isinstance(measure, Positional) or measure.normaliser == "mean_ideal" or measure.ties == "docid":
        return False
    discounts, useful = _discounts(problem), measure.usefulness(problem.data.y)
    return bool(np.all(np.diff(discounts) <= 0) and np.all(discounts >= 0) and np.all(useful >= 0))


@dataclass(frozen=True, eq=False)
class Ceiling:
    """The upper bound of a problem's mean over a triangle of weights."""

    problem: Problem
    values: SystemScores  #: of the documents that are ranked
    indptr: Boundaries
    useful: PerDocument
    discounts: PerDocument
    ideal_sum: PerQuery  #: of (1)
    ideal_value: PerQuery  #: of the measure; NaN where a query is skipped
    at_corners: SystemScores  #: room for the scores at the corners: made once, since fresh memory is slow

    @classmethod
    def of(cls, problem: Problem) -> "Ceiling":
        """What all triangles share."""
        measure, rows = problem.measure, np.flatnonzero(problem.ranked)
        if not isinstance(measure, Positional):
            raise TypeError(f"{measure} is not positional")
        useful, discounts = measure.usefulness(problem.data.y), _discounts(problem)
        ideal_value = replace(measure, ties="input").on(problem.data, threads=problem.threads).values(useful)
        ideal_sum = _ideal_sums(useful, problem.data.indptr, discounts)
        indptr = np.searchsorted(rows, problem.data.indptr)
        return cls(problem, problem.values[:, rows], indptr, useful[rows], discounts, ideal_sum, ideal_value, np.empty((3, len(rows))))

    def over(self, triangle: Cell) -> float:
        """No weights in the triangle have a larger mean."""
        for first in range(0, len(self.useful), IN_CACHE):
            some = np.s_[:, first : first + IN_CACHE]
            for scores, corner in zip(self.at_corners[some], triangle, strict=True):
                scores[:] = weighted_sum(corner, self.values[some])
        sums = _core.optimistic(self.at_corners, self.indptr, self.useful, self.discounts, thread_count(self.problem.threads))
        share = np.divide(sums, self.ideal_sum, out=np.ones_like(sums), where=self.ideal_sum > 0)
        return mean_over_queries(share * self.ideal_value, self.problem.data.weights)


def _discounts(problem: Problem) -> PerDocument:
    measure, longest = problem.measure, problem.data.longest
    return measure.discounts(min(measure.cutoff, longest)) if isinstance(measure, Positional) else np.zeros(0)


def _ideal_sums(useful: PerDocument, indptr: Boundaries, discounts: PerDocument) -> PerQuery:
    """The largest (1) that any order has."""
    rows = np.flatnonzero(useful > 0)
    query = np.searchsorted(indptr, rows, "right") - 1
    order = np.lexsort((-useful[rows], query))
    rows, query = rows[order], query[order]
    counts = np.bincount(query, minlength=len(indptr) - 1)
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    seen = rank < len(discounts)
    worth = useful[rows[seen]] * discounts[rank[seen]]
    return np.bincount(query[seen], worth, minlength=len(indptr) - 1).astype(np.float64)


@dataclass(frozen=True, order=True)
class _Queued:
    key: float  #: minus the bound, so that the largest bound comes first
    number: int
    triangle: Cell = field(compare=False)
