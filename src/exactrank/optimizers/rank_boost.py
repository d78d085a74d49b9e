"""Boosting by edges: RankBoost with its third choice of alpha (Freund, Iyer, Schapire & Singer 2003, sections 3.1 and 3.2).

    alpha = 1/2 ln((1 + r) / (1 - r)),    r the largest edge to either side, of the step h                       (1)
    s <- s + alpha h,    loss <- at most sqrt(1 - r^2) loss                                                      (2)

The problem knows the exponential loss of scores, and which step has the largest edge. Alpha is rounded to a multiple of 2^-40: sums of
such numbers are exact up to 2^12, so it does not matter in which order a model adds up its steps.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from exactrank.optimizers.base import State, Theta
from exactrank.stored import storable

GRID = 2.0**-40
#: An edge of 1 would have an infinite alpha; one this large ends the search.
SURE = 1 - 1e-12


class Found(Protocol):
    """A step that can be made."""

    @property
    def loss(self) -> float:
        """The loss before it."""

    @property
    def edge(self) -> float:
        """r, from -1 to 1."""

    @property
    def place(self) -> tuple[float, ...]:
        """What theta says of it besides its alpha."""


F = TypeVar("F", bound=Found)


class Boosted(Protocol[F]):
    """A problem whose scores are sums of steps."""

    def scores(self, theta: Theta) -> Theta:
        """The sums of the steps of ``theta``."""

    def best(self, scores: Theta) -> F:
        """The step with the largest edge at ``scores``."""

    def moved(self, scores: Theta, step: F, alpha: float) -> Theta:
        """The scores after ``step`` times ``alpha``."""


@storable
@dataclass(frozen=True, kw_only=True)
class BoostState(State[Theta], Generic[F]):
    """A state with its scores and the step to come."""

    scores: Theta = field(repr=False)
    found: F


@dataclass(frozen=True)
class RankBoost:
    """Make the loss small; the value is its negation. Done when no step has an edge, or one orders all that can be ordered.

    Without any step all scores tie, so the start is after the first one.
    """

    asks: ClassVar[type] = Boosted

    def init(self, problem: Boosted[F], theta: Theta, rng: np.random.Generator) -> BoostState[F]:
        """After the step that follows those of ``theta``."""
        scores = problem.scores(theta)
        found = problem.best(scores)
        before = BoostState(theta, -found.loss, done=_is_last(found), scores=scores, found=found)
        return before if before.done else self.step(problem, before)

    def step(self, problem: Boosted[F], state: BoostState[F]) -> BoostState[F]:
        """One step more."""
        made, alpha = state.found, confidence(state.found.edge)
        scores = problem.moved(state.scores, made, alpha)
        found = problem.best(scores)
        if not math.isfinite(found.loss):
            return replace(state, done=True, trouble=f"after {state.steps} rounds the weights of pairs overflow; take fewer")
        done = abs(made.edge) >= SURE or _is_last(found)
        return BoostState(np.append(state.theta, [*made.place, alpha]), -found.loss, state.steps + 1, done, scores=scores, found=found)


def confidence(edge: float) -> float:
    """(1), rounded.

    >>> confidence(0.5), confidence(-1.0) > -15
    (0.5493061443339684, True)
    """
    return round(math.atanh(min(max(edge, -SURE), SURE)) / GRID) * GRID


def _is_last(found: Found) -> bool:
    """Is there nothing left to gain?"""
    return found.loss == 0 or confidence(found.edge) == 0
