"""An objective as a function of a scorer's parameters: what gradient optimizers ask.

    f(theta) = 1/Q sum_q w_q f_q(s_q(theta))  -  l2/2 |theta|^2,    the weights w of mean 1                     (1)

Values and slopes are taken over all queries, over some of them, or query by query with an update after each. A lambda function
need not be the slope of anything: as `Forces` it has no value of its own, and something else says how good theta is.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.errors import SettingError
from exactrank.objectives.cost import announce_cost
from exactrank.objectives.score_space import Objective, Sampled
from exactrank.scorers.architecture import Architecture, Theta
from exactrank.threads import thread_count

Numbers = npt.NDArray[np.int64]  #: of queries


class Parametric:
    """(1): ``objective`` of the scores that ``architecture`` gives the documents of ``data``."""

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
        weight = data.weights
        self.architecture = architecture
        self.data = data
        self._weight = weight / weight.mean()
        announce_cost(objective, data)
        self.objective = objective
        self._bound = objective.on(data)
        self.l2 = l2
        self.threads = thread_count(threads)

    def of(self, objective: Objective) -> "Parametric":
        """The same of another objective, which costs as much."""
        other = copy(self)
        other.objective, other._bound = objective, objective.on(self.data)
        return other

    @property
    def parts(self) -> int:
        """How many summands (1) has."""
        return self.data.n_queries

    def start(self, rng: np.random.Generator) -> Theta:
        """Random parameters."""
        return self.architecture.initial(rng)

    def value(self, theta: Theta) -> float:
        """(1) without its slope."""
        scores = self.architecture.scores(theta, self.data.X, self.threads)
        values, _, _ = _core.answers(self._bound, scores, self.data.indptr, self._weight, False, False, self.threads)
        return float(values.sum()) / self.parts - self._penalty(theta)

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """(1) and its slope."""
        return self.slope_of(theta, np.arange(self.parts))

    def slope_of(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """The same over some of the queries alone: an estimate of (1) and of its slope."""
        value, slope = self._unpenalised(theta, queries)
        return value - self._penalty(theta), slope - self.l2 * self._away(theta)

    def slopes_by_query(self, theta: Theta, queries: Numbers) -> tuple[PerQuery, npt.NDArray[np.float64]]:
        """The value and, one row each, the slope of w_q f_q for some queries q of (1)."""
        values, slopes = self.architecture.native.slopes_by_query(np.ascontiguousarray(theta), *self._given, queries, self.threads)
        return values, slopes.reshape(len(queries), -1)

    def pass_over(self, theta: Theta, order: Numbers, rate: float) -> Theta:
        """Where theta comes to by a step of ``rate`` along the slope of one query after the other."""
        return self.architecture.native.pass_over(np.ascontiguousarray(theta), *self._given, order, rate, self.l2)

    @property
    def _given(self) -> tuple[_core.Objective, npt.NDArray[np.float32], Numbers, npt.NDArray[np.float64]]:
        return self._bound, self.data.X, self.data.indptr, self._weight

    def _unpenalised(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """The mean over ``queries`` of (1), and its slope."""
        value, slope = self.architecture.native.slope(np.ascontiguousarray(theta), *self._given, queries, self.threads)
        return value / len(queries), slope / len(queries)

    def _penalty(self, theta: Theta) -> float:
        away = self._away(theta)
        return self.l2 / 2 * float(away @ away)

    def _away(self, theta: Theta) -> Theta:
        """From where nothing is penalised."""
        return theta


@dataclass(frozen=True, eq=False)
class Forces:
    """The forces of ``objective``, posed as ``problem``; ``judge`` says how good theta is. What is drawn at random is new in each step."""

    objective: Objective
    problem: Parametric
    judge: Callable[[Theta], float]

    @property
    def parts(self) -> int:
        """How many queries there are."""
        return self.problem.parts

    def start(self, rng: np.random.Generator) -> Theta:
        """Random parameters."""
        return self.problem.start(rng)

    def value(self, theta: Theta) -> float:
        """What the judge says."""
        return self.judge(theta)

    def slope_of(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """The forces of some queries, as a direction by the parameters."""
        return self.problem.slope_of(theta, queries)

    def pass_over(self, theta: Theta, order: Numbers, rate: float) -> Theta:
        """Where theta comes to by following the forces of one query after the other."""
        return self.problem.pass_over(theta, order, rate)

    def drawn(self, number: int) -> "Forces":
        """Itself with the draws of that number, where there are any."""
        return replace(self, problem=self.problem.of(self.objective.drawn(number))) if isinstance(self.objective, Sampled) else self
