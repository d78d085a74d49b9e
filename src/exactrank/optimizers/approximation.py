"""Stochastic approximation: ascent along slopes that are estimated from values (Kiefer & Wolfowitz 1952; Spall 1992).

    theta <- theta + a_k g_k,    g_k estimated from values at a distance c_k along each coordinate it moves     (1)

A method is an estimate g_k; the gains a_k and c_k are those of `exactrank.optimizers.gains`. Without a0 or c0 they are chosen
at the start by `exactrank.optimizers.surroundings`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from exactrank.optimizers.base import Draws, State, Theta, Valued, drawing_from, draws_of
from exactrank.optimizers.counted import Counted
from exactrank.optimizers.gains import Gains
from exactrank.optimizers.surroundings import LOOKS, Surroundings
from exactrank.stored import storable


@storable
@dataclass(frozen=True, kw_only=True)
class ApproximationState(State[Theta]):
    """A state with its gains, and with how many values were asked for: to choose gains, to estimate, and one for each state."""

    gains: Gains
    evaluations: int
    generator: Draws = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class StochasticApproximation(ABC):
    """Ascend by (1). A step asks for what its estimate needs, and for the value where it leads."""

    asks: ClassVar[type] = Valued

    a0: float | None = None
    c0: float | None = None
    A: float = 50.0
    alpha: float = 0.602
    gamma: float = 0.101

    #: How many estimates choose a0.
    trials: ClassVar[int] = LOOKS

    def __post_init__(self) -> None:
        self._gains(1.0 if self.a0 is None else self.a0, 1.0 if self.c0 is None else self.c0)

    @abstractmethod
    def _slope(self, problem: Counted, theta: Theta, c: float, rng: np.random.Generator) -> Theta:
        """The estimate at ``theta``."""

    @abstractmethod
    def _reach(self, dimension: int) -> float:
        """How far from theta its points are, in units of c."""

    def init(self, problem: Valued, theta: Theta, rng: np.random.Generator) -> ApproximationState:
        """Start at ``theta``; gains that are not given are chosen here."""
        counted, start = Counted(problem), np.array(theta, np.float64)
        value = counted.value(start)
        gains = self._chosen(Surroundings(counted, start, value), rng)
        return ApproximationState(start, value, gains=gains, evaluations=counted.evaluations, generator=draws_of(rng))

    def step(self, problem: Valued, state: ApproximationState) -> ApproximationState:
        """Step k of (1)."""
        rng, counted, k = drawing_from(state.generator), Counted(problem), state.steps + 1
        theta = state.theta + state.gains.a(k) * self._slope(counted, state.theta, state.gains.c(k), rng)
        value = counted.value(theta) if np.all(np.isfinite(theta)) else np.nan
        asked = replace(state, evaluations=state.evaluations + counted.evaluations, generator=draws_of(rng))
        # Far away the perturbations are lost in the rounding of theta, and no step can lead back.
        if not np.isfinite(value) or state.gains.c(k) <= np.spacing(np.abs(theta).max()):
            return replace(asked, done=True, trouble=f"a0={state.gains.a0:g} diverged in step {k}; take a smaller a0")
        return replace(asked, theta=theta, value=value, steps=k)

    def _chosen(self, around: Surroundings, rng: np.random.Generator) -> Gains:
        if self.a0 is not None and self.c0 is not None:
            return self._gains(self.a0, self.c0)
        length = around.length(rng)
        c0 = length / self._reach(len(around.theta)) if self.c0 is None else self.c0
        if self.a0 is not None:
            return self._gains(self.a0, c0)
        slopes = np.array([self._slope(around.problem, around.theta, c0, rng) for _ in range(self.trials)])
        return self._gains(around.first_gain(slopes, length) * (self.A + 1), c0)

    def _gains(self, a0: float, c0: float) -> Gains:
        return Gains(a0, c0, self.A, self.alpha, self.gamma)
