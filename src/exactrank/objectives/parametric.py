"""An objective as a function of a scorer's parameters, for gradient optimizers.

    f(theta) = 1/Q sum_q w_q f_q(s_q(theta))  -  l2/2 |theta - theta0|^2,    the weights w of mean 1, theta0 mostly 0     (1)

Values and slopes are taken over all queries, over some of them, or query by query with an update after each. A lambda function
need not be the slope of anything: as `Forces` it has no value of its own, and something else says how good theta is.
"""

from collections.abc import Callable
from copy import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError, SettingError
from exactrank.objectives.score_space import Objective, Sampled, announce_cost
from exactrank.scorers.architecture import Architecture, Theta
from exactrank.threads import thread_count

Numbers = npt.NDArray[np.int64]  #: of queries


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
        if not 0 <= l2 < np.inf:
            raise SettingError(f"l2 must be a number of at least 0, got {l2}")
        self.objective, self.architecture, self.data, self.l2 = objective, architecture, data, l2
        announce_cost(objective, data)
        self._origin: Theta | float = 0.0  #: theta0
        self.threads = thread_count(threads)
        self.parts = data.n_queries  #: how many summands (1) has
        self._given = objective.on(data), data.X, data.indptr, data.weights / data.weights.mean()

    def start(self, rng: np.random.Generator) -> Theta:
        """Random parameters."""
        return self.architecture.initial(rng)

    def slope_of(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """(1) and its slope over some of the queries alone: an estimate of both."""
        value, slope = self._unpenalised(theta, queries)
        away = theta - self._origin
        return value - self.l2 / 2 * float(away @ away), slope - self.l2 * away

    def pass_over(self, theta: Theta, order: Numbers, rate: float) -> Theta:
        """Where theta comes to by a step of ``rate`` along the slope of one query after the other, which pulls towards 0."""
        if np.any(self._origin):
            raise IncompatibleError(
                "updates query by query pull the parameters towards 0, and this risk has another centre; use Adam or L-BFGS"
            )
        return self.architecture.native.pass_over(np.ascontiguousarray(theta), *self._given, order, rate, self.l2)

    def _unpenalised(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """The mean over ``queries`` of (1), and its slope."""
        value, slope = self.architecture.native.slope(np.ascontiguousarray(theta), *self._given, queries, self.threads)
        return value / len(queries), slope / len(queries)


class Parametric(Posed):
    """(1), whose slope is that of its value."""

    def value(self, theta: Theta) -> float:
        """(1) without its slope."""
        bound, X, indptr, weight = self._given
        scores, away = self.architecture.scores(theta, X, self.threads), theta - self._origin
        values, _, _ = _core.answers(bound, scores, indptr, weight, False, False, self.threads)
        return float(values.sum()) / self.parts - self.l2 / 2 * float(away @ away)

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """(1) and its slope."""
        return self.slope_of(theta, np.arange(self.parts))

    def slopes_by_query(self, theta: Theta, queries: Numbers) -> tuple[PerQuery, npt.NDArray[np.float64]]:
        """The value and, one row each, the slope of w_q f_q for some queries q of (1)."""
        values, slopes = self.architecture.native.slopes_by_query(np.ascontiguousarray(theta), *self._given, queries, self.threads)
        return values, slopes.reshape(len(queries), -1)


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
        other = copy(self)
        other._given = self.objective.drawn(number).on(self.data), *self._given[1:]
        return other
