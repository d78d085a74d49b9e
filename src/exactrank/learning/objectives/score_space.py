"""Objectives as functions of scores, whatever computes these.

An objective is a frozen value; ``on(data)`` binds it to the grades and boundaries of some data. Its value is a sum over queries and is
maximized. A lambda function has a slope, which need not be that of any function (Burges, Ragno & Le 2006, section 4). An objective that
examines pairs of documents knows their number, and a high cost is announced before the work begins.
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
    """A function of scores to be maximized. If its slope is not that of its value, it has ``conservative = False``."""

    def on(self, data: RankingData) -> _core.Objective:
        """Bind the objective to ``data``."""


def read_measure(objective: object) -> None:
    """Parse the measure of an objective under construction, if it is text."""
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
        """Return the objective with the draws of this number."""


@runtime_checkable
class Numbered(Objective, Protocol):
    """An objective whose draws depend on the number of a query or document in the whole."""

    def for_part(self, query: int, document: int) -> Objective:
        """Return the objective for a part, whose first ``query`` and ``document`` have these numbers in the whole."""


def is_conservative(objective: Objective) -> bool:
    """Return whether the slope is that of the value; forces between documents and random draws need not have one."""
    return bool(getattr(objective, "conservative", True)) and not isinstance(objective, Sampled)


def by_query(answer: Callable[[int, PerDocument], tuple[float, PerDocument, PerDocument]]) -> _core.Objective:
    """Return a bound objective in Python: ``answer`` takes a query's number and scores, and returns value, slope and curvature."""
    return _core.called(answer)


@dataclass(frozen=True, eq=False, repr=False)
class Slopes(Tabular):
    """The value and the slope of an objective at some scores, each query times its weight."""

    values: PerQuery
    slope: PerDocument  #: the derivative of the value by each score
    curvature: PerDocument  #: the rate at which the slope falls as this score rises

    def __repr__(self) -> str:
        return f"Slopes({len(self.values):,} queries, {len(self.slope):,} documents)"

    def _columns(self) -> dict[str, Values]:
        return {"slope": self.slope, "curvature": self.curvature}


def slopes(data: RankingData, scores: npt.ArrayLike, objective: Objective, threads: int | None = None) -> Slopes:
    """Return the value, slope and curvature of ``objective`` at ``scores``, one per row in the caller's order.

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

    remedy: ClassVar[str]  #: what to do if the cost is too high

    def pairs(self, data: RankingData) -> float:
        """Return the number of pairs of documents in one pass."""


class CostWarning(RuntimeWarning):
    """A warning that long queries make training slow."""


def announce_cost(objective: object, data: Dataset) -> None:
    """Warn if one pass of ``objective`` over ``data`` examines more than `MANY_PAIRS` pairs."""
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
