"""Cutting planes, a set of them for each part (Chapelle, Le & Smola 2007, Algorithm 1; Tsochantaridis et al. 2005).

Each part of the risk is modelled by the planes that have been met, which lie below it:

    J(theta) = strength/2 |theta - centre|^2 + sum_p risk_p(theta)                                               (1)
    model(t) = strength/2 |t - centre|^2 + sum_p max_{i in p} (b_i + v_i . t)  <=  J(t)                          (2)

A step makes the model small, asks every part for its plane there, and adds it to the model. The program is solved in the dual,
which bounds J from below, with the authors' four savings: the dual variables are kept from step to step, planes that have been
idle for ``keep`` steps are forgotten, the program is solved no better than a share ``inexact`` of what a step can gain, and a
part's new variable is moved first.

The smaller the strength, the harder is that program, and the farther its solution can lie from any theta seen, where the planes
say little. So the step is held to the best theta by a pull,

    theta+ = argmin_t  model(t) + pull/2 |t - theta|^2                                                           (3)

with which the program is easy. While J falls by most of what the model promises the pull is slackened; else it is changed
until a step would gain the share ``level`` of the gap between the best value and the bound (as level methods do: Lemarechal,
Nemirovskii & Nesterov 1995). A level of 1 is no pull, as published.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactrank._core import Planes
from exactrank.errors import SettingError
from exactrank.optimizers.base import Draws, Duality, State, Theta, drawing_from, draws_of
from exactrank.optimizers.regularised import Pulled, Quadratic, SumOfMaxima, Touching, penalty
from exactrank.stored import storable

#: The pull changes by no more than this factor in a step, and begins with at least this share of the strength.
FASTEST, LEAST_PULL = 4.0, 0.01
#: A model that keeps so much of its promise needs no pull.
TRUSTED = 0.7
#: No program is solved better than this share of the value, for rounding, nor than this share of the tolerance.
FINEST, FINE = 1e-10, 0.1

storable(Planes)


@storable
@dataclass(frozen=True, kw_only=True)
class PlanesState(State[Theta]):
    """A state with the risk at theta, the planes met, their dual variables, and the pull of (3)."""

    duality: Duality
    risk: float
    planes: Planes = field(repr=False)
    pull: float
    draws: Draws = field(repr=False)


@dataclass(frozen=True)
class CuttingPlane:
    """Make (1) small until the gap between value and bound is a share ``tolerance`` of the value.

    ``batch``: before a step asks all parts, it asks this number at a time, in random order, and moves theta in between. ``sweeps``:
    how often the solution of a program may visit all parts.
    """

    asks: ClassVar[type] = SumOfMaxima

    tolerance: float = 1e-3
    level: float = 0.3
    keep: int = 5
    inexact: float = 0.1
    batch: int | None = None
    sweeps: int = 10_000

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance < np.inf:
            raise SettingError(f"the tolerance of the gap must be a number of at least 0, got {self.tolerance}")
        if not 0 < self.level <= 1 or not 0 < self.inexact < 1:
            raise SettingError(f"level must be above 0 and at most 1, inexact between 0 and 1, got {self.level} and {self.inexact}")
        if self.keep < 1 or self.sweeps < 1 or (self.batch is not None and self.batch < 1):
            raise SettingError(f"keep, sweeps and batch must be at least 1, got {self.keep}, {self.sweeps} and {self.batch}")

    def init(self, problem: SumOfMaxima, theta: Theta, rng: np.random.Generator) -> PlanesState:
        """At ``theta``, with the planes there."""
        return self.begun(problem, theta, problem.planes(theta, _every(problem)), rng)

    def begun(self, problem: SumOfMaxima, theta: Theta, touching: Touching, rng: np.random.Generator) -> PlanesState:
        """At ``theta``, with the planes that are ``touching`` there."""
        planes = Planes(problem.parts, problem.strength, problem.centre)
        nothing = Duality(np.inf, -np.inf)
        start = PlanesState(theta, -np.inf, duality=nothing, risk=np.inf, planes=planes, pull=0.0, draws=draws_of(rng))
        state = replace(self._added(problem, start, planes, theta, touching), steps=0)
        if state.trouble:
            return replace(state, trouble="the objective or its slope is not finite at the start; scale the features or the start down")
        return replace(state, pull=self._first_pull(problem, state))

    def resumed(self, problem: SumOfMaxima, state: PlanesState, rng: np.random.Generator) -> PlanesState:
        """The state to start from in a problem that differs in its strength or centre alone: all planes are still good."""
        planes = state.planes.copy()
        planes.pose(problem.strength, problem.centre)
        duality = Duality(state.risk + penalty(problem, state.theta), planes.dual())
        fresh = replace(state, steps=0, trouble="", planes=planes, draws=draws_of(rng))
        return replace(fresh, value=duality.value, done=duality.gap <= self.tolerance, duality=duality)

    def _first_pull(self, problem: SumOfMaxima, state: PlanesState) -> float:
        """So that the first step, by the one slope that is known, would gain the share ``level`` of the value."""
        if self.level == 1:
            return 0.0
        slope = problem.strength * (state.theta - state.planes.theta())
        gain = self.level * max(abs(state.value), 1e-9 * (state.duality.primal - state.duality.dual), 1e-300)
        return max(float(slope @ slope) / (2 * gain) - problem.strength, LEAST_PULL * problem.strength)

    def step(self, problem: SumOfMaxima, state: PlanesState) -> PlanesState:
        """To the minimum of (3), where all parts are asked; the better of it and theta is kept."""
        rng, planes = drawing_from(state.draws), state.planes.copy()
        trouble = self._solved(planes, Pulled(problem, state.pull, state.theta), state)
        if trouble:
            return replace(state, steps=state.steps + 1, done=True, trouble=trouble)
        planes.drop(self.keep)
        self._visit(problem, planes, rng)
        theta = planes.theta()
        gain = state.duality.primal - planes.height() - penalty(problem, theta)
        planes.pose(problem.strength, problem.centre)
        after = self._added(problem, state, planes, theta, problem.planes(theta, _every(problem)))
        pull = state.pull * self._change(gain, state.duality.primal, after.duality)
        return replace(after, pull=pull, draws=draws_of(rng))

    def _change(self, gain: float, before: float, after: Duality) -> float:
        """The factor for the pull after a step that promised ``gain``."""
        if before - after.primal >= TRUSTED * gain:
            return 1 / FASTEST
        share = gain / max(before - after.dual, 1e-300)
        return min(max(share / self.level, 1 / FASTEST), FASTEST)

    def seen(self, problem: SumOfMaxima, state: PlanesState, theta: Theta, touching: Touching) -> PlanesState:
        """The state when the planes that are ``touching`` at some ``theta`` are known too, however that was chosen."""
        return self._added(problem, state, state.planes.copy(), theta, touching)

    def _added(self, problem: SumOfMaxima, state: PlanesState, planes: Planes, theta: Theta, touching: Touching) -> PlanesState:
        """The state with those planes added to ``planes``, which become its own."""
        offsets, normals = touching
        risk, steps = float(offsets.sum() + (normals @ theta).sum()), state.steps + 1
        planes.add(_every(problem), offsets, normals)
        planes.improve(_every(problem))
        dual = planes.dual()
        if not np.isfinite(risk + dual):
            said = f"the risk or its slope is too large in step {steps}: {risk:g}, with no theta below {dual:g}; scale the features down"
            return replace(state, steps=steps, done=True, trouble=said)
        if risk + penalty(problem, theta) > state.duality.primal:
            theta, risk = state.theta, state.risk
        duality = Duality(risk + penalty(problem, theta), max(state.duality.dual, dual))
        done = duality.gap <= self.tolerance
        return replace(state, theta=theta, value=duality.value, steps=steps, done=done, duality=duality, risk=risk, planes=planes)

    def _visit(self, problem: SumOfMaxima, planes: Planes, rng: np.random.Generator) -> None:
        if self.batch is None:
            return
        order = rng.permutation(problem.parts)
        for first in range(0, problem.parts, self.batch):
            some = order[first : first + self.batch]
            planes.add(some, *problem.planes(planes.theta(), some))
            planes.improve(some)

    def _solved(self, planes: Planes, term: Quadratic, state: PlanesState) -> str:
        """Solve (3), afresh and longer where that fails; what is wrong where that fails too."""
        planes.pose(term.strength, term.centre)
        known = state.risk + penalty(term, state.theta)
        if self._converges(planes, known, self.sweeps):
            return ""
        planes.restart()
        if self._converges(planes, known, 10 * self.sweeps):
            return ""
        dual = planes.dual()
        remedy = "allow more sweeps or raise the strength" if np.isfinite(known - dual) else "scale the features down"
        return (
            f"the quadratic program over {planes.count} planes was not solved in {10 * self.sweeps} sweeps: "
            f"no solution is below {dual:g}, the best known is {known:g}; {remedy}"
        )

    def _converges(self, planes: Planes, known: float, sweeps: int) -> bool:
        """Whether the gap of the program came to a share ``inexact`` of what its solution gains on the ``known`` value."""
        gap, enough, finest = np.inf, 0.0, max(FINE * self.tolerance, FINEST) * abs(known)
        while gap > (enough := max(self.inexact * (known - planes.dual()), finest)):
            gap = planes.solve(enough, sweeps)
            if not gap <= enough:
                return False
        return gap <= enough


def _every(problem: SumOfMaxima) -> npt.NDArray[np.int64]:
    return np.arange(problem.parts, dtype=np.int64)
