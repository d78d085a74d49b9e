"""Steepest and conjugate subgradients with backtracking (Chapelle, Le & Smola 2007, section 3.3.1; Wolfe 1975).

    theta+ = theta + reach * direction,    direction = -G,  G = strength (theta - center) + a subgradient of the risk    (1)

A step evaluates the risk once. If J falls by a tenth of what the direction promises, theta moves and the reach grows; otherwise the
reach is halved, until nothing can be gained. At a kink a subgradient need not point down. The conjugate method searches for a
direction that does: after a step that fails it adds the subgradient G_k there to those it has, and takes

    direction = -argmin |X|^2  over X in the convex hull of the G_k                                               (2)

After a step down it keeps X and the new subgradient: on a quadratic function, searched exactly, those are conjugate gradients.

For a convex risk each subgradient is a plane below it, and planes bound J from below. They also help when (1) is stuck: then the steps
become those of `Bundle`, with the planes so far. For other risks (``convex=False``) there is no bound, and the descent ends there.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from exactrank._core import Planes
from exactrank._support.arguments import check_number
from exactrank._support.numerics import dot
from exactrank._support.serialize import storable
from exactrank.learning.optimizers.base import Duality, State, Theta
from exactrank.learning.optimizers.cutting_plane import Bundle, OnePartProblem, PlanesState, Regularized, tangent, value_of

#: The least gain of a step down, as a share of what its direction promises, and the growth of the reach after it.
LEAST_GAIN, GROWTH = 0.1, 1.5
#: The descent is stuck if a step promises less than this share of the tolerance; planes take over at this tolerance.
STUCK, TAKE_OVER = 0.1, 1e-3


@storable
@dataclass(frozen=True, kw_only=True)
class SubgradientState(State[Theta]):
    """A state with the slope at theta and subgradients near it."""

    slope: Theta  #: G at theta
    subgradients: tuple[Theta, ...]  #: the G_k of (2), the newest last
    reach: float
    below: PlanesState | None  #: the planes so far, if the risk is convex
    stuck: bool = False


@dataclass(frozen=True)
class Subgradient:
    """Descend by (1), or with ``conjugate`` by (2); done when the gap, if there is one, is a share ``tolerance`` of the value."""

    asks: ClassVar[type] = Regularized

    conjugate: bool = False
    tolerance: float = 1e-3
    convex: bool = True

    def __post_init__(self) -> None:
        check_number("the tolerance", self.tolerance, above=True)

    def init(self, problem: Regularized, theta: Theta, rng: np.random.Generator, below: PlanesState | None = None) -> SubgradientState:
        """Start at ``theta``; ``below`` are planes of an earlier problem."""
        risk, subgradient = problem.risk(theta)
        if below is None and self.convex:
            below = Bundle(self.tolerance).start_with(OnePartProblem(problem), theta, tangent(theta, risk, subgradient), rng)
        value = value_of(problem, theta, risk)
        slope = subgradient + problem.strength * (theta - problem.center)
        steepness = dot(slope, slope)
        if not np.isfinite(value + steepness):
            trouble = "the objective is not finite at the start; scale the features or the start down"
            return SubgradientState(theta, -np.inf, 0, True, trouble, slope=slope, subgradients=(slope,), reach=0.0, below=below)
        reach = min(abs(value) / steepness if value != 0 and steepness > 0 else np.inf, 1 / problem.strength)
        return self._certify(SubgradientState(theta, value, slope=slope, subgradients=(slope,), reach=reach, below=below))

    def resume(self, problem: Regularized, state: SubgradientState, rng: np.random.Generator) -> SubgradientState:
        """Return the state to start from on a problem that differs only in strength or center."""
        below = None if state.below is None else Bundle(self.tolerance).resume(problem, state.below, rng)
        return self.init(problem, state.theta, rng, below)

    def step(self, problem: Regularized, state: SubgradientState) -> SubgradientState:
        """Return the state after another evaluation of the risk."""
        direction = -least_norm(state.subgradients)
        if self._is_stuck(state, direction):  # subgradients at other points may mislead
            state, direction = replace(state, subgradients=(state.slope,)), -state.slope
        if state.stuck or self._is_stuck(state, direction):
            if state.below is None:
                return replace(state, steps=state.steps + 1, is_done=True)
            below, steps = Bundle(self.tolerance).step(problem, state.below), state.steps + 1
            after = replace(state, theta=below.theta, value=below.value, steps=steps, trouble=below.trouble, below=below, stuck=True)
            return self._certify(after)
        theta = state.theta + state.reach * direction
        risk, subgradient = problem.risk(theta)
        value = value_of(problem, theta, risk)
        slope = subgradient + problem.strength * (theta - problem.center)
        state = replace(state, steps=state.steps + 1)
        if not np.isfinite(value + slope.sum()):
            return replace(state, reach=state.reach / 2)
        if state.below is not None:
            planes, touching = state.below.planes.copy(), tangent(theta, risk, subgradient)
            state = replace(state, below=Bundle(self.tolerance).add_planes(OnePartProblem(problem), state.below, planes, theta, touching))
        if value < state.value + LEAST_GAIN * state.reach * dot(direction, direction):
            subgradients = (*state.subgradients, slope) if self.conjugate else state.subgradients
            return self._certify(replace(state, subgradients=subgradients, reach=state.reach / 2))
        subgradients = (-direction, slope) if self.conjugate else (slope,)
        reach = min(GROWTH * state.reach, 1 / problem.strength)
        return self._certify(replace(state, theta=theta, value=value, slope=slope, subgradients=subgradients, reach=reach))

    def _is_stuck(self, state: SubgradientState, direction: Theta) -> bool:
        tolerance = self.tolerance if state.below is None else max(self.tolerance, TAKE_OVER)
        return state.reach * dot(direction, direction) <= STUCK * tolerance * abs(state.value)

    def _certify(self, state: SubgradientState) -> SubgradientState:
        if state.below is None:
            return state
        duality = Duality(-state.value, state.below.duality.dual)
        return replace(state, duality=duality, is_done=bool(state.trouble) or duality.gap <= self.tolerance)


def least_norm(points: tuple[Theta, ...]) -> Theta:
    """Return the point of the convex hull of ``points`` nearest to 0, (2): the minimum of 1/2 |t|^2 + max_k G_k . t is at -X."""
    if len(points) == 1:
        return points[0]
    normals = np.array(points)
    hull = Planes(1, 1.0, np.zeros(normals.shape[1]))
    hull.add(np.zeros(len(points), dtype=np.int64), np.zeros(len(points)), normals)
    hull.solve(1e-6 * float((normals**2).sum(axis=1).max()), 1000)
    return -hull.theta()
