"""Coordinate ascent by trying steps (Metzler & Croft 2007, section 4.2; the settings are those of RankLib).

One coordinate at a time, in random order, is tried at

    w_i + sign * first * |w_i| * growth^n,   sign = +-1,   n = 0 .. tries - 1,   and at 0                        (1)

(for w_i = 0 the mean |w_j| stands for |w_i|), and moved to the best of these if that raises the value. A round visits every
coordinate once. Only values are needed, so the function may be a step function such as a ranking measure. If scaling all parameters
does not change the function, they are kept at

    sum_i |w_i| = 1                                                                                             (2)
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactrank._support.numerics import power
from exactrank._support.serialize import storable
from exactrank.errors import SettingError
from exactrank.learning.optimizers.base import Draws, State, Theta, Valued, drawing_from, draws_of


@storable
@dataclass(frozen=True, kw_only=True)
class SearchState(State[Theta]):
    """State of the search within its round."""

    order: npt.NDArray[np.int64]  #: of the coordinates in this round
    position: int  #: of the next coordinate in ``order``
    round_value: float  #: when the round began
    generator: Draws = field(repr=False)  #: for later rounds


@dataclass(frozen=True)
class StepSearch:
    """Ascend by the best of the steps (1); done when a round gains less than ``tolerance``, or the value is the problem's ``upper_bound``.

    ``normalize`` keeps (2). If the problem has ``values_along(theta, i, weights)``, it evaluates all steps of a coordinate at once.
    """

    asks: ClassVar[type] = Valued

    first: float = 0.05
    growth: float = 2.0
    tries: int = 25
    tolerance: float = 0.001
    normalize: bool = True

    def __post_init__(self) -> None:
        for name, setting, least in (("the first step", self.first, 0.0), ("growth", self.growth, 1.0)):
            if not least < setting < np.inf:
                raise SettingError(f"{name} must be a number above {least:g}, got {setting}")
        if self.tries < 1:
            raise SettingError(f"tries must be at least 1, got {self.tries}")
        if not self.tolerance >= 0:
            raise SettingError(f"tolerance must be at least 0, got {self.tolerance}")

    def init(self, problem: Valued, theta: Theta, rng: np.random.Generator) -> SearchState:
        """Return the state before the first round."""
        start = self._normalize(np.array(theta, np.float64))
        none = np.empty(0, np.int64)
        before = SearchState(start, problem.value(start), order=none, position=0, round_value=-np.inf, generator=draws_of(rng))
        return self._new_round(before)

    def step(self, problem: Valued, state: SearchState) -> SearchState:
        """Try one coordinate; the value never gets smaller."""
        i = int(state.order[state.position])
        at_coordinate = np.arange(len(state.theta)) == i
        size = abs(state.theta[i]) or np.mean(np.abs(state.theta)) or 1.0
        reach = self.first * size * power(self.growth, np.arange(self.tries))
        tried = np.concatenate([state.theta[i] + reach, state.theta[i] - reach])  # (1)
        # 0 is not tried if all other parameters are 0 and only proportions count.
        nothing_else = np.count_nonzero(state.theta) == np.count_nonzero(state.theta[i])
        tried = tried[tried != 0.0] if self.normalize and nothing_else else np.append(0.0, tried)
        ask = getattr(problem, "values_along", None)
        values = ask(state.theta, i, tried) if ask is not None else [problem.value(np.where(at_coordinate, w, state.theta)) for w in tried]
        new_state = replace(state, steps=state.steps + 1, position=state.position + 1)
        if np.max(values) > state.value:
            theta = self._normalize(np.where(at_coordinate, tried[int(np.argmax(values))], state.theta))
            value = problem.value(theta)  # scaling rounds, and so may ``values``: the value of a state is that of its theta
            if value > state.value:
                new_state = replace(new_state, theta=theta, value=value)
        if new_state.value >= getattr(problem, "upper_bound", np.inf):
            return replace(new_state, is_done=True)
        return new_state if new_state.position < len(new_state.order) else self._new_round(new_state)

    def _new_round(self, state: SearchState) -> SearchState:
        gain = state.value - state.round_value
        rng = drawing_from(state.generator)
        order = rng.permutation(len(state.theta))
        converged = gain <= 0 or gain < self.tolerance
        return replace(state, order=order, position=0, round_value=state.value, generator=draws_of(rng), is_done=converged)

    def _normalize(self, theta: Theta) -> Theta:
        total = np.sum(np.abs(theta))
        return theta / total if self.normalize and total > 0 else theta
