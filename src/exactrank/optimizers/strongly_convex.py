"""A smooth convex problem with a quadratic term: its slope says how far the optimum is.

    J(t) >= J(theta) + g . (t - theta) + strength/2 |t - theta|^2 >= J(theta) - |g|^2 / (2 strength)            (1)

for the slope g of J at theta and every t, so any ascent method for smooth functions can end at a gap between primal and dual.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from exactrank.optimizers.base import Duality, Theta
from exactrank.optimizers.lbfgs import LBFGS, LbfgsState, Sloped


class StronglyConvexProblem(Sloped, Protocol):
    """A problem whose value is concave even without ``strength / 2 |theta|^2`` taken off."""

    @property
    def strength(self) -> float:
        """How much of a quadratic term there is."""


_LBFGS = LBFGS()


@dataclass(frozen=True)
class StronglyConvex:
    """L-BFGS until the gap of (1) is below ``tolerance``, relatively."""

    asks: ClassVar[type] = StronglyConvexProblem

    tolerance: float = 1e-3

    def init(self, problem: StronglyConvexProblem, theta: Theta, rng: np.random.Generator) -> LbfgsState:
        """At ``theta``."""
        return self._certified(problem, _LBFGS.init(problem, theta, rng))

    def resumed(self, problem: StronglyConvexProblem, state: LbfgsState, rng: np.random.Generator) -> LbfgsState:
        """From where ``state`` stands; what it remembers belongs to another problem."""
        return self.init(problem, state.theta, rng)

    def step(self, problem: StronglyConvexProblem, state: LbfgsState) -> LbfgsState:
        """One step of L-BFGS."""
        return self._certified(problem, _LBFGS.step(problem, state))

    def _certified(self, problem: StronglyConvexProblem, state: LbfgsState) -> LbfgsState:
        slope = state.slope
        duality = Duality(-state.value, -state.value - float(slope @ slope) / (2 * problem.strength))
        return replace(state, duality=duality, done=state.done or duality.gap <= self.tolerance)
