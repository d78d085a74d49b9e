"""Exact steps along random directions, where a constraint stops those along coordinates.

At a bound no single weight may gain any more, though several together could: the value rises along the edge of what is allowed, which runs
across the coordinates. So once a round gains nothing there, exact steps follow along

    u_k = z_k / sd_k,    z_k standard normal, drawn anew for each step                                          (1)

with sd_k the spread of feature k, so that each weight moves the scores alike (Solis & Wets 1981 draw theirs so). A step that gains gives
the next round something to go on with; where none of ``STEPS`` per weight gains, the search ends.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from exactrank._support.numerics import standard_normal
from exactrank.learning.objectives.linear_profile import Direction
from exactrank.learning.optimizers.base import Theta
from exactrank.learning.optimizers.coordinate import (
    CoordinateSearch,
    CoordinateState,
    Powell,
    PowellState,
    Profiled,
    Spot,
    ascended,
    settled,
)

STEPS = 4  #: per weight


class BoundedSpot(Spot, Protocol):
    """A point of a problem with constraints."""

    def stopped(self, direction: Direction, low: float, high: float) -> bool:
        """Return whether a constraint keeps the value from rising along ``direction``."""


class Bounded(Profiled, Protocol):
    """A problem with constraints."""

    def at(self, theta: Theta) -> BoundedSpot:
        """The point ``theta``."""


@dataclass(frozen=True)
class RandomDirections:
    """``rounds``, and (1) where those gain less than their tolerance and a constraint binds; ``scale`` is 1 / sd, or 0 for a constant."""

    asks: ClassVar[type] = Bounded

    rounds: CoordinateSearch | Powell
    scale: Theta
    seed: int = 0

    def init(self, problem: Bounded, theta: Theta, rng: np.random.Generator) -> CoordinateState | PowellState:
        """Return the initial state of the rounds."""
        return self.rounds.init(problem, theta, rng)

    def step(self, problem: Bounded, state: CoordinateState | PowellState) -> CoordinateState | PowellState:
        """Return the state after a round and the steps of (1); the draws are those of the step's number."""
        after, limits = cast(Any, self.rounds).step(problem, state), self.rounds.limits
        spot, dimension = problem.at(after.theta), problem.dimension
        if not after.done or not any(spot.stopped(k, *limits.along(k, spot.theta)) for k in range(dimension)):
            return cast(CoordinateState | PowellState, after)
        rng = np.random.default_rng([self.seed, after.steps])
        for _ in range(STEPS * dimension):
            spot = ascended(spot, standard_normal(rng, dimension) * self.scale, limits)
        theta, value = settled(problem, spot, after, limits)
        result: CoordinateState | PowellState = replace(after, theta=theta, value=value, done=value < after.value + self.rounds.tolerance)
        return result
