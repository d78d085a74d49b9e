"""An objective as a function of a scorer's parameters: what gradient optimizers ask.

    f(theta) = 1/Q sum_q w_q f_q(s_q(theta))  -  l2/2 |theta|^2,    the weights w of mean 1                     (1)

Values and slopes are taken over all queries, over some of them, or query by query with an update after each. A lambda function
need not be the slope of anything; then a judge says how good theta is.
"""

from collections.abc import Callable
from copy import copy
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.objectives.cost import announce_cost
from exactrank.objectives.score_space import Objective
from exactrank.scorers.architecture import Architecture, Theta
from exactrank.threads import thread_count

Numbers = npt.NDArray[np.int64]  #: of queries


class Parametric:
    """(1): ``objective`` of the scores that ``architecture`` gives the documents of ``data``; a ``judge`` stands for its value."""

    def __init__(
        self,
        objective: Objective,
        architecture: Architecture,
        data: RankingData,
        l2: float = 0.0,
        judge: Callable[[Theta], float] | None = None,
        threads: int | None = None,
    ) -> None:
        if not 0 <= l2 < np.inf:
            raise DataError(f"l2 must be a number of at least 0, got {l2}")
        weight = data.weights
        self.architecture = architecture
        self.data = data
        self._weight = weight / weight.mean()
        announce_cost(objective, data)
        self._objective = objective.on(data)
        self._l2 = l2
        self._judge = judge
        self.threads = thread_count(threads)

    def of(self, objective: Objective) -> "Parametric":
        """The same of another objective."""
        other = copy(self)
        announce_cost(objective, self.data)
        other._objective = objective.on(self.data)
        return other

    @property
    def parts(self) -> int:
        """How many summands (1) has."""
        return self.data.n_queries

    def start(self, rng: np.random.Generator) -> Theta:
        """Random parameters."""
        return self.architecture.initial(rng)

    def value(self, theta: Theta) -> float:
        """(1) without its slope, or what the judge says."""
        if self._judge is not None:
            return self._judge(theta)
        scores = self.architecture.scores(theta, self.data.X, self.threads)
        values, _, _ = _core.answers(self._objective, scores, self.data.indptr, self._weight, False, False, self.threads)
        return float(values.sum()) / self.parts - self._penalty(theta)

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """(1) and its slope."""
        return self.slope_of(theta, self._all)

    def slope_of(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """The same over some of the queries alone: an estimate of (1) and of its slope."""
        value, slope = self.architecture.native.slope(np.ascontiguousarray(theta), *self._given, queries, self.threads)
        return value / len(queries) - self._penalty(theta), slope / len(queries) - self._l2 * theta

    def slopes_by_query(self, theta: Theta, queries: Numbers) -> tuple[PerQuery, npt.NDArray[np.float64]]:
        """The value and, a row each, the slope of w_q f_q for some queries q of (1)."""
        values, slopes = self.architecture.native.slopes_by_query(np.ascontiguousarray(theta), *self._given, queries, self.threads)
        return values, slopes.reshape(len(queries), -1)

    def pass_over(self, theta: Theta, order: Numbers, rate: float) -> Theta:
        """Where theta comes to by a step of ``rate`` along the slope of one query after the other."""
        return self.architecture.native.pass_over(np.ascontiguousarray(theta), *self._given, order, rate, self._l2)

    @property
    def _given(self) -> tuple[_core.Objective, npt.NDArray[np.float32], Numbers, npt.NDArray[np.float64]]:
        return self._objective, self.data.X, self.data.indptr, self._weight

    @cached_property
    def _all(self) -> Numbers:
        return np.arange(self.parts)

    def _penalty(self, theta: Theta) -> float:
        return self._l2 / 2 * float(theta @ theta)
