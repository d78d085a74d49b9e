"""An objective as a function of a scorer's parameters, for gradient optimizers.

    f(theta) = 1/Q sum_q w_q f_q(s_q(theta))  -  l2/2 |theta - theta0|^2,    the weights w of mean 1, theta0 mostly 0     (1)

Values and slopes are taken over all queries, over some of them, or query by query with an update after each. Those of a batch are
added up as those of all are: by wide blocks of the data (`exactrank.data.blocks`), so that they do not depend on where it is cut. A
lambda function need not be the slope of anything: as `ForceProblem` it has no value of its own, and something else says how good theta is.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import cloudpickle
import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_hexdigest

from exactrank import _core
from exactrank._support.arguments import check_number
from exactrank._support.arrays import Boundaries, Matrix, PerQuery
from exactrank._support.numerics import dot
from exactrank._support.threads import thread_count
from exactrank.data.blocks import wide_blocks
from exactrank.data.dataset import Concatenated, Dataset, Part
from exactrank.errors import IncompatibleError
from exactrank.learning.objectives.lambdas import FiniteDifference, LambdaRule
from exactrank.learning.objectives.losses import ApproxNDCGLoss, ListMLELoss, ListNetLoss, PairHinge, RankCosineLoss, SmoothMeasure
from exactrank.learning.objectives.own_lambdas import DocumentForces, PairForces
from exactrank.learning.objectives.score_space import Numbered, Objective, Sampled, announce_cost
from exactrank.learning.objectives.structured import Structured, TowardsRanking
from exactrank.models.architecture import Architecture, Theta

Numbers = npt.NDArray[np.int64]  #: of queries
#: Objectives whose value for a query depends on that query alone, and on its number, so that partitions can answer for them.
SEPARABLE = (
    *(LambdaRule, FiniteDifference, PairForces, DocumentForces, ListNetLoss, ListMLELoss, RankCosineLoss),
    *(SmoothMeasure, ApproxNDCGLoss, PairHinge, Structured, TowardsRanking),
)


class Posed:
    """The slope of (1): ``objective`` of the scores that ``architecture`` gives the documents of ``data``."""

    def __init__(
        self,
        objective: Objective,
        architecture: Architecture,
        data: Dataset,
        l2: float = 0.0,
        threads: int | None = None,
    ) -> None:
        check_number("l2", l2)
        announce_cost(objective, data)
        self.objective = objective.informed(data) if isinstance(objective, PairHinge) else objective
        self.architecture, self.data, self.l2 = architecture, data, l2
        self._origin: Theta | float = 0.0  #: theta0
        self.threads = thread_count(threads)
        self.parts = data.n_queries  #: how many summands (1) has
        self._asked = data.with_memo()
        self._sum = QuerySum(Recognized(self.objective), architecture, float(data.weights.mean()), self.threads)
        self._wide = _wide_of(data)

    def start(self, rng: np.random.Generator) -> Theta:
        """Random parameters."""
        return self.architecture.initial(rng)

    def slope_of(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """(1) and its slope over some of the queries alone: an estimate of both."""
        value, slope = self._unpenalized(theta, queries)
        away = theta - self._origin
        return value - self.l2 / 2 * dot(away, away), slope - self.l2 * away

    def pass_over(self, theta: Theta, order: Numbers, rate: float) -> Theta:
        """Where theta comes to by a step of ``rate`` along the slope of one query after the other, which pulls towards 0."""
        if np.any(self._origin):
            raise IncompatibleError(
                "updates query by query pull the parameters towards 0, and this risk has another center; use Adam or L-BFGS"
            )
        return self._asked.ask(PassOver(self._sum, np.ascontiguousarray(theta), order, rate, self.l2))

    def _unpenalized(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """The mean over ``queries`` of (1), and its slope."""
        every = len(queries) == self.parts
        chosen = None if every else queries[np.argsort(self._wide[queries], kind="stable")]
        value, slope = self._asked.ask(SlopeSum(self._sum, np.ascontiguousarray(theta), chosen))
        return value / len(queries), slope / len(queries)


class Parametric(Posed):
    """(1), whose slope is that of its value."""

    def value(self, theta: Theta) -> float:
        """(1) without its slope."""
        away = theta - self._origin
        values = self._asked.ask(Concatenated(partial(self._sum.values, np.ascontiguousarray(theta))))
        return float(values.sum()) / self.parts - self.l2 / 2 * dot(away, away)

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """(1) and its slope."""
        return self.slope_of(theta, np.arange(self.parts))

    def slopes_by_query(self, theta: Theta, queries: Numbers) -> tuple[PerQuery, npt.NDArray[np.float64]]:
        """The value and, one row each, the slope of w_q f_q for some queries q of (1)."""
        return self._asked.ask(SlopesByQuery(self._sum, np.ascontiguousarray(theta), queries))


class ForceProblem(Posed):
    """(1) of forces, which have no value; ``judge`` says how good theta is. What is drawn at random is new in each step."""

    def __init__(
        self,
        objective: Objective,
        architecture: Architecture,
        data: Dataset,
        judge: Callable[[Theta], float],
        l2: float = 0.0,
        threads: int | None = None,
    ) -> None:
        super().__init__(objective, architecture, data, l2, threads)
        self.value = judge

    def with_draws(self, number: int) -> Self:
        """Itself with the draws of that number, where there are any."""
        if not isinstance(self.objective, Sampled):
            return self
        other = copy(self)
        other._sum = replace(self._sum, objective=Recognized(self.objective.with_draws(number)))
        return other


class Recognized:
    """An objective that a part recognizes, so that it binds it once: itself in this process, elsewhere by a hash of its content."""

    def __init__(self, objective: Objective, key: str | None = None) -> None:
        self.objective, self._key = objective, key

    def __reduce__(self) -> tuple[Any, ...]:
        self._key = self._key or xxh3_128_hexdigest(cloudpickle.dumps(self.objective))
        return Recognized, (self.objective, self._key)

    def is_same(self, other: "Recognized") -> bool:
        """Is ``other`` the same objective?"""
        return self.objective is other.objective or (self._key is not None and self._key == other._key)


@dataclass(frozen=True, eq=False)
class QuerySum:
    """The terms of (1): an objective on the scores of documents, by queries."""

    objective: Recognized
    architecture: Architecture
    unit: float  #: the mean weight of all queries
    threads: int

    def values(self, theta: Theta, part: Part) -> PerQuery:
        """The value of each query of ``part``, times its weight."""
        scores, (bound, _, indptr, weight) = self.architecture.scores(theta, part.data.X, self.threads), self.on(part)
        return _core.answers(bound, scores, indptr, weight, False, False, self.threads)[0]

    def on(self, part: Part) -> tuple[_core.Objective, Matrix, Boundaries, PerQuery]:
        """Return the objective on ``part``, and what the kernels read of its queries."""
        data = part.data
        return self._bound(part), data.X, data.indptr, part.once(("weight", self.unit), lambda: data.weights / self.unit)

    def _bound(self, part: Part) -> _core.Objective:
        """The objective on the part; only the last one that was asked for is kept."""
        known: tuple[Recognized, _core.Objective] | None = part.memo.get("objective")
        if known is None or not self.objective.is_same(known[0]):
            part.memo["objective"] = known = self.objective, self._numbered(part).on(part.data)
        return known[1]

    def _numbered(self, part: Part) -> Objective:
        """The objective as it is on a part, which must not need others for an answer."""
        objective = self.objective.objective
        if part.is_complete:
            return objective
        if not isinstance(objective, SEPARABLE):
            known = ", ".join(kind.__name__ for kind in SEPARABLE)
            raise IncompatibleError(
                f"{type(objective).__name__} of a query may depend on other queries, so data in several files cannot answer for it;"
                f" train on a RankingData, or use one of {known}"
            )
        return objective.for_part(part.first, part.first_document) if isinstance(objective, Numbered) else objective


@dataclass(frozen=True, eq=False)
class SlopeSum:
    """The sum of values and slopes of all queries, or of those numbered ``queries``, by wide blocks."""

    terms: QuerySum
    theta: Theta
    queries: Numbers | None  #: None for all

    def ask(self, part: Part) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The value and the slope of a part that is all there is; those of each block of one of several."""
        native, threads, data = self.terms.architecture.native, self.terms.threads, part.data
        wide = part.once("wide blocks", lambda: _wide_of(data))
        numbers = np.arange(data.n_queries) if self.queries is None else self.queries - part.first
        chosen = numbers if part.is_complete else numbers[(numbers >= 0) & (numbers < data.n_queries)]
        given = *self.terms.on(part), chosen, wide[chosen]
        if part.is_complete:
            value, slope = native.slope(self.theta, *given, threads)
            return np.array([value]), slope
        return native.slopes_by_block(self.theta, *given, threads)

    def combine(self, answers: Sequence[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]) -> tuple[float, Theta]:
        """Add up as steepness() in descent.hpp does."""
        values, slopes = answers[0]
        if len(answers) == 1 and len(values) == 1:
            return float(values[0]), slopes.reshape(-1)
        value, slope = 0.0, np.zeros(len(self.theta))
        for values, slopes in answers:
            for block, towards in zip(values.tolist(), slopes.reshape(-1, len(slope)), strict=True):
                value += block
                slope += towards
        return value, slope


@dataclass(frozen=True, eq=False)
class SlopesByQuery:
    """The value and the slope of each of the queries numbered ``queries``."""

    terms: QuerySum
    theta: Theta
    queries: Numbers

    def ask(self, part: Part) -> tuple[Numbers, PerQuery, npt.NDArray[np.float64]]:
        """Those of the queries that lie in ``part``, and which of those that are wanted they are."""
        numbers = self.queries - part.first
        chosen = np.flatnonzero((numbers >= 0) & (numbers < part.data.n_queries))
        native = self.terms.architecture.native
        return chosen, *native.slopes_by_query(self.theta, *self.terms.on(part), numbers[chosen], self.terms.threads)

    def combine(self, answers: Sequence[tuple[Numbers, PerQuery, npt.NDArray[np.float64]]]) -> tuple[PerQuery, npt.NDArray[np.float64]]:
        """Return them in the order in which they are wanted."""
        values, slopes = np.empty(len(self.queries)), np.empty((len(self.queries), len(self.theta)))
        for rows, of_part, towards in answers:
            values[rows], slopes[rows] = of_part, towards.reshape(-1, slopes.shape[1])
        return values, slopes


@dataclass(frozen=True, eq=False)
class PassOver:
    """Where theta comes to by a step along the slope of one query after the other."""

    terms: QuerySum
    theta: Theta
    order: Numbers
    rate: float
    l2: float

    def ask(self, part: Part) -> Theta:
        """Return it, if ``part`` is all there is."""
        if not part.is_complete:
            raise IncompatibleError(
                "updates query by query (sgd) would go from file to file with every query; use solver='adam', whose batches all files"
                " answer for together, or 'lbfgs'"
            )
        return self.terms.architecture.native.pass_over(self.theta, *self.terms.on(part), self.order, self.rate, self.l2)

    def combine(self, answers: Sequence[Theta]) -> Theta:
        """Return the only answer."""
        return answers[0]


def _wide_of(data: Dataset) -> Numbers:
    """The wide block of each query."""
    return np.repeat(np.arange(len(blocks := wide_blocks(data.indptr)) - 1), np.diff(blocks))
