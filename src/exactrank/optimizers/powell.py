"""Powell's method (1964) with an exact line search: directions other than the coordinates, learnt on the way.

A round steps along each of d directions, at first the coordinates, then along where the round led as a whole,

    p = theta_end - theta_start                                                                                 (1)

and p takes the place of the direction that gained the most in the round, which it contains most of. So one exact step can move
all weights, as Tan, Xia, Guo & Wang (2013) suggest for future work.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from exactrank.objectives.linear_profile import Direction
from exactrank.optimizers.base import State, Theta
from exactrank.optimizers.coordinate import NO_LIMITS, Limits, Profiled, ascended, settled
from exactrank.stored import storable


@storable
@dataclass(frozen=True)
class PowellState(State[Theta]):
    """A state with the directions: numbers of coordinates, and vectors."""

    directions: tuple[Direction, ...] = ()


@dataclass(frozen=True)
class Powell:
    """A step is one round over all directions and (1). Done when it gains less than ``tolerance``."""

    asks: ClassVar[type] = Profiled

    limits: Limits = NO_LIMITS
    tolerance: float = 1e-6

    def init(self, problem: Profiled, theta: Theta, rng: np.random.Generator) -> PowellState:
        """Start at ``theta``, brought within the limits, with the coordinates."""
        start = np.clip(theta, self.limits.low, self.limits.high)
        return PowellState(start, problem.value(start), directions=tuple(range(problem.dimension)))

    def step(self, problem: Profiled, state: PowellState) -> PowellState:
        """One round."""
        start = spot = problem.at(state.theta)
        gains = []
        for direction in state.directions:
            before = spot.value
            spot = ascended(spot, direction, self.limits)
            gains.append(spot.value - before)
        led = spot.theta - start.theta
        directions = list(state.directions)
        if np.count_nonzero(led) > 1:
            spot = ascended(spot, led, self.limits)
            del directions[int(np.argmax(gains))]
            directions.append(led)
        theta, value = settled(problem, spot, state, self.limits)
        return PowellState(theta, value, state.steps + 1, value < state.value + self.tolerance, directions=tuple(directions))
