"""Growth: an iterate that gets larger by one part with every step, such as a forest by a tree.

It asks its problem for the next part alone, and ends when there is none.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from exactrank.optimizers.base import State


class Counted(Protocol):
    """Something that has parts."""

    @property
    def count(self) -> int:
        """How many there are."""


It = TypeVar("It", bound=Counted)


class Growing(Protocol[It]):
    """A problem that knows how an iterate goes on."""

    @property
    def barren(self) -> str:
        """Why there is no first part, where that is so."""

    def grown(self, iterate: It) -> It:
        """``iterate`` with one part more, or with as many where none can follow."""


@dataclass(frozen=True)
class Growth(Generic[It]):
    """One part with every step. The problem's value is nowhere asked for."""

    asks: ClassVar[type] = Growing

    def init(self, problem: Growing[It], theta: It, rng: np.random.Generator) -> State[It]:
        """What there is; of nothing, the first part: nothing cannot be judged."""
        state = State(theta, math.nan, theta.count)
        return state if theta.count else self.step(problem, state)

    def step(self, problem: Growing[It], state: State[It]) -> State[It]:
        """One part more."""
        more = problem.grown(state.theta)
        if more.count > state.steps:
            return State(more, math.nan, more.count)
        return replace(state, theta=more, done=True, trouble="" if state.steps else problem.barren)
