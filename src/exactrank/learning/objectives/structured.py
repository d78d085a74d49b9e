"""Structured losses: a margin that grows with what a ranking loses of the measure (Chapelle, Le & Smola 2007).

A ranking y of a query's documents has coefficients c(y), one per document, for which c(y) . s is largest if y is the ranking by
score, and loses delta(y) = measure(best ranking) - measure(y). With t the coefficients of a target ranking,

    convex     max_y delta(y) + (c(y) - t) . s,              t = c(y*), y* a perfect ranking            (1), their (7)
    ramp       the same,                                     t = c(the ranking by score)                (2), their (14)
    rescaled   max_y delta(y) (1 + (c(y) - t) . s),          t = c(y*)                                  (3), their section 6

All of them are at least delta of the ranking by score, and (2) is the least; but only (1) and (3) are convex. Where there are
several perfect rankings, documents of equal worth get a random order. The measures, and their most violated rankings y:

positional (nDCG, DCG, P, R, RBP)    c_i(y) = A(rank of i): "linear" max(k + 1 - r, 0) with k the cutoff, or else the longest list;
    "sqrt" 1 / sqrt(r) and "discount" the measure's own, both 0 beyond k; a power p of the first, max(1 - (r - 1) / k, 0)^p; or a table,
    0 beyond its end. The most violated ranking is an assignment of documents to positions.
AP    c from all pairs of a relevant document i and another j (Yue, Finley, Radlinski & Joachims 2007):

    c(y) . s = 1 / (R N) sum_ij +-(s_i - s_j),    + where y has i above j,    R relevant and N other documents            (4)

    Both kinds stay in order of score, and each other document has its best place among the relevant ones independently.
RR, Success    c as in (4). For each rank of the first relevant document the best ranking has the best others above it and the
    rest by score.

(3) is a quadratic assignment, hard to maximize. The search covers rankings that solve (1) with delta in other units, and the ranking by
score, and takes the largest product. What it finds is never more than (3), on small queries mostly equal to it, and still a
bound on delta of the ranking by score. But a plane through it need not lie below the loss that is found elsewhere: with
rescaled slacks the gap of the solvers is no certificate.

A query in which all rankings are worth the same contributes 0. Scores that are not finite, or so far apart that sums with them
overflow, have no loss: it is NaN.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arguments import check_kind, check_number
from exactrank._support.arrays import PerDocument, PerQuery
from exactrank._support.numerics import power
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Dataset
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.learning.objectives.bounded_gain import training_kernel
from exactrank.learning.objectives.losses import random_from
from exactrank.learning.objectives.score_space import read_measure
from exactrank.measures.base import Measure
from exactrank.measures.binary import AP, RR, Success
from exactrank.measures.evaluate import checked_scores
from exactrank.measures.families import Positional
from exactrank.models.architecture import Architecture, Theta

Shape = Literal["linear", "sqrt", "discount"]
Bound = Literal["convex", "ramp"]
Slack = Literal["margin", "rescaled"]

#: Worths beyond this could overflow in sums.
LARGEST_WORTH = 1e100


@dataclass(frozen=True)
class Structured:
    """(1), (2) or (3) negated, to be maximized; ``A`` belongs to positional measures, and ``seed`` draws among ties, from ``first`` on."""

    measure: Measure
    A: Shape | float | tuple[float, ...] = "linear"
    bound: Bound = "convex"
    slack: Slack = "margin"
    seed: int = 0
    first: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        read_measure(self)
        for name, allowed in (("bound", ("convex", "ramp")), ("slack", ("margin", "rescaled"))):
            if getattr(self, name) not in allowed:
                raise SettingError(f"{name}={getattr(self, name)!r} is not one of {', '.join(map(repr, allowed))}")
        if self.bound == "ramp" and self.slack == "rescaled":
            raise SettingError("slack='rescaled' has no ramp bound; use bound='convex', or slack='margin'")
        if self.seed < 0:
            raise SettingError(f"a seed must be at least 0, got {self.seed}")
        if isinstance(self.A, int | float):
            check_number("A", self.A, above=True)
        elif not isinstance(self.A, str):
            object.__setattr__(self, "A", _checked_table(self.A))
        elif self.A not in ("linear", "sqrt", "discount"):
            raise SettingError(f"A={self.A!r} is not one of 'linear', 'sqrt', 'discount', a power such as 0.5 or a table such as (3, 2, 1)")
        positional = isinstance(_separable(self.measure), Positional)
        if self.A != "linear" and not positional:
            raise SettingError(f"A belongs to positional measures, and {self.measure} is not one; leave it out")

    def on(self, data: RankingData) -> _core.StructuredLoss:
        separation, worths = self._oracle(data)
        targets = None
        if self.bound == "convex":  # a ranking by worth, whose ties are drawn
            targets = separation.coefficients(worths, data.indptr, random_from(self.first, self.seed, data.n_documents))
        return _core.StructuredLoss(separation, targets, self.slack == "rescaled")

    def for_part(self, query: int, document: int) -> "Structured":
        return replace(self, first=document)

    def unit(self, data: Dataset) -> float:
        """Return the change of c(y) . s if the score at the first rank rises by one: A(1); 1 for (4), if all scores of a kind rise."""
        return float(self._by_position(self.measure, data.longest)[0][0]) if isinstance(self.measure, Positional) else 1.0

    def towards(self, data: RankingData, scores: npt.ArrayLike) -> _core.StructuredLoss:
        """Return (1) on ``data``, with the ranking by ``scores``, one per row in the caller's order, as the target: it then equals (2).

        As a function of scores it is convex, and never less than (2): a step of the concave-convex procedure.
        """
        s = data.group(checked_scores(data, scores))
        if not np.all(np.isfinite(s)):
            raise DataError(f"scores hold {s[~np.isfinite(s)][0]}; give finite numbers")
        separation = self.separation(data)
        return _core.StructuredLoss(separation, separation.coefficients(s, data.indptr, None), self.slack == "rescaled")

    def separation(self, data: RankingData) -> _core.Separation:
        """Return the kernel that finds the most violated rankings of ``data``, and c of rankings by score."""
        return self._oracle(data)[0]

    def _oracle(self, data: RankingData) -> tuple[_core.Separation, PerDocument]:
        """Return the kernel that finds the most violated rankings of ``data``, and the worth of each document to the measure."""
        measure = _separable(self.measure)
        if isinstance(measure, Positional):
            kernel, grades = training_kernel(measure, data)
            worths = _core.worths(kernel, grades, data.indptr)
            if not np.all(np.abs(worths) < LARGEST_WORTH):
                raise DataError(
                    f"{measure}: the gain of grade {data.grade_range[1]:g} is too large for a margin; use gain='linear', or nDCG"
                )
            return _core.positional_separation(*self._by_position(measure, data.longest), worths, data.indptr), worths
        relevant = measure.usefulness(data.y)
        flags = relevant.astype(np.uint8)
        if isinstance(measure, AP):
            return _core.precision_separation(flags, data.indptr), relevant
        by_rank = np.asarray(measure.discounts(min(measure.cutoff, data.longest)), np.float64)
        return _core.first_relevant_separation(by_rank, flags, data.indptr), relevant

    def _by_position(self, measure: Positional, longest: int) -> tuple[PerDocument, PerDocument]:
        """Return A and the discounts, padded with 0 to the same length; ``longest`` is the size of the longest list."""
        k = min(measure.cutoff, longest)
        d = np.asarray(measure.discounts(k), np.float64)
        rises = np.flatnonzero(np.diff(d, append=0.0) > 0)
        if len(rises):
            rank = int(rises[0]) + 1
            raise IncompatibleError(
                f"{measure}: the discount rises after rank {rank}, where it is {d[rank - 1]:g}; it must never rise, nor be below 0"
            )
        ranks = np.arange(1, k + 1, dtype=np.float64)
        shapes = {"linear": k + 1 - ranks, "sqrt": 1 / np.sqrt(ranks), "discount": d}
        if isinstance(self.A, str | tuple):
            a = shapes[self.A] if isinstance(self.A, str) else np.array(self.A[:longest])
        else:
            a = power(shapes["linear"] / k, self.A)
        count = max(len(a), k)
        return np.pad(a, (0, count - len(a))), np.pad(d, (0, count - k))


@dataclass(frozen=True, eq=False)
class TowardsRanking:
    """The loss of ``structured`` with the ranking by the scores of ``architecture`` at ``theta`` as its target."""

    structured: Structured
    architecture: Architecture
    theta: Theta

    def on(self, data: RankingData) -> _core.StructuredLoss:
        scores = self.architecture.scores(self.theta, data.X)
        return self.structured.towards(data, data.ungroup(scores))


@dataclass(frozen=True, eq=False, repr=False)
class Separated:
    """The most violated rankings, which decide a loss, without query weights."""

    delta: PerQuery  #: their loss of the measure
    coefficients: PerDocument  #: their coefficients less the target's, in the caller's order
    losses: PerQuery

    def __repr__(self) -> str:
        return f"Separated({len(self.losses):,} queries, {len(self.coefficients):,} documents)"


def separate(data: RankingData, scores: npt.ArrayLike, structured: Structured, threads: int | None = None) -> Separated:
    """Return the most violated rankings at ``scores``, one per row in the caller's order.

    >>> from exactrank.measures.graded import NDCG
    >>> data = RankingData.from_arrays(None, [0, 1, 0], group=[3])
    >>> separated = separate(data, [0.0, 0.5, 0.25], Structured(NDCG(k=1)))
    >>> separated.delta, separated.coefficients, separated.losses
    (array([1.]), array([ 0., -1.,  1.]), array([0.75]))
    """
    check_data(data)
    check_kind("structured", structured, Structured, "a Structured, e.g. Structured(er.measures.NDCG(k=10))")
    s = data.group(checked_scores(data, scores))
    delta, difference, losses = structured.on(data).separate(s, data.indptr, thread_count(threads))
    if np.isnan(losses).any():
        at = int(np.flatnonzero(np.isnan(losses))[0])
        raise DataError(f"query {data.qid[at]}: scores must be finite, and not so far apart that sums with them overflow")
    return Separated(delta, data.ungroup(difference), losses)


def _checked_table(A: tuple[float, ...]) -> tuple[float, ...]:
    table = tuple(float(value) for value in A)
    if not table or not any(table):
        raise SettingError(f"A={A!r} is the same at all ranks; give a table such as (3, 2, 1)")
    for rank, (value, after) in enumerate(zip(table, (*table[1:], 0.0), strict=True), 1):
        if not np.isfinite(value) or value < after:
            raise SettingError(f"A is {value:g} at rank {rank} and {after:g} after it; give finite numbers of at least 0 that do not rise")
    return table


def _separable(measure: Measure) -> Positional | AP | RR | Success:
    """Return ``measure``, if its most violated rankings can be found."""
    if isinstance(measure, Positional) and measure.normalizer != "mean_ideal":
        return measure
    if isinstance(measure, RR | Success) or (isinstance(measure, AP) and measure.k is None):
        return measure
    supported = "nDCG, DCG, P, R, RBP, AP without cutoff, RR or Success"
    raise IncompatibleError(f"the most violated ranking for {measure} is not known here; use {supported}")
