"""The concave-convex procedure (Yuille & Rangarajan 2003) for a convex function less another.

At each point the function that is taken off is replaced by its tangent there. What remains is convex, lies above the whole
function and touches it at that point, so

    J(theta') <= convex(theta'; theta) <= convex(theta; theta) = J(theta)                                        (1)

for its minimiser theta': a step never ascends. Each step is a convex problem, for any optimizer of those. Where many steps go the
same way they are short; so each goes on in its direction, twice as far and twice again, while that descends.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from exactrank.errors import SettingError
from exactrank.optimizers.base import Optimizer, State, Theta
from exactrank.optimizers.cutting_plane import PlanesState, Regularised, SumOfMaxima, value_of


class DifferenceOfConvex(Regularised, Protocol):
    """A problem that has a convex one above it."""

    def convexified(self, theta: Theta) -> SumOfMaxima:
        """The convex problem that touches this one at ``theta``."""


@dataclass(frozen=True)
class ConcaveConvex:
    """Steps of (1) by ``inner``, each of at most ``most`` of its steps; done when one gains less than ``tolerance``, relatively."""

    asks: ClassVar[type] = DifferenceOfConvex

    inner: Optimizer[SumOfMaxima, Theta, PlanesState]
    most: int = 200
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        if self.most < 1 or not self.tolerance >= 0:
            raise SettingError(
                f"the concave-convex procedure needs steps and a tolerance of at least 0, got {self.most} and {self.tolerance}"
            )

    def init(self, problem: DifferenceOfConvex, theta: Theta, rng: np.random.Generator) -> State[Theta]:
        """At ``theta``."""
        return State(theta, _value(problem, theta))

    def step(self, problem: DifferenceOfConvex, state: State[Theta]) -> State[Theta]:
        """The minimiser of the convex problem at hand, where it descends."""
        rng = np.random.default_rng(state.steps)
        convex = problem.convexified(state.theta)
        within = self.inner.init(convex, state.theta, rng)
        for _ in range(self.most):
            if within.done:
                break
            within = self.inner.step(convex, within)
        value = _value(problem, within.theta)
        if value <= state.value:
            return State(state.theta, state.value, state.steps + 1, done=True, trouble=within.trouble)
        theta = within.theta
        while (reached := _value(problem, farther := state.theta + 2 * (theta - state.theta))) > value:
            theta, value = farther, reached
        flat = value - state.value <= self.tolerance * abs(value)
        return State(theta, value, state.steps + 1, done=flat or bool(within.trouble), trouble=within.trouble)


def _value(problem: Regularised, theta: Theta) -> float:
    return value_of(problem, theta, problem.risk(theta)[0])
