"""Exact steps along a slope and along each coordinate.

    theta <- theta + alpha* g(theta),    then a round of exact coordinate ascent                                (1)

with alpha* the best of all step lengths. g need not be the slope of what is made large: a lambda function is a good guess at
where a measure rises, and the exact step says how far it does.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from exactrank.optimizers.base import Theta
from exactrank.optimizers.coordinate import NO_LIMITS, CoordinateSearch, CoordinateState, Profiled, ascended


class Steered(Profiled, Protocol):
    """A problem whose best point along a line is known, and that says along which to look."""

    def slope(self, theta: Theta) -> Theta:
        """A direction in which the value may rise."""


@dataclass(frozen=True)
class SlopeAndCoordinates:
    """(1); done when a round gains less than ``tolerance``."""

    asks: ClassVar[type] = Steered

    tolerance: float = 1e-6

    def init(self, problem: Steered, theta: Theta, rng: np.random.Generator) -> CoordinateState:
        """At ``theta``."""
        return self._rounds.init(problem, theta, rng)

    def step(self, problem: Steered, state: CoordinateState) -> CoordinateState:
        """One round, after a step along the slope."""
        slope = problem.slope(state.theta)
        spot = problem.at(state.theta)
        if np.any(slope):
            spot = ascended(spot, slope, NO_LIMITS)
        after = self._rounds.step(problem, replace(state, theta=spot.theta, value=spot.value))
        return replace(after, done=after.value < state.value + self.tolerance)

    @property
    def _rounds(self) -> CoordinateSearch:
        return CoordinateSearch("cyclic", tolerance=self.tolerance)
