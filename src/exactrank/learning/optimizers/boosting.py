"""Boosting of coordinates (AdaRank) and of steps by their edges (RankBoost); and growth part by part.

**AdaRank** (Xu & Li 2007): parts with low values get more weight, and each step takes the coordinate that is best for them.

    phi_k = sum_i P_i E_i(k),    E_i(k), from -1 to 1: the performance of coordinate k alone on part i           (1)
    theta <- theta + alpha e_k,    k with the largest phi,    alpha = 1/2 ln((1 + phi_k) / (1 - phi_k))         (2)
    P_i <- w_i e^{-E_i(theta)} / sum_j w_j e^{-E_j(theta)},    at first P = w, which sums to 1                    (3)

A coordinate that performs better upside down is a candidate with its sign turned. After T steps (their Theorem 1)

    sum_i w_i E_i(theta_T) >= 1 - prod_t e^{-d_t} sqrt(1 - phi_t^2)                                              (4)
    d_t = min_i [E_i(theta_t) - E_i(theta_{t-1}) - alpha_t E_i(k_t)],    E_i(theta_0) taken for 0

By (3) no two parts' weights differ by more than a factor e^2, so the same coordinate tends to be the best again and again. Hence a
coordinate may have to rest for some steps after each that takes it; not so in the paper.

**RankBoost** with its third choice of alpha (Freund, Iyer, Schapire & Singer 2003, sections 3.1 and 3.2):

    alpha = 1/2 ln((1 + r) / (1 - r)),    r the largest edge to either side, of the step h                       (5)
    s <- s + alpha h,    loss <- at most sqrt(1 - r^2) loss                                                      (6)

The problem finds the step with the largest edge, and the exponential loss. Alpha is rounded to a multiple of 2^-40: sums of
such numbers are exact up to 2^12, so a model may add up its steps in any order.

**Growth** adds one part to an iterate with every step, such as a tree to a forest. It asks its problem only for the next part, and
ends when there is none.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np

from exactrank._support.arrays import Floats
from exactrank._support.numerics import exp, log1p, matmul
from exactrank._support.serialize import storable
from exactrank.errors import SettingError
from exactrank.learning.optimizers.base import State, Theta

GRID = 2.0**-40
#: A perfect step, with an edge of 1, would have an infinite alpha; a step with this edge ends the search.
SURE = 1 - 1e-12


class Performing(Protocol):
    """A problem of many parts, each with a performance of the parameters."""

    @property
    def weight(self) -> Floats:
        """The shares of the parts, which sum to 1."""

    @property
    def by_coordinate(self) -> Floats:
        """E of each coordinate alone, by sign (+ and maybe -), coordinate and part."""

    def performance(self, theta: Theta) -> tuple[float, Floats]:
        """Return the mean of E at ``theta``, and E of each part."""


@storable
@dataclass(frozen=True, kw_only=True)
class AdaState(State[Theta]):
    """A state with the weights (3) and the coordinates of the steps so far."""

    share: Floats = field(repr=False)
    coordinates: tuple[int, ...] = ()


@dataclass(frozen=True)
class AdaRankOptimizer:
    """(1) to (3); a coordinate rests for ``rest`` steps after its own, or, with None, until all others had one. The value is the mean E.

    Without coordinates all documents tie, so the initial state is after the first step. Done when all later steps would be the same.
    """

    asks: ClassVar[type] = Performing

    rest: int | None = 0

    def __post_init__(self) -> None:
        if self.rest is not None and self.rest < 0:
            raise SettingError(f"rest must be a number of rounds of at least 0, or None, got {self.rest}")

    def init(self, problem: Performing, theta: Theta, rng: np.random.Generator) -> AdaState:
        """Return the state after the first step from ``theta``, with the original weights of parts."""
        return self.step(problem, AdaState(theta, -math.inf, share=problem.weight))

    def step(self, problem: Performing, state: AdaState) -> AdaState:
        """Return the state after a step along one coordinate."""
        phi = matmul(problem.by_coordinate.reshape(-1, len(state.share)), state.share).reshape(problem.by_coordinate.shape[:2])  # (1)
        n_others = len(state.theta) - 1
        rest = n_others if self.rest is None else min(self.rest, n_others)
        phi[:, list(state.coordinates[-rest:]) if rest else []] = -math.inf
        turned, k = np.unravel_index(np.argmax(phi), phi.shape)
        best = float(phi[turned, k])
        alpha = artanh(best)
        theta = state.theta.copy()
        theta[k] += -alpha if turned else alpha  # (2)
        value, performance = problem.performance(theta)
        heavy = problem.weight * exp(-performance)
        is_repetition = np.count_nonzero(theta) == 1 and np.array_equal(np.sign(theta), np.sign(state.theta))
        converged, coordinates = is_repetition or best >= SURE, (*state.coordinates, int(k))
        return AdaState(theta, value, state.steps + 1, converged, share=heavy / heavy.sum(), coordinates=coordinates)  # (3)


class BoostingStep(Protocol):
    """A step that can be made."""

    @property
    def loss(self) -> float:
        """The loss before it."""

    @property
    def edge(self) -> float:
        """r, from -1 to 1."""

    @property
    def place(self) -> tuple[float, ...]:
        """The numbers that theta holds for the step besides its alpha."""


StepT = TypeVar("StepT", bound=BoostingStep)
StepT_co = TypeVar("StepT_co", bound=BoostingStep, covariant=True)


class Boosted(Protocol[StepT_co]):
    """A problem whose scores are sums of steps."""

    def best(self, theta: Theta) -> StepT_co:
        """Return the step with the largest edge at scores that are the sums of the steps of ``theta``."""


@storable
@dataclass(frozen=True, kw_only=True)
class BoostState(State[Theta], Generic[StepT]):
    """A state with the next step."""

    next_step: StepT


@dataclass(frozen=True)
class RankBoostOptimizer:
    """Minimize the loss by (5) and (6); the value is the negated loss. Done when no step has an edge, or a step is perfect.

    Without steps all scores tie, so the initial state is after the first one.
    """

    asks: ClassVar[type] = Boosted

    def init(self, problem: Boosted[StepT], theta: Theta, rng: np.random.Generator) -> BoostState[StepT]:
        """Return the state after the step that follows those of ``theta``."""
        best = problem.best(theta)
        before = BoostState(theta, -best.loss, is_done=_is_last(best), next_step=best)
        return before if before.is_done else self.step(problem, before)

    def step(self, problem: Boosted[StepT], state: BoostState[StepT]) -> BoostState[StepT]:
        """Return the state after another step."""
        step, alpha = state.next_step, confidence(state.next_step.edge)
        theta = np.append(state.theta, [*step.place, alpha])
        best = problem.best(theta)
        if not math.isfinite(best.loss):
            return replace(state, is_done=True, trouble=f"after {state.steps} rounds the weights of pairs overflow; use fewer rounds")
        converged = abs(step.edge) >= SURE or _is_last(best)
        return BoostState(theta, -best.loss, state.steps + 1, converged, next_step=best)


def confidence(edge: float) -> float:
    """Return alpha of (5), rounded.

    >>> confidence(0.5), confidence(-1.0) > -15
    (0.5493061443339684, True)
    """
    return round(artanh(edge) / GRID) * GRID


def artanh(edge: float) -> float:
    """Return 1/2 ln((1 + edge) / (1 - edge)), with an edge of no more than ``SURE`` to either side."""
    size = min(abs(edge), SURE)  # near -1 the difference from 1 would lose its digits
    return math.copysign(0.5 * float(log1p(2 * size / (1 - size))), edge)


def _is_last(step: BoostingStep) -> bool:
    """Return whether nothing is left to gain."""
    return step.loss == 0 or confidence(step.edge) == 0


class HasParts(Protocol):
    """Something that has parts."""

    @property
    def count(self) -> int:
        """The number of parts."""


It = TypeVar("It", bound=HasParts)


class Growing(Protocol[It]):
    """A problem that extends iterates by one part."""

    @property
    def barren(self) -> str:
        """The reason why there is no first part, if there is none."""

    def extend(self, iterate: It) -> It:
        """Return ``iterate`` with one more part, or as it is if none can follow."""


@dataclass(frozen=True)
class Growth(Generic[It]):
    """Growth by one part per step, without asking for the problem's value."""

    asks: ClassVar[type] = Growing

    def init(self, problem: Growing[It], theta: It, rng: np.random.Generator) -> State[It]:
        """Return the state of theta; with a first part if it is empty, since an empty model cannot be evaluated."""
        state = State(theta, math.nan, theta.count)
        return state if theta.count else self.step(problem, state)

    def step(self, problem: Growing[It], state: State[It]) -> State[It]:
        """Return the state with another part."""
        larger = problem.extend(state.theta)
        if larger.count > state.steps:
            return State(larger, math.nan, larger.count)
        return replace(state, theta=larger, is_done=True, trouble="" if state.steps else problem.barren)
