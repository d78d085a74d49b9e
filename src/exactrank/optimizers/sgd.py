"""Stochastic gradient ascent as nets were trained on queries (Burges, Ragno & Le 2006, section 6.3).

    theta <- theta + rate slope_q(theta)    for one summand q after the other, in random order                  (1)

A step is one epoch, (1) over all summands. The rate is multiplied by ``decay`` whenever the value falls over an epoch, and
training starts anew, with random parameters and the first rate, when it has not risen above its best for ``patience`` epochs.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from exactrank.errors import SettingError
from exactrank.optimizers.base import Draws, State, Theta, diverged, drawing_from, draws_of
from exactrank.stored import storable


class Summed(Protocol):
    """A problem that is a sum of parts, each with a slope."""

    @property
    def parts(self) -> int:
        """How many there are."""

    def value(self, theta: Theta) -> float:
        """The objective at ``theta``."""

    def start(self, rng: np.random.Generator) -> Theta:
        """Random parameters."""

    def pass_over(self, theta: Theta, order: npt.NDArray[np.int64], rate: float) -> Theta:
        """Where (1) leads."""


@storable
@dataclass(frozen=True, kw_only=True)
class SgdState(State[Theta]):
    """A state with the rate as it has become, and how long the best value has stood."""

    rate: float
    best: float
    stale: int = 0
    draws: Draws = field(repr=False)


@dataclass(frozen=True)
class SGD:
    """Ascend by (1); ``learning_rate`` is the first rate."""

    asks: ClassVar[type] = Summed

    learning_rate: float
    decay: float = 0.8
    patience: int = 50

    def __post_init__(self) -> None:
        if not 0 < self.learning_rate < np.inf:
            raise SettingError(f"learning_rate must be a number above 0, got {self.learning_rate}")
        if not 0 < self.decay <= 1:
            raise SettingError(f"decay must be above 0 and at most 1, got {self.decay}")

    def init(self, problem: Summed, theta: Theta, rng: np.random.Generator) -> SgdState:
        """Before the first epoch."""
        value = problem.value(theta)
        return SgdState(theta, value, rate=self.learning_rate, best=value, draws=draws_of(rng))

    def step(self, problem: Summed, state: SgdState) -> SgdState:
        """One epoch."""
        rng = drawing_from(state.draws)
        if state.stale >= self.patience:
            return replace(self.init(problem, problem.start(rng), rng), steps=state.steps + 1)
        theta = problem.pass_over(state.theta, rng.permutation(problem.parts), state.rate)
        value = problem.value(theta) if np.all(np.isfinite(theta)) else np.nan
        if not np.isfinite(value):
            return replace(state, done=True, trouble=diverged(state.rate, state.steps + 1))
        return SgdState(
            theta,
            value,
            state.steps + 1,
            rate=state.rate * (self.decay if value < state.value else 1.0),
            best=max(value, state.best),
            stale=0 if value > state.best else state.stale + 1,
            draws=draws_of(rng),
        )
