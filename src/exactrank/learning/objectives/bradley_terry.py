"""Grades from pairs: the strengths of documents that explain best who was preferred to whom (Zermelo 1929; Bradley & Terry 1952).

A document of strength s_i is preferred to one of strength s_j with probability 1 / (1 + e^(s_j - s_i)). In each query, over the pairs that
are given, each by its weight w, and those of different grades, each with weight 1,

    maximize over s  -sum over pairs of w_ij log(1 + e^(s_j - s_i))  -  prior/2 |s|^2                            (1)

which is RankNet's objective with a score for each document instead of a model, and a normal prior. The prior keeps the strengths of
undefeated documents finite, and those of groups without a pair between them comparable: the mean strength of each query is 0, and so is
the strength of a document without pairs. (1) is strictly concave, and solved by Newton's method, whose steps come from conjugate gradients
(Hestenes & Stiefel 1952): each of their iterations is one pass over the pairs. All groups of documents that pairs connect are solved side
by side, each with steps of its own. The standard errors are the square roots of the diagonal of the inverse curvature; that costs the cube
of a group's documents, and is done when they are first asked for. The grade of a document is

    scale / (1 + e^-s_i),                                                                                       (2)

``scale`` times the probability that it is preferred to an average document of its query.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from exactrank._support.arguments import check_number
from exactrank._support.arrays import PerDocument, Rows
from exactrank._support.numerics import cholesky, exp, log1p, solve_lower
from exactrank._support.tables import Tabular, Values
from exactrank.data.preferences import Preferences
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError
from exactrank.measures.base import Measure

STEPS = 100  #: of Newton's method; it takes about ten
SOLVED = 1e-6  #: the residual of a Newton step, relative to the slope
CONVERGED = 1e-10  #: the largest change of a strength in the last step
ROUNDING = 1e-12  #: a smaller relative change of (1) is a rounding error
LARGEST_WEIGHT = 1e100  #: of a pair; squares of sums must not overflow


@dataclass(frozen=True, eq=False, repr=False)
class Strengths(Tabular):
    """The strengths that `bradley_terry` fits: one row per document, in the caller's order."""

    judged: RankingData  #: without its pairs, its grades those of (2)
    strength: PerDocument  #: of (1), 0 for an average document of the query
    _contest: "_Contest" = field(repr=False)

    @cached_property
    def error(self) -> PerDocument:
        """The standard error of each strength."""
        return self.judged.ungroup(self._contest.errors(self.judged.group(self.strength)))

    @property
    def grades(self) -> PerDocument:
        """The grade (2) of each row."""
        return self.judged.ungroup(self.judged.y)

    def __repr__(self) -> str:
        return f"Strengths({self.judged.n_queries:,} queries, {len(self.strength):,} documents)"

    def _columns(self) -> dict[str, Values]:
        parts = {name: values for name, values in self.judged._columns().items() if name in ("query_id", "doc_id")}
        return {**parts, "strength": self.strength, "error": self.error, "grade": self.grades}


def bradley_terry(data: RankingData, *, prior: float = 0.1, scale: float = 4.0) -> Strengths:
    """Fit (1) to the pairs of ``data`` and to its grades where they differ; ``.judged`` is the data with grades (2), for any ranker.

    ``prior`` is the precision of the prior on strengths: the larger it is, the closer to 0 they stay.

    >>> from exactrank.pairs import with_pairs
    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 0, 0], group=[3])
    >>> strengths = bradley_terry(with_pairs(data, {"better": [1, 1], "worse": [0, 0]}))
    >>> strengths.strength.round(2).tolist(), strengths.grades.round(2).tolist()
    ([-1.32, 1.32, 0.0], [0.84, 3.16, 2.0])
    """
    check_data(data)
    for name, value in (("prior", prior), ("scale", scale)):
        check_number(name, value, above=True)
    if data.preferences is None:
        raise DataError("the data has no pairs to derive grades from; give it some with er.pairs.with_pairs or er.pairs.read_pairs")
    heavy = np.flatnonzero(data.preferences.weight > LARGEST_WEIGHT)
    if len(heavy):
        weight = data.preferences.weight[heavy[0]]
        raise DataError(f"the weight of pair {heavy[0]} is {weight:g}; give weights of at most {LARGEST_WEIGHT:g}")
    contest = _Contest.of(data, data.preferences, prior)
    strength = contest.maximize()
    judged = replace(data, y=scale / (1 + exp(-strength)), preferences=None)
    return Strengths(judged, data.ungroup(strength), contest)


def grades_for(measure: Measure, data: RankingData) -> tuple[PerDocument, bool]:
    """Return the grades that ``measure`` reads, or (2) if it counts pairs of the data; and True if it is (2)."""
    from_pairs = measure.counts_pairs and data.preferences is not None
    return bradley_terry(data).judged.y if from_pairs else measure.grades(data), from_pairs


@dataclass(frozen=True, eq=False)
class _Contest:
    """(1) of all queries at once, over a list of pairs; ``group`` is the number of each document's connected group."""

    better: Rows
    worse: Rows
    weight: PerDocument
    group: Rows
    prior: float

    @classmethod
    def of(cls, data: RankingData, preferences: Preferences, prior: float) -> "_Contest":
        """Return (1) for the pairs of ``preferences`` and those of different grades."""
        graded = [_by_grades(data.y[first:last]) + first for first, last in zip(data.indptr[:-1], data.indptr[1:], strict=True)]
        better, worse = np.concatenate([np.stack([preferences.better, preferences.worse]), *graded], axis=1)
        weight = np.append(preferences.weight, np.ones(len(better) - len(preferences)))
        links = coo_array((np.ones(len(better), bool), (better, worse)), (data.n_documents, data.n_documents))
        return cls(better, worse, weight, connected_components(links, directed=False)[1].astype(np.int64), prior)

    def maximize(self) -> PerDocument:
        """Return the maximum of (1), by Newton's method from 0; a group that has converged stays as it is."""
        s, moving = np.zeros(len(self.group)), np.ones(int(self.group.max()) + 1, bool)
        for _ in range(STEPS):
            lost, pull = self._odds(s)
            slope = np.where(moving[self.group], self._sums(lost, -lost) - self.prior * s, 0.0)
            step = self._newton_step(pull, slope)
            step *= self._sizes(s, step)[self.group]
            s += step
            moving[:] = False
            moving[self.group[np.abs(step) > CONVERGED]] = True
            if not moving.any():
                break
        return s

    def errors(self, s: PerDocument) -> PerDocument:
        """Return the standard errors of the maximum ``s``, one group after the other."""
        pull = self._odds(s)[1]
        curvature = self.prior + self._sums(pull, pull)
        variance, place = 1 / curvature, np.empty(len(s), np.int64)  # of documents without pairs
        members, pairs = _by_number(self.group), _by_number(self.group[self.better])
        for rows, pair_numbers in zip((rows for rows in members if len(rows) > 1), pairs, strict=True):
            place[rows] = np.arange(len(rows))
            dense = np.diag(curvature[rows])
            lower, upper = np.sort([place[self.better[pair_numbers]], place[self.worse[pair_numbers]]], axis=0)
            np.subtract.at(dense, (upper, lower), pull[pair_numbers])  # only the lower half is read
            variance[rows] = (solve_lower(cholesky(dense), np.eye(len(rows))) ** 2).sum(axis=0)
        return np.sqrt(variance)

    def _odds(self, s: PerDocument) -> tuple[PerDocument, PerDocument]:
        """Return the slope and the curvature of each pair: w p and w p (1 - p), p the probability of the opposite preference."""
        opposite = 1 / (1 + exp(s[self.better] - s[self.worse]))
        return self.weight * opposite, self.weight * opposite * (1 - opposite)

    def _sums(self, better: PerDocument, worse: PerDocument) -> PerDocument:
        """Return the sum over the pairs of each document: of ``better`` if it is the better document, of ``worse`` otherwise."""
        n = len(self.group)
        return np.asarray(np.bincount(self.better, better, n) + np.bincount(self.worse, worse, n), np.float64)

    def _newton_step(self, pull: PerDocument, slope: PerDocument) -> PerDocument:
        """Return Newton's step, by conjugate gradients with the diagonal as preconditioner, to a residual of ``SOLVED``."""
        diagonal = self.prior + self._sums(pull, pull)
        step, residual = np.zeros_like(slope), slope.copy()
        direction = residual / diagonal
        size = first = self._totals(residual * direction)
        for _ in range(10 * len(slope)):
            unsolved = size > SOLVED * SOLVED * first
            if not unsolved.any():
                break
            product = diagonal * direction - self._sums(pull * direction[self.worse], pull * direction[self.better])
            length = np.where(unsolved, size, 0.0) / np.where(unsolved, self._totals(direction * product), 1.0)
            step += length[self.group] * direction
            residual -= length[self.group] * product
            before, size = size, np.where(unsolved, self._totals(residual * residual / diagonal), 0.0)
            direction = residual / diagonal + (size / np.where(unsolved, before, 1.0))[self.group] * direction
        return step

    def _sizes(self, s: PerDocument, step: PerDocument) -> PerDocument:
        """Return the share of ``step`` that each group takes: halved until (1) does not fall."""
        goodness = self._goodness(s)
        size = np.ones(len(goodness))
        for _ in range(STEPS):
            falls = self._goodness(s + size[self.group] * step) < goodness - ROUNDING * np.abs(goodness)
            if not falls.any():
                break
            size[falls] /= 2
        return size

    def _goodness(self, s: PerDocument) -> PerDocument:
        """Return (1) of each group."""
        behind = s[self.worse] - s[self.better]
        cost = self.weight * (np.maximum(behind, 0.0) + log1p(exp(-np.abs(behind))))
        return -np.bincount(self.group[self.better], cost, int(self.group.max()) + 1) - self.prior / 2 * self._totals(s * s)

    def _totals(self, values: PerDocument) -> PerDocument:
        return np.asarray(np.bincount(self.group, values), np.float64)


def _by_grades(y: PerDocument) -> Rows:
    """Return the pairs of a query whose grades differ, better above worse."""
    return np.stack(np.nonzero(y[:, None] > y[None, :])) if np.any(y != y[0]) else np.empty((2, 0), np.int64)


def _by_number(numbers: Rows) -> list[Rows]:
    """Return the indices of equal ``numbers``, from the smallest number to the largest."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(order) else []
