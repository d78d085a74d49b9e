"""The concave-convex procedure (Yuille & Rangarajan 2003) for the difference of two convex functions.

At each point the subtracted function is replaced by its tangent. The result is convex, lies above the original function and touches it
at that point, so

    J(theta') <= convex(theta'; theta) <= convex(theta; theta) = J(theta)                                        (1)

for its minimizer theta': a step never ascends. Each step is a convex problem, for any optimizer of those. Many short steps may go in
the same direction; so each step is doubled again and again while that descends.

That is slow for many problems that differ only in strength. If both functions are available, J = penalty + f - h, planes below f stay
valid for any h and any strength. So a **bundle** of them is kept, and each step evaluates the functions once:

    theta+ = argmin_t  penalty(t) + max_k (f(theta_k) + f'_k . (t - theta_k)) - h'(theta) . t + pull/2 |t - theta|^2        (2)

The tangent of h only moves the center of the quadratic terms. If J falls by a share of what (2) promises, theta moves there, and h gets
a new tangent; otherwise the pull grows. The next problem goes on from the same theta and planes.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from exactrank._core import Planes
from exactrank._support.numerics import dot
from exactrank._support.serialize import storable
from exactrank.errors import SettingError
from exactrank.learning.optimizers.base import Optimizer, State, Theta
from exactrank.learning.optimizers.cutting_plane import (
    FASTEST,
    FINE,
    LEAST_PULL,
    TRUSTED,
    PlanesState,
    Regularized,
    SumOfMaxima,
    solve,
    tangent,
    value_of,
)

#: The first step, by the only known slope, would gain this share of the value; theta moves if this share of the promise is kept.
FIRST, MOVES = 0.03, 0.1


class DifferenceOfConvex(Regularized, Protocol):
    """A problem that is bounded from above by convex ones."""

    def convexify(self, theta: Theta) -> SumOfMaxima:
        """Return the convex problem above this one that touches it at ``theta``."""


@dataclass(frozen=True)
class ConcaveConvex:
    """Minimize by steps (1), each of at most ``max_steps`` steps of ``inner``; done when one gains less than ``tolerance``, relatively."""

    asks: ClassVar[type] = DifferenceOfConvex

    inner: Optimizer[SumOfMaxima, Theta, PlanesState]
    max_steps: int = 200
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        if self.max_steps < 1 or not self.tolerance >= 0:
            raise SettingError(
                f"the concave-convex procedure needs steps and a tolerance of at least 0, got {self.max_steps} and {self.tolerance}"
            )

    def init(self, problem: DifferenceOfConvex, theta: Theta, rng: np.random.Generator) -> State[Theta]:
        """Start at ``theta``."""
        return State(theta, _value(problem, theta))

    def step(self, problem: DifferenceOfConvex, state: State[Theta]) -> State[Theta]:
        """Step to the minimizer of the convex problem, if that descends."""
        rng = np.random.default_rng(state.steps)
        convex = problem.convexify(state.theta)
        within = self.inner.init(convex, state.theta, rng)
        for _ in range(self.max_steps):
            if within.is_done:
                break
            within = self.inner.step(convex, within)
        value = _value(problem, within.theta)
        if value <= state.value:
            return State(state.theta, state.value, state.steps + 1, is_done=True, trouble=within.trouble)
        theta = within.theta
        while (reached := _value(problem, farther := state.theta + 2 * (theta - state.theta))) > value:
            theta, value = farther, reached
        flat = value - state.value <= self.tolerance * abs(value)
        return State(theta, value, state.steps + 1, is_done=flat or bool(within.trouble), trouble=within.trouble)


def _value(problem: Regularized, theta: Theta) -> float:
    return value_of(problem, theta, problem.risk(theta)[0])


Tangent = tuple[float, Theta]  #: a function's value, and a subgradient of it


class SplitRisk(Regularized, Protocol):
    """A problem whose risk is the difference f - h of two convex functions that can be evaluated."""

    def split(self, theta: Theta) -> tuple[Tangent, Tangent]:
        """Return f and h at ``theta``."""


@storable
@dataclass(frozen=True, kw_only=True)
class SplitRiskState(State[Theta]):
    """A state with f and h at theta, the planes below f, and the pull of (2)."""

    f: Tangent = field(repr=False)
    h: Tangent = field(repr=False)
    planes: Planes = field(repr=False)
    pull: float


@dataclass(frozen=True)
class ConcaveConvexBundle:
    """Minimize by steps (2) until one promises to gain less than ``tolerance``, relatively.

    Planes without effect for ``keep`` steps are dropped; the program is solved no better than a share ``inexact`` of what a step can
    gain, in at most ``sweeps`` visits of its planes.
    """

    asks: ClassVar[type] = SplitRisk

    tolerance: float = 1e-3
    keep: int = 20
    inexact: float = 0.1
    sweeps: int = 10_000

    def init(self, problem: SplitRisk, theta: Theta, rng: np.random.Generator) -> SplitRiskState:
        """Start at ``theta``, with the plane there."""
        f, h = problem.split(theta)
        planes = Planes(1, problem.strength, problem.center)
        planes.add(np.zeros(1, np.int64), *tangent(theta, *f))
        value = value_of(problem, theta, f[0] - h[0])
        if not np.isfinite(value + f[1].sum() + h[1].sum()):
            trouble = "the objective or its slope is not finite at the start; scale the features or the start down"
            return SplitRiskState(theta, value, is_done=True, trouble=trouble, f=f, h=h, planes=planes, pull=0.0)
        slope = f[1] - h[1] + problem.strength * (theta - problem.center)
        pull = dot(slope, slope) / (2 * FIRST * max(abs(value), 1e-300)) - problem.strength
        return SplitRiskState(theta, value, f=f, h=h, planes=planes, pull=max(pull, LEAST_PULL * problem.strength))

    def resume(self, problem: SplitRisk, state: SplitRiskState, rng: np.random.Generator) -> SplitRiskState:
        """Return the state to start from on a problem that differs only in strength or center: all planes stay valid."""
        value = value_of(problem, state.theta, state.f[0] - state.h[0])
        return replace(state, value=value, steps=0, is_done=bool(state.trouble), pull=max(state.pull, LEAST_PULL * problem.strength))

    def step(self, problem: SplitRisk, state: SplitRiskState) -> SplitRiskState:
        """Step to the minimum of (2), if J falls enough."""
        planes, strength = state.planes.copy(), problem.strength + state.pull
        # all but the planes is one quadratic term, plus a constant
        center = (problem.strength * problem.center + state.pull * state.theta + state.h[1]) / strength
        planes.pose(strength, center)
        offset = state.theta - center
        upper_bound = state.f[0] + 0.5 * strength * dot(offset, offset)
        trouble = solve(planes, upper_bound, self.inexact, FINE * self.tolerance * abs(state.value), self.sweeps)
        if trouble:
            return replace(state, steps=state.steps + 1, is_done=True, trouble=trouble)
        planes.drop(self.keep)
        theta = planes.theta()
        linear = state.h[0] + dot(state.h[1], theta - state.theta)
        promised = value_of(problem, theta, planes.height() - linear) - state.value
        f, h = problem.split(theta)
        planes.add(np.zeros(1, np.int64), *tangent(theta, *f))
        value, converged = value_of(problem, theta, f[0] - h[0]), promised <= self.tolerance * abs(state.value)
        if not value - state.value >= MOVES * promised or not value > state.value:
            return replace(state, steps=state.steps + 1, is_done=converged, planes=planes, pull=state.pull * FASTEST)
        slack = FASTEST if value - state.value > TRUSTED * promised else 1.0
        pull = max(state.pull / slack, LEAST_PULL * problem.strength)
        return SplitRiskState(theta, value, state.steps + 1, converged, f=f, h=h, planes=planes, pull=pull)
