"""Adam (Kingma & Ba 2015) on batches of summands.

    m <- b1 m + (1 - b1) g,    v <- b2 v + (1 - b2) g^2                                                         (1)
    theta <- theta + rate  m / (1 - b1^t)  /  (sqrt(v / (1 - b2^t)) + epsilon)                                   (2)

with g the slope of ``batch_size`` summands, in random order. A step is one epoch: all summands once.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from exactrank.errors import SettingError
from exactrank.optimizers.base import Draws, State, Theta, diverged, drawing_from, draws_of
from exactrank.stored import storable


class Batched(Protocol):
    """A problem that is a sum of parts, some of which can be asked for their slope."""

    @property
    def parts(self) -> int:
        """How many there are."""

    def value(self, theta: Theta) -> float:
        """The objective at ``theta``."""

    def slope_of(self, theta: Theta, parts: npt.NDArray[np.int64]) -> tuple[float, Theta]:
        """The mean of some parts, and its slope."""


@storable
@dataclass(frozen=True, kw_only=True)
class AdamState(State[Theta]):
    """A state with the running means (1) and how many batches made them."""

    first: Theta
    second: Theta
    batches: int = 0
    draws: Draws = field(repr=False)


@dataclass(frozen=True)
class Adam:
    """Ascend by (1) and (2); the rate is ``learning_rate``."""

    asks: ClassVar[type] = Batched

    learning_rate: float = 0.01
    batch_size: int = 32
    b1: float = 0.9
    b2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        if not 0 < self.learning_rate < np.inf:
            raise SettingError(f"learning_rate must be a number above 0, got {self.learning_rate}")
        if self.batch_size < 1:
            raise SettingError(f"batch_size must be at least 1, got {self.batch_size}")

    def init(self, problem: Batched, theta: Theta, rng: np.random.Generator) -> AdamState:
        """Before the first epoch."""
        nothing = np.zeros(len(theta))
        return AdamState(theta, problem.value(theta), first=nothing, second=nothing, draws=draws_of(rng))

    def step(self, problem: Batched, state: AdamState) -> AdamState:
        """One epoch."""
        rng = drawing_from(state.draws)
        theta, first, second, t = state.theta, state.first, state.second, state.batches
        order = rng.permutation(problem.parts)
        for begin in range(0, problem.parts, self.batch_size):
            _, slope = problem.slope_of(theta, order[begin : begin + self.batch_size])
            t += 1
            first = self.b1 * first + (1 - self.b1) * slope
            second = self.b2 * second + (1 - self.b2) * slope**2
            theta = theta + self.learning_rate * (first / (1 - self.b1**t)) / (np.sqrt(second / (1 - self.b2**t)) + self.epsilon)
        value = problem.value(theta) if np.all(np.isfinite(theta)) else np.nan
        if not np.isfinite(value):
            return replace(state, done=True, trouble=diverged(self.learning_rate, state.steps + 1))
        return AdamState(theta, value, state.steps + 1, first=first, second=second, batches=t, draws=draws_of(rng))
