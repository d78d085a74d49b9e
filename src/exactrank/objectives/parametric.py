"""An objective as a function of a scorer's parameters, for gradient optimizers.

    f(theta) = 1/Q sum_q w_q f_q(s_q(theta))  -  l2/2 |theta - theta0|^2,    the weights w of mean 1, theta0 mostly 0     (1)

Values and slopes are taken over all queries, over some of them, or query by query with an update after each. Those of a batch are
added up as those of all are: by wide blocks of the data (`exactrank.data.blocks`), so that they do not depend on where it is cut. A
lambda function need not be the slope of anything: as `Forces` it has no value of its own, and something else says how good theta is.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import cloudpickle
import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_hexdigest

from exactrank import _core
from exactrank.arguments import check_number
from exactrank.arrays import PerQuery
from exactrank.data.blocks import wide_blocks
from exactrank.data.ranking_data import RankingData
from exactrank.engine.engine import Part, Partitioned, fold, in_parts
from exactrank.errors import IncompatibleError
from exactrank.numerics import dot
from exactrank.objectives.lambdas import FiniteDifference, LambdaRule
from exactrank.objectives.losses import ApproxNDCGLoss, ListMLELoss, ListNetLoss, PairHinge, RankCosineLoss, SmoothMeasure
from exactrank.objectives.own_lambdas import DocumentForces, PairForces
from exactrank.objectives.score_space import Numbered, Objective, Sampled, announce_cost
from exactrank.objectives.structured import Structured, TowardsRanking
from exactrank.scorers.architecture import Architecture, Theta
from exactrank.threads import thread_count

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
        data: RankingData,
        l2: float = 0.0,
        threads: int | None = None,
    ) -> None:
        check_number("l2", l2)
        self.objective, self.architecture, self.data, self.l2 = objective, architecture, data, l2
        if not isinstance(data, Partitioned):
            announce_cost(objective, data)
        self._origin: Theta | float = 0.0  #: theta0
        self.threads = thread_count(threads)
        self.parts = data.n_queries  #: how many summands (1) has
        self._unit = float(data.weights.mean())
        self._parts, self._wide = in_parts(data), _wide_of(data)
        if isinstance(self._parts, Part):
            self._given = objective.on(data), data.X, data.indptr, data.weights / self._unit
        else:
            _check_separable(objective)
            self.objective = objective.informed(data) if isinstance(objective, PairHinge) else objective

    def start(self, rng: np.random.Generator) -> Theta:
        """Random parameters."""
        return self.architecture.initial(rng)

    def slope_of(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """(1) and its slope over some of the queries alone: an estimate of both."""
        value, slope = self._unpenalised(theta, queries)
        away = theta - self._origin
        return value - self.l2 / 2 * dot(away, away), slope - self.l2 * away

    def pass_over(self, theta: Theta, order: Numbers, rate: float) -> Theta:
        """Where theta comes to by a step of ``rate`` along the slope of one query after the other, which pulls towards 0."""
        if isinstance(self._parts, Partitioned):
            raise IncompatibleError(
                "updates query by query (sgd) would go from file to file with every query; use solver='adam', whose batches all files"
                " answer for together, or 'lbfgs'"
            )
        if np.any(self._origin):
            raise IncompatibleError(
                "updates query by query pull the parameters towards 0, and this risk has another centre; use Adam or L-BFGS"
            )
        return self.architecture.native.pass_over(np.ascontiguousarray(theta), *self._given, order, rate, self.l2)

    def _unpenalised(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """The mean over ``queries`` of (1), and its slope."""
        every = len(queries) == self.parts
        chosen = np.arange(self.parts) if every else queries[np.argsort(self._wide[queries], kind="stable")]
        if isinstance(self._parts, Part):
            given = np.ascontiguousarray(theta), *self._given, chosen, self._wide[chosen]
            value, slope = self.architecture.native.slope(*given, self.threads)
            return value / len(queries), slope / len(queries)
        value, slope = 0.0, np.zeros(self.architecture.size)
        asked = self._asked("blocks", theta, None if every else chosen)
        for values, slopes in fold(self._parts, asked):  # as steepness() in descent.hpp adds them
            for own, towards in zip(values.tolist(), slopes.reshape(-1, len(slope)), strict=True):
                value += own
                slope += towards
        return value / len(queries), slope / len(queries)

    def _asked(self, what: Literal["values", "blocks", "queries"], theta: Theta, queries: Numbers | None = None) -> "_Answers":
        return _Answers(self.objective, self.architecture, self._unit, self.threads, what, np.ascontiguousarray(theta), queries, self._key)

    @cached_property
    def _key(self) -> str:
        """What partitions know the objective by."""
        return xxh3_128_hexdigest(cloudpickle.dumps(self.objective))


class Parametric(Posed):
    """(1), whose slope is that of its value."""

    def value(self, theta: Theta) -> float:
        """(1) without its slope."""
        away = theta - self._origin
        values = np.concatenate([own for (own,) in fold(self._parts, self._asked("values", theta))])
        return float(values.sum()) / self.parts - self.l2 / 2 * dot(away, away)

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """(1) and its slope."""
        return self.slope_of(theta, np.arange(self.parts))

    def slopes_by_query(self, theta: Theta, queries: Numbers) -> tuple[PerQuery, npt.NDArray[np.float64]]:
        """The value and, one row each, the slope of w_q f_q for some queries q of (1)."""
        values, slopes = np.empty(len(queries)), np.empty((len(queries), self.architecture.size))
        for chosen, own, towards in fold(self._parts, self._asked("queries", theta, queries)):
            rows = chosen.astype(np.int64)
            values[rows], slopes[rows] = own, towards.reshape(-1, slopes.shape[1])
        return values, slopes


class Forces(Posed):
    """(1) of forces, which have no value; ``judge`` says how good theta is. What is drawn at random is new in each step."""

    def __init__(
        self,
        objective: Objective,
        architecture: Architecture,
        data: RankingData,
        judge: Callable[[Theta], float],
        l2: float = 0.0,
        threads: int | None = None,
    ) -> None:
        super().__init__(objective, architecture, data, l2, threads)
        self.value = judge

    def drawn(self, number: int) -> Self:
        """Itself with the draws of that number, where there are any."""
        if not isinstance(self.objective, Sampled):
            return self
        other, drawn = copy(self), self.objective.drawn(number)
        if isinstance(self._parts, Part):
            other._given = drawn.on(self.data), *self._given[1:]
        else:
            other.objective = drawn
            vars(other).pop("_key", None)
        return other


@dataclass(frozen=True, eq=False)
class _Answers:
    """The values of queries, or values and slopes summed by blocks of queries, or those of some queries and which; for one part."""

    objective: Objective
    architecture: Architecture
    unit: float  #: the mean weight of all queries
    threads: int
    what: Literal["values", "blocks", "queries"]
    theta: Theta
    queries: Numbers | None  #: None for all
    key: str  #: of the objective

    def __call__(self, part: Part) -> tuple[npt.NDArray[np.float64], ...]:
        data, native, bound = part.data, self.architecture.native, self._bound(part)
        weight = part.once(("weight", self.unit), lambda: data.weights / self.unit)
        if self.what == "values":
            scores = self.architecture.scores(self.theta, data.X, self.threads)
            return _core.answers(bound, scores, data.indptr, weight, False, False, self.threads)[:1]
        given = bound, data.X, data.indptr, weight
        own = np.arange(data.n_queries) if self.queries is None else self.queries - part.first
        chosen = np.flatnonzero((own >= 0) & (own < data.n_queries))
        if self.what == "blocks":
            wide = part.once("wide blocks", lambda: _wide_of(data))
            return native.slopes_by_block(self.theta, *given, own[chosen], wide[own[chosen]], self.threads)
        return chosen.astype(np.float64), *native.slopes_by_query(self.theta, *given, own[chosen], self.threads)

    def _bound(self, part: Part) -> _core.Objective:
        """The objective on the part; only the last one that was asked for is kept."""
        if part.kept.get("objective", (None,))[0] != self.key:
            one = self.objective
            own = one.counted_from(part.first, part.first_document) if isinstance(one, Numbered) else one
            part.kept["objective"] = self.key, own.on(part.data)
        bound: _core.Objective = part.kept["objective"][1]
        return bound


def _wide_of(data: RankingData) -> Numbers:
    """The wide block of each query."""
    return np.repeat(np.arange(len(blocks := wide_blocks(data.indptr)) - 1), np.diff(blocks))


def _check_separable(objective: Objective) -> None:
    if not isinstance(objective, SEPARABLE):
        known = ", ".join(one.__name__ for one in SEPARABLE)
        raise IncompatibleError(
            f"{type(objective).__name__} of a query may depend on other queries, so data in several files cannot answer for it;"
            f" train on a RankingData, or use one of {known}"
        )
