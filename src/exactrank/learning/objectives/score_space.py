"""Objectives as functions of scores: what is asked of one, whatever made the scores.

An objective is a frozen value; ``on(data)`` binds it to the grades and boundaries of some data. Its value is a sum over
queries and is maximized; a lambda function has a slope whether or not there is a function of which it is the slope
(Burges, Ragno & Le 2006, section 4). An objective that looks at pairs of documents says how many, and a high cost is announced before the
work begins.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol, runtime_checkable

import numpy.typing as npt

from exactrank import _core
from exactrank._support.arguments import check_number, wrong_kind
from exactrank._support.arrays import PerDocument, PerQuery
from exactrank._support.tables import Tabular, Values
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Dataset, EachPart, Part
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.measures.evaluate import checked_scores
from exactrank.measures.parse import parse_measure

#: Passes over more pairs than this are announced.
MANY_PAIRS = 2e9
SECONDS_PER_PAIR = 5e-9  #: about, on one thread


@runtime_checkable
class Objective(Protocol):
    """Something to maximize by moving scores. If its slope is not that of its value, it says ``conservative = False``."""

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""


def read_measure(objective: object) -> None:
    """Replace the measure of an objective that is being made, where it is given as text, by what that text names."""
    object.__setattr__(objective, "measure", parse_measure(vars(objective)["measure"]))


@dataclass(frozen=True, kw_only=True)
class LambdaForces:
    """The base of lambda functions: forces between documents, each less ``score_l2`` times the document's score.

    That is the diagonal term of Burges, Ragno & Le (2006, section 4): if it is large enough, forces that are the slope of a cost are then
    that of a convex one (`exactrank.inspect.forces`). They no longer sum to zero.
    """

    score_l2: float = 0.0

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``; half of ``score_l2`` times the sum of squared scores is subtracted from the value."""
        check_number("score_l2", self.score_l2)
        forces = self.forces_on(data)
        return _core.diagonal(forces, self.score_l2) if self.score_l2 else forces

    @abstractmethod
    def forces_on(self, data: RankingData) -> _core.Objective:
        """The forces between the documents of ``data`` alone."""


@runtime_checkable
class Sampled(Objective, Protocol):
    """An objective that depends on random draws."""

    def with_draws(self, number: int) -> Objective:
        """Itself with the draws of that number."""


@runtime_checkable
class Numbered(Objective, Protocol):
    """An objective whose draws depend on the number of a query or document in the whole."""

    def for_part(self, query: int, document: int) -> Objective:
        """Itself for a part of the whole, whose first query and document have these numbers there."""


def is_conservative(objective: Objective) -> bool:
    """Is its slope that of its value? Those of forces between documents need not be, nor those of what is drawn at random."""
    return bool(getattr(objective, "conservative", True)) and not isinstance(objective, Sampled)


def by_query(answer: Callable[[int, PerDocument], tuple[float, PerDocument, PerDocument]]) -> _core.Objective:
    """What ``on`` may give where Python computes: ``answer`` gets a query's number and scores, gives value, slope and curvature."""
    return _core.called(answer)


@dataclass(frozen=True, eq=False, repr=False)
class Slopes(Tabular):
    """What an objective says of scores, each query times its weight."""

    values: PerQuery
    slope: PerDocument  #: the derivative of the value by each score
    curvature: PerDocument  #: how fast that falls as the score alone rises

    def __repr__(self) -> str:
        return f"Slopes({len(self.values):,} queries, {len(self.slope):,} documents)"

    def _columns(self) -> dict[str, Values]:
        return {"slope": self.slope, "curvature": self.curvature}


def slopes(data: RankingData, scores: npt.ArrayLike, objective: Objective, threads: int | None = None) -> Slopes:
    """The value, slope and curvature of ``objective`` at ``scores``, one per row in the caller's order.

    >>> from exactrank.learning.objectives.lambdas import Lambdas
    >>> data = RankingData.from_arrays(None, [0, 1], group=[2])
    >>> slopes(data, [0.0, 0.0], Lambdas()).slope
    array([-0.5,  0.5])
    """
    check_data(data)
    if not hasattr(objective, "on"):
        raise wrong_kind("objective", objective, "a lambda function or a loss, e.g. Lambdas(measure=er.measures.NDCG(k=10))")
    s = data.group(checked_scores(data, scores))
    weight = data.weights
    values, slope, curvature = _core.answers(objective.on(data), s, data.indptr, weight, True, True, thread_count(threads))
    return Slopes(values, data.ungroup(slope), data.ungroup(curvature))


@runtime_checkable
class Pairwise(Protocol):
    """An objective whose cost grows faster than the number of documents."""

    remedy: ClassVar[str]  #: what to do where that is too much

    def pairs(self, data: RankingData) -> float:
        """How many pairs of documents one pass looks at."""


class CostWarning(RuntimeWarning):
    """Long queries make training slow."""


def announce_cost(objective: object, data: Dataset) -> None:
    """Warn if one pass of ``objective`` over ``data`` looks at more than `MANY_PAIRS` pairs."""
    if not isinstance(objective, Pairwise):
        return
    pairs = sum(data.ask(EachPart(partial(_pairs, objective))))
    if pairs > MANY_PAIRS:
        warnings.warn(
            f"one pass of {type(objective).__name__} looks at {pairs:.1e} pairs of documents, which takes about"
            f" {pairs * SECONDS_PER_PAIR:.0f} s on one thread; the longest query has {data.longest} documents."
            f" To make it faster {objective.remedy}",
            CostWarning,
            stacklevel=3,
        )


def _pairs(objective: Pairwise, part: Part) -> float:
    return objective.pairs(part.data)
