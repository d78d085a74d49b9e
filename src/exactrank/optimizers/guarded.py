"""A problem whose steps must not do harm elsewhere.

    step from theta to theta' is allowed if  f(theta') > f(theta)  and  g(theta') >= g(theta)                    (1)

f is what is made large; g is the same on data that f does not see, as the queries that a bootstrap sample leaves out. A step
that fails at g reports the value -inf, which no optimizer takes.
"""

import math
from dataclasses import dataclass

import numpy as np

from exactrank.objectives.linear_profile import Direction
from exactrank.objectives.step_function import Interval
from exactrank.optimizers.base import Theta
from exactrank.optimizers.coordinate import Profiled, Spot


@dataclass(frozen=True)
class Guarded:
    """``problem`` under the guard of another, (1)."""

    problem: Profiled
    guard: Profiled

    @property
    def dimension(self) -> int:
        """How many coordinates there are."""
        return self.problem.dimension

    def value(self, theta: Theta) -> float:
        """The problem's value, whatever the guard says."""
        return self.problem.value(theta)

    def at(self, theta: Theta) -> "GuardedSpot":
        """The point ``theta``."""
        return GuardedSpot(self.problem.at(theta), self.guard.at(theta), -math.inf)


@dataclass(frozen=True)
class GuardedSpot:
    """A point of both; ``least`` is what the guard's value has to reach."""

    spot: Spot
    guard: Spot
    least: float

    @property
    def theta(self) -> Theta:
        """Its coordinates."""
        return self.spot.theta

    @property
    def value(self) -> float:
        """The problem's value there, or -inf where the guard's fell."""
        return self.spot.value if self.guard.value >= self.least else -math.inf

    def best(self, direction: Direction, low: float, high: float) -> Interval:
        """The best stretch for the problem."""
        return self.spot.best(direction, low, high)

    def point(self, direction: Direction, interval: Interval) -> float:
        """The alpha that the problem takes."""
        return self.spot.point(direction, interval)

    def moved(self, direction: Direction, alpha: float) -> "GuardedSpot":
        """Both moved; from 0, where everything ties, any step is allowed."""
        least = self.guard.value if np.any(self.theta) else -math.inf
        return GuardedSpot(self.spot.moved(direction, alpha), self.guard.moved(direction, alpha), least)
