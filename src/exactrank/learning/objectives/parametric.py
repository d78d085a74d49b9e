"""An objective as a function of a scorer's parameters, for gradient optimizers.

    f(theta) = 1/Q sum_q w_q f_q(s_q(theta))  -  l2/2 |theta - theta0|^2,    the weights w of mean 1, theta0 mostly 0     (1)

Values and slopes are taken over all queries, over some of them, or query by query with an update after each. Sums, also of a batch, are
taken by wide blocks of the data (`exactrank.data.blocks`), so they do not depend on how it is cut. A lambda function need not be the
slope of any function: a `ForceProblem` has no value of its own, and a judge evaluates theta.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_hexdigest

from exactrank import _core
from exactrank._support.arguments import check_number
from exactrank._support.arrays import Boundaries, Matrix, PerQuery, group_numbers
from exactrank._support.libraries import library
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
#: Objectives whose value for a query depends only on that query and its number, so that partitions can compute it.
SEPARABLE = (
    *(LambdaRule, FiniteDifference, PairForces, DocumentForces, ListNetLoss, ListMLELoss, RankCosineLoss),
    *(SmoothMeasure, ApproxNDCGLoss, PairHinge, Structured, TowardsRanking),
)


class GradientProblem:
    """The slope of (1): the ``objective`` of the scores of ``data`` by ``architecture``."""

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
        self.objective = objective.with_mean_pairs(data) if isinstance(objective, PairHinge) else objective
        self.architecture, self.data, self.l2 = architecture, data, l2
        self._origin: Theta | float = 0.0  #: theta0
        self.threads = thread_count(threads)
        self.parts = data.n_queries  #: the number of summands of (1)
        self._parts = data.with_memo()
        self._sum = QuerySum(KeyedObjective(self.objective), architecture, float(data.weights.mean()), self.threads)
        self._wide = _wide_of(data)

    def start(self, rng: np.random.Generator) -> Theta:
        """Return random parameters."""
        return self.architecture.initial(rng)

    def slope_of(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """Return (1) and its slope over some of the queries: an estimate of both."""
        value, slope = self._mean_objective(theta, queries)
        away = theta - self._origin
        return value - self.l2 / 2 * dot(away, away), slope - self.l2 * away

    def pass_over(self, theta: Theta, order: Numbers, rate: float) -> Theta:
        """Return theta after a step of ``rate`` along the slope of each query in turn; the penalty pulls towards 0."""
        if np.any(self._origin):
            raise IncompatibleError(
                "updates query by query pull the parameters towards 0, and this risk has another center; use Adam or L-BFGS"
            )
        return self._parts.ask(PassOver(self._sum, np.ascontiguousarray(theta), order, rate, self.l2))

    def _mean_objective(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """Return the mean of the objective over ``queries``, and its slope."""
        in_blocks = None if len(queries) == self.parts else queries[np.argsort(self._wide[queries], kind="stable")]
        value, slope = self._parts.ask(SlopeSum(self._sum, np.ascontiguousarray(theta), in_blocks))
        return value / len(queries), slope / len(queries)


class Parametric(GradientProblem):
    """(1) of an objective whose slope is that of its value."""

    def value(self, theta: Theta) -> float:
        """Return (1) without its slope."""
        away = theta - self._origin
        values = self._parts.ask(Concatenated(partial(self._sum.values, np.ascontiguousarray(theta))))
        return float(values.sum()) / self.parts - self.l2 / 2 * dot(away, away)

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """Return (1) and its slope."""
        return self.slope_of(theta, np.arange(self.parts))

    def slopes_by_query(self, theta: Theta, queries: Numbers) -> tuple[PerQuery, npt.NDArray[np.float64]]:
        """Return the values and the slopes (one row per query) of w_q f_q for some queries q of (1)."""
        return self._parts.ask(SlopesByQuery(self._sum, np.ascontiguousarray(theta), queries))


class ForceProblem(GradientProblem):
    """(1) of forces, which have no value; ``judge`` evaluates theta. Random draws are new in each step."""

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
        """Return the problem with the draws of this number, if it has any."""
        if not isinstance(self.objective, Sampled):
            return self
        redrawn = copy(self)
        redrawn._sum = replace(self._sum, objective=KeyedObjective(self.objective.with_draws(number)))
        return redrawn


class KeyedObjective:
    """An objective that a part recognizes, and so binds only once: by identity in this process, elsewhere by a hash of its content."""

    def __init__(self, objective: Objective, key: str | None = None) -> None:
        self.objective, self._key = objective, key

    def __reduce__(self) -> tuple[object, ...]:
        self._key = self._key or xxh3_128_hexdigest(library("cloudpickle", "clusters", "dask").dumps(self.objective))
        return KeyedObjective, (self.objective, self._key)

    def is_same(self, keyed: "KeyedObjective") -> bool:
        """Return whether ``keyed`` is the same objective."""
        return self.objective is keyed.objective or (self._key is not None and self._key == keyed._key)


@dataclass(frozen=True, eq=False)
class QuerySum:
    """The terms of (1): an objective on the scores of documents, by queries."""

    objective: KeyedObjective
    architecture: Architecture
    unit: float  #: the mean weight of all queries
    threads: int

    def values(self, theta: Theta, part: Part) -> PerQuery:
        """Return the value of each query of ``part``, times its weight."""
        scores, (bound, _, indptr, weight) = self.architecture.scores(theta, part.data.X, self.threads), self.on(part)
        return _core.answers(bound, scores, indptr, weight, False, False, self.threads)[0]

    def on(self, part: Part) -> tuple[_core.Objective, Matrix, Boundaries, PerQuery]:
        """Return the objective bound to ``part``, with the features, boundaries and weights that the kernels read."""
        data = part.data
        return self._bound(part), data.X, data.indptr, part.once(("weight", self.unit), lambda: data.weights / self.unit)

    def _bound(self, part: Part) -> _core.Objective:
        """Return the objective bound to ``part``; only the last one is kept."""
        entry: tuple[KeyedObjective, _core.Objective] | None = part.memo.get("objective")
        if entry is None or not self.objective.is_same(entry[0]):
            part.memo["objective"] = entry = self.objective, self._for_part(part).on(part.data)
        return entry[1]

    def _for_part(self, part: Part) -> Objective:
        """Return the objective for ``part``; raise if its value depends on other parts."""
        objective = self.objective.objective
        if part.is_complete:
            return objective
        if not isinstance(objective, SEPARABLE):
            separable = ", ".join(kind.__name__ for kind in SEPARABLE)
            raise IncompatibleError(
                f"{type(objective).__name__} of a query may depend on other queries, so data in several files cannot answer for it;"
                f" train on a RankingData, or use one of {separable}"
            )
        return objective.for_part(part.first, part.first_document) if isinstance(objective, Numbered) else objective


@dataclass(frozen=True, eq=False)
class SlopeSum:
    """The sums of values and slopes of all queries, or of those numbered ``queries``, by wide blocks."""

    terms: QuerySum
    theta: Theta
    queries: Numbers | None  #: None for all

    def ask(self, part: Part) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the value and the slope of the only part, or those of each block of one of several."""
        native, threads, data = self.terms.architecture.native, self.terms.threads, part.data
        wide = part.once("wide blocks", lambda: _wide_of(data))
        numbers = np.arange(data.n_queries) if self.queries is None else self.queries - part.first
        in_part = numbers if part.is_complete else numbers[(numbers >= 0) & (numbers < data.n_queries)]
        arguments = *self.terms.on(part), in_part, wide[in_part]
        if part.is_complete:
            value, slope = native.slope(self.theta, *arguments, threads)
            return np.array([value]), slope
        return native.slopes_by_block(self.theta, *arguments, threads)

    def combine(self, answers: Sequence[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]) -> tuple[float, Theta]:
        """Return the sums, added up as steepness() in descent.hpp does."""
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
        """Return the positions of the queries that lie in ``part``, and their values and slopes."""
        numbers = self.queries - part.first
        positions = np.flatnonzero((numbers >= 0) & (numbers < part.data.n_queries))
        native = self.terms.architecture.native
        return positions, *native.slopes_by_query(self.theta, *self.terms.on(part), numbers[positions], self.terms.threads)

    def combine(self, answers: Sequence[tuple[Numbers, PerQuery, npt.NDArray[np.float64]]]) -> tuple[PerQuery, npt.NDArray[np.float64]]:
        """Return the values and slopes in the order of ``queries``."""
        values, slopes = np.empty(len(self.queries)), np.empty((len(self.queries), len(self.theta)))
        for rows, of_part, towards in answers:
            values[rows], slopes[rows] = of_part, towards.reshape(-1, slopes.shape[1])
        return values, slopes


@dataclass(frozen=True, eq=False)
class PassOver:
    """Theta after a step along the slope of each query in turn."""

    terms: QuerySum
    theta: Theta
    order: Numbers
    rate: float
    l2: float

    def ask(self, part: Part) -> Theta:
        """Return theta after all steps, if there is only one part."""
        if not part.is_complete:
            raise IncompatibleError(
                "updates query by query (sgd) would go from file to file with every query; use solver='adam', whose batches all files"
                " compute together, or 'lbfgs'"
            )
        return self.terms.architecture.native.pass_over(self.theta, *self.terms.on(part), self.order, self.rate, self.l2)

    def combine(self, answers: Sequence[Theta]) -> Theta:
        """Return the only answer."""
        return answers[0]


def _wide_of(data: Dataset) -> Numbers:
    """Return the number of the wide block of each query."""
    return group_numbers(np.diff(wide_blocks(data.indptr)))
