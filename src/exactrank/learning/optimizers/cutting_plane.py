"""Cutting planes for convex functions with a quadratic term, which large-margin methods minimize.

    J(theta) = strength/2 |theta - center|^2 + risk(theta),    risk(theta) = sum_p risk_p(theta)                 (1)

The risk need not have a slope everywhere; each evaluation returns a plane below it that touches it at theta. Planes bound J from below,
so the distance to the optimum is bounded (Teo, Le, Smola & Vishwanathan 2007). Each part of the risk is modeled by its planes so far
(Chapelle, Le & Smola 2007, Algorithm 1; Tsochantaridis et al. 2005):

    model(t) = strength/2 |t - center|^2 + sum_p max_{i in p} (b_i + v_i . t)  <=  J(t)                          (2)

A step minimizes the model, asks every part for its plane there, and adds these to the model. The program is solved in the dual, which
bounds J from below, with the authors' four savings: the dual variables are kept from step to step, planes without effect for ``keep``
steps are dropped, the program is solved no better than a share ``inexact`` of what a step can gain, and a part's new variable is moved
first.

The smaller the strength, the harder the program, and the farther its solution can lie from all earlier thetas, where the planes say
little. So a pull keeps the step close to the best theta,

    theta+ = argmin_t  model(t) + pull/2 |t - theta|^2                                                           (3)

which also makes the program easy. The pull decreases while J falls by most of what the model promises; otherwise it is changed until a
step would gain the share ``level`` of the gap between the best value and the bound (as level methods do: Lemarechal,
Nemirovskii & Nesterov 1995). A level of 1 is no pull, as published.

A **bundle** of planes (Teo et al. 2007) has the whole risk as its only part, with g_k a subgradient at the k-th theta:

    strength/2 |t - center|^2 + max_k (risk(theta_k) + g_k . (t - theta_k))  <=  J(t)                            (4)

The program has one variable per step, whatever the number of parts. One plane says less than a plane per part, so more steps are needed,
and shorter ones: the level is lower.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from exactrank._core import Planes
from exactrank._support.arguments import check_number
from exactrank._support.numerics import dot, matmul
from exactrank._support.serialize import storable
from exactrank.errors import SettingError
from exactrank.learning.optimizers.base import Draws, Duality, State, Theta, drawing_from, draws_of

Touching = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]  #: offsets and normals of planes, one for each part
#: The pull changes by no more than this factor in a step, and begins with at least this share of the strength.
FASTEST, LEAST_PULL = 4.0, 0.01
#: A model that keeps this share of its promise needs less pull.
TRUSTED = 0.7
#: Programs are solved no better than this share of the value, because of rounding, nor than this share of the tolerance.
FINEST, FINE = 1e-10, 0.1

storable(Planes)


class Regularized(Protocol):
    """(1), to be minimized, with a risk that is one convex function."""

    @property
    def strength(self) -> float:
        """The weight of the quadratic term, above 0."""

    @property
    def center(self) -> Theta:
        """The point at which the quadratic term is 0."""

    def risk(self, theta: Theta) -> tuple[float, Theta]:
        """Return the risk at ``theta`` and a subgradient of it there."""


class SumOfMaxima(Regularized, Protocol):
    """(1), where the risk is a sum of parts, each the largest of many planes."""

    @property
    def parts(self) -> int:
        """The number of parts."""

    def planes(self, theta: Theta, parts: npt.NDArray[np.int64]) -> Touching:
        """Return the offsets and normals of the planes that touch each of ``parts`` at ``theta``."""


def penalty(problem: Regularized, theta: Theta) -> float:
    """Return the quadratic term at ``theta``."""
    offset = theta - problem.center
    return 0.5 * problem.strength * dot(offset, offset)


def value_of(problem: Regularized, theta: Theta, risk: float) -> float:
    """Return -J, which is maximized, for a ``risk`` at ``theta``."""
    return -(risk + penalty(problem, theta))


@storable
@dataclass(frozen=True, kw_only=True)
class PlanesState(State[Theta]):
    """A state with the risk at theta, the planes so far, their dual variables, and the pull of (3)."""

    duality: Duality
    risk: float
    planes: Planes = field(repr=False)
    pull: float
    draws: Draws = field(repr=False)


@dataclass(frozen=True)
class CuttingPlane:
    """Minimize (1) until the gap between value and bound is a share ``tolerance`` of the value.

    With a ``batch``, a step first asks all parts, this number at a time and in random order, and moves theta in between. ``sweeps`` is
    the maximum number of visits of all parts in the solution of a program.
    """

    asks: ClassVar[type] = SumOfMaxima

    tolerance: float = 1e-3
    level: float = 0.3
    keep: int = 5
    inexact: float = 0.1
    batch: int | None = None
    sweeps: int = 10_000

    def __post_init__(self) -> None:
        check_number("the tolerance of the gap", self.tolerance)
        if not 0 < self.level <= 1 or not 0 < self.inexact < 1:
            raise SettingError(f"level must be above 0 and at most 1, inexact between 0 and 1, got {self.level} and {self.inexact}")
        if self.keep < 1 or self.sweeps < 1 or (self.batch is not None and self.batch < 1):
            raise SettingError(f"keep, sweeps and batch must be at least 1, got {self.keep}, {self.sweeps} and {self.batch}")

    def init(self, problem: SumOfMaxima, theta: Theta, rng: np.random.Generator) -> PlanesState:
        """Start at ``theta``, with the planes there."""
        return self.start_with(problem, theta, problem.planes(theta, _all_parts(problem)), rng)

    def start_with(self, problem: SumOfMaxima, theta: Theta, touching: Touching, rng: np.random.Generator) -> PlanesState:
        """Start at ``theta`` with the planes that touch there."""
        planes = Planes(problem.parts, problem.strength, problem.center)
        unbounded = Duality(np.inf, -np.inf)
        start = PlanesState(theta, -np.inf, duality=unbounded, risk=np.inf, planes=planes, pull=0.0, draws=draws_of(rng))
        state = replace(self.add_planes(problem, start, planes, theta, touching), steps=0)
        if state.trouble:
            return replace(state, trouble="the objective or its slope is not finite at the start; scale the features or the start down")
        if self.level == 1:
            return state
        # The first step, by the only known slope, would then gain the share ``level`` of the value.
        slope = problem.strength * (theta - planes.theta())
        gain = self.level * max(abs(state.value), 1e-9 * (state.duality.primal - state.duality.dual), 1e-300)
        return replace(state, pull=max(dot(slope, slope) / (2 * gain) - problem.strength, LEAST_PULL * problem.strength))

    def resume(self, problem: Regularized, state: PlanesState, rng: np.random.Generator) -> PlanesState:
        """Return the state to start from on a problem that differs only in strength or center: all planes stay valid."""
        planes = state.planes.copy()
        planes.pose(problem.strength, problem.center)
        duality = Duality(state.risk + penalty(problem, state.theta), planes.dual())
        fresh = replace(state, steps=0, trouble="", planes=planes, draws=draws_of(rng))
        return replace(fresh, value=duality.value, is_done=duality.gap <= self.tolerance, duality=duality)

    def step(self, problem: SumOfMaxima, state: PlanesState) -> PlanesState:
        """Step to the minimum of (3), evaluate all parts there, and keep the better of it and theta."""
        rng, planes = drawing_from(state.draws), state.planes.copy()
        trouble = self._solve(planes, problem, state)
        if trouble:
            return replace(state, steps=state.steps + 1, is_done=True, trouble=trouble)
        planes.drop(self.keep)
        if self.batch is not None:
            order = rng.permutation(problem.parts)
            for batch in np.split(order, range(self.batch, problem.parts, self.batch)):
                planes.add(batch, *problem.planes(planes.theta(), batch))
                planes.improve(batch)
        theta, before = planes.theta(), state.duality.primal
        gain = before - planes.height() - penalty(problem, theta)
        planes.pose(problem.strength, problem.center)
        after = self.add_planes(problem, state, planes, theta, problem.planes(theta, _all_parts(problem)))
        change = 1 / FASTEST
        if not before - after.duality.primal >= TRUSTED * gain:
            change = min(max(gain / max(before - after.duality.dual, 1e-300) / self.level, 1 / FASTEST), FASTEST)
        return replace(after, pull=state.pull * change, draws=draws_of(rng))

    def add_planes(self, problem: SumOfMaxima, state: PlanesState, planes: Planes, theta: Theta, touching: Touching) -> PlanesState:
        """Return the state after adding the planes that touch at ``theta`` to ``planes``, which it takes over."""
        offsets, normals = touching
        risk, steps = float(offsets.sum() + matmul(normals, theta).sum()), state.steps + 1
        planes.add(_all_parts(problem), offsets, normals)
        planes.improve(_all_parts(problem))
        dual = planes.dual()
        if not np.isfinite(risk + dual):
            trouble = f"the risk or its slope is too large in step {steps}: {risk:g}, with no theta below {dual:g}; scale the features down"
            return replace(state, steps=steps, is_done=True, trouble=trouble)
        if risk + penalty(problem, theta) > state.duality.primal:
            theta, risk = state.theta, state.risk
        duality = Duality(risk + penalty(problem, theta), max(state.duality.dual, dual))
        converged = duality.gap <= self.tolerance
        return replace(state, theta=theta, value=duality.value, steps=steps, is_done=converged, duality=duality, risk=risk, planes=planes)

    def _solve(self, planes: Planes, problem: SumOfMaxima, state: PlanesState) -> str:
        """Solve (3); return the reason if that fails."""
        strength = problem.strength + state.pull  # both quadratic terms together are another one, plus a constant
        center = (problem.strength * problem.center + state.pull * state.theta) / strength
        planes.pose(strength, center)
        offset = state.theta - center
        upper_bound = state.risk + 0.5 * strength * dot(offset, offset)
        return solve(planes, upper_bound, self.inexact, max(FINE * self.tolerance, FINEST) * abs(upper_bound), self.sweeps)


def solve(planes: Planes, upper_bound: float, inexact: float, finest: float, sweeps: int) -> str:
    """Solve the program of ``planes``; if that fails, again from the start and longer; return the reason if that fails too."""
    if _converges(planes, upper_bound, inexact, finest, sweeps):
        return ""
    planes.restart()
    if _converges(planes, upper_bound, inexact, finest, 10 * sweeps):
        return ""
    dual = planes.dual()
    remedy = "allow more sweeps or raise the strength" if np.isfinite(upper_bound - dual) else "scale the features down"
    return (
        f"the quadratic program over {planes.count} planes was not solved in {10 * sweeps} sweeps: "
        f"no solution is below {dual:g}, the best known is {upper_bound:g}; {remedy}"
    )


def _converges(planes: Planes, upper_bound: float, inexact: float, finest: float, sweeps: int) -> bool:
    """Return whether the gap of the program is at most a share ``inexact`` of the gain of its solution over ``upper_bound``."""
    gap, enough = np.inf, 0.0
    while gap > (enough := max(inexact * (upper_bound - planes.dual()), finest)):
        gap = planes.solve(enough, sweeps)
        if not gap <= enough:
            return False
    return gap <= enough


def _all_parts(problem: SumOfMaxima) -> npt.NDArray[np.int64]:
    return np.arange(problem.parts, dtype=np.int64)


class OnePartProblem:
    """A problem as a sum with one part."""

    parts = 1

    def __init__(self, problem: Regularized) -> None:
        self.strength, self.center, self.risk = problem.strength, problem.center, problem.risk

    def planes(self, theta: Theta, parts: npt.NDArray[np.int64]) -> Touching:
        """Return the tangent at ``theta``, (4)."""
        return tangent(theta, *self.risk(theta))


def tangent(theta: Theta, risk: float, subgradient: Theta) -> Touching:
    """Return the plane that touches at ``theta``, with this risk and subgradient there."""
    return np.array([risk - dot(subgradient, theta)]), subgradient[np.newaxis]


@dataclass(frozen=True)
class Bundle(CuttingPlane):
    """Minimize a risk and its quadratic term by (4); the settings are those of `CuttingPlane`."""

    asks: ClassVar[type] = Regularized

    level: float = 0.1
    keep: int = 20

    def init(self, problem: Regularized, theta: Theta, rng: np.random.Generator) -> PlanesState:
        """Start at ``theta``, with the plane there."""
        return super().init(OnePartProblem(problem), theta, rng)

    def step(self, problem: Regularized, state: PlanesState) -> PlanesState:
        """Step to the minimum of (4), which stays close to the best theta."""
        return super().step(OnePartProblem(problem), state)
