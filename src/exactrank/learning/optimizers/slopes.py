"""Ascent along slopes: of single summands in turn (SGD), of batches (Adam), and of the whole sum (L-BFGS).

**Stochastic gradient ascent** as nets were trained on queries (Burges, Ragno & Le 2006, section 6.3):

    theta <- theta + rate slope_q(theta)    for one summand q after the other, in random order                  (1)

A step is one epoch, (1) over all summands. The rate is multiplied by ``decay`` whenever the value falls over an epoch, and
training starts anew, with random parameters and the first rate, when it has not risen above its best for ``patience`` epochs.

**Adam** (Kingma & Ba 2015):

    m <- b1 m + (1 - b1) g,    v <- b2 v + (1 - b2) g^2                                                         (2)
    theta <- theta + rate  m / (1 - b1^t)  /  (sqrt(v / (1 - b2^t)) + epsilon)                                   (3)

with g the slope of ``batch_size`` summands, in random order. A step is one epoch: all summands once.

**L-BFGS** (Liu & Nocedal 1989) for smooth functions: the last few steps and changes of slope approximate the curvature. With s_i the
last steps and y_i the changes of the (descent) slope along them, rho_i = 1 / (s_i . y_i), the direction is H g by two loops over them:

    newest to oldest:  a_i = rho_i s_i . q,  q <- q - a_i y_i,    then  r = (s.y / y.y) q                       (4)
    oldest to newest:  r <- r + s_i (a_i - rho_i y_i . r)                                                        (5)

and the step a along it satisfies the strong Wolfe conditions (Nocedal & Wright 2006, algorithms 3.5 and 3.6): with f the value along
the direction, which starts with the slope f'(0) > 0,

    f(a) >= f(0) + 1e-4 a f'(0),    |f'(a)| <= 0.9 f'(0)                                                         (6)

If the problem is convex with a quadratic term, its slope g at theta bounds the distance to the optimum, for every t:

    J(t) >= J(theta) + g . (t - theta) + strength/2 |t - theta|^2 >= J(theta) - |g|^2 / (2 strength)            (7)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import check_number
from exactrank._support.numerics import dot, norm, power
from exactrank._support.serialize import storable
from exactrank.errors import SettingError
from exactrank.learning.optimizers.base import Draws, Duality, State, Theta, Valued, drawing_from, draws_of


class Parted(Valued, Protocol):
    """A problem that is a sum of parts."""

    @property
    def parts(self) -> int:
        """The number of parts."""


class Summed(Parted, Protocol):
    """A sum of parts, each with a slope."""

    def start(self, rng: np.random.Generator) -> Theta:
        """Return random parameters."""

    def pass_over(self, theta: Theta, order: npt.NDArray[np.int64], rate: float) -> Theta:
        """Return the parameters after (1) over all parts in this ``order``."""


class Batched(Parted, Protocol):
    """A sum of parts, with the slope of any of them."""

    def slope_of(self, theta: Theta, parts: npt.NDArray[np.int64]) -> tuple[float, Theta]:
        """Return the mean of some parts, and its slope."""


class Sloped(Protocol):
    """A problem with a slope."""

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """Return the objective at ``theta``, which is to be maximized, and its slope."""


class StronglyConvexProblem(Sloped, Protocol):
    """A problem whose value is concave even before ``strength / 2 |theta|^2`` is subtracted."""

    @property
    def strength(self) -> float:
        """The strength of the quadratic term."""


@storable
@dataclass(frozen=True, kw_only=True)
class SgdState(State[Theta]):
    """A state with the present rate, the best value, and the number of epochs since."""

    rate: float
    best: float
    stale: int = 0
    draws: Draws = field(repr=False)


@dataclass(frozen=True)
class SGD:
    """Ascend by (1); ``learning_rate`` is the first rate."""

    asks: ClassVar[type] = Summed

    learning_rate: float
    decay: float = 0.8
    patience: int = 50

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, above=True)
        if not 0 < self.decay <= 1:
            raise SettingError(f"decay must be above 0 and at most 1, got {self.decay}")

    def init(self, problem: Summed, theta: Theta, rng: np.random.Generator) -> SgdState:
        value = problem.value(theta)
        return SgdState(theta, value, rate=self.learning_rate, best=value, draws=draws_of(rng))

    def step(self, problem: Summed, state: SgdState) -> SgdState:
        rng = drawing_from(state.draws)
        if state.stale >= self.patience:
            return replace(self.init(problem, problem.start(rng), rng), steps=state.steps + 1)
        theta = problem.pass_over(state.theta, rng.permutation(problem.parts), state.rate)
        value = problem.value(theta) if np.all(np.isfinite(theta)) else np.nan
        if not np.isfinite(value):
            return replace(state, is_done=True, trouble=_divergence(state.rate, state.steps + 1))
        rate, best = state.rate * (self.decay if value < state.value else 1.0), max(value, state.best)
        stale = 0 if value > state.best else state.stale + 1
        return SgdState(theta, value, state.steps + 1, rate=rate, best=best, stale=stale, draws=draws_of(rng))


@storable
@dataclass(frozen=True, kw_only=True)
class AdamState(State[Theta]):
    """A state with the running means (2) and the number of batches in them."""

    first: Theta
    second: Theta
    batches: int = 0
    draws: Draws = field(repr=False)


@dataclass(frozen=True)
class Adam:
    """Ascend by (2) and (3); the rate is ``learning_rate``."""

    asks: ClassVar[type] = Batched

    learning_rate: float = 0.01
    batch_size: int = 32
    b1: float = 0.9
    b2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, above=True)
        if self.batch_size < 1:
            raise SettingError(f"batch_size must be at least 1, got {self.batch_size}")

    def init(self, problem: Batched, theta: Theta, rng: np.random.Generator) -> AdamState:
        nothing = np.zeros(len(theta))
        return AdamState(theta, problem.value(theta), first=nothing, second=nothing, draws=draws_of(rng))

    def step(self, problem: Batched, state: AdamState) -> AdamState:
        rng = drawing_from(state.draws)
        theta, first, second, t = state.theta, state.first, state.second, state.batches
        fading, fading_fast = float(power(self.b2, t)), float(power(self.b1, t))
        order = rng.permutation(problem.parts)
        for begin in range(0, problem.parts, self.batch_size):
            _, slope = problem.slope_of(theta, order[begin : begin + self.batch_size])
            t, fading, fading_fast = t + 1, fading * self.b2, fading_fast * self.b1
            first = self.b1 * first + (1 - self.b1) * slope
            second = self.b2 * second + (1 - self.b2) * slope**2
            theta = theta + self.learning_rate * (first / (1 - fading_fast)) / (np.sqrt(second / (1 - fading)) + self.epsilon)
        value = problem.value(theta) if np.all(np.isfinite(theta)) else np.nan
        if not np.isfinite(value):
            return replace(state, is_done=True, trouble=_divergence(self.learning_rate, state.steps + 1))
        return AdamState(theta, value, state.steps + 1, first=first, second=second, batches=t, draws=draws_of(rng))


def _divergence(rate: float, epoch: int) -> str:
    return f"a learning rate of {rate:g} diverged in iteration {epoch}; use a smaller learning_rate"


@storable
@dataclass(frozen=True, kw_only=True)
class LbfgsState(State[Theta]):
    """A state with the slope at theta and the steps that (4) and (5) use."""

    slope: Theta
    moves: tuple[tuple[Theta, Theta, float], ...] = ()  #: (s_i, y_i, s_i'y_i), oldest first


@dataclass(frozen=True)
class LBFGS:
    """Ascend along (4) and (5), remembering ``memory`` steps; done when the slope or the gain is below ``tolerance``."""

    asks: ClassVar[type] = Sloped

    memory: int = 10
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        if self.memory < 1 or not self.tolerance >= 0:
            raise SettingError(f"L-BFGS needs a memory of at least 1 and a tolerance of at least 0, got {self.memory} and {self.tolerance}")

    def init(self, problem: Sloped, theta: Theta, rng: np.random.Generator) -> LbfgsState:
        """Start at ``theta``; nothing is random."""
        value, slope = problem.value_and_slope(theta)
        trouble = "" if np.isfinite(value) else "the objective is not finite at the start; scale the features or the start down"
        return LbfgsState(theta, value, is_done=bool(trouble), trouble=trouble, slope=slope)

    def step(self, problem: Sloped, state: LbfgsState) -> LbfgsState:
        """Return the state after a step, which never lowers the value."""
        q, shares = state.slope.copy(), []
        for s, y, product in reversed(state.moves):  # (4)
            shares.append(dot(s, q) / product)
            q -= shares[-1] * y
        if state.moves:
            _, y, product = state.moves[-1]
            q *= product / dot(y, y)
        for (s, y, product), share in zip(state.moves, reversed(shares), strict=True):  # (5)
            q += s * (share - dot(y, q) / product)
        better = _along(problem, state, q if dot(q, state.slope) > 0 else state.slope.copy())
        if better is None:  # begin again without the remembered steps; without any, the search has converged
            return replace(state, steps=state.steps + 1, moves=(), is_done=not state.moves)
        theta, value, slope = better
        move, bend = theta - state.theta, state.slope - slope
        product = dot(move, bend)
        moves = (*state.moves, (move, bend, product))[-self.memory :] if product > 0 else state.moves
        flat = float(np.abs(slope).max()) <= self.tolerance or value - state.value <= self.tolerance * max(abs(value), 1e-12)
        return LbfgsState(theta, value, state.steps + 1, flat, slope=slope, moves=moves)


def _along(problem: Sloped, state: LbfgsState, direction: Theta) -> tuple[Theta, float, Theta] | None:
    """Return a better point along ``direction`` with its value and slope, or None."""
    first = direction if state.moves else direction / max(1.0, norm(direction))

    def trial(step: float) -> LinePoint:
        theta = state.theta + step * first
        value, slope = problem.value_and_slope(theta)
        return LinePoint(step, value, dot(slope, first), theta, slope)

    end = wolfe_step(trial, LinePoint(0.0, state.value, dot(state.slope, first), state.theta, state.slope))
    return None if end is None or end.value < state.value else (end.theta, end.value, end.gradient)


@dataclass(frozen=True, eq=False)
class LinePoint:
    """A point along a direction: its distance, the value there, the slope along the direction, and the gradient."""

    step: float
    value: float
    slope: float
    theta: Theta
    gradient: Theta


#: The shares of the first slope in (6), and the maximum number of points of a search.
LEAST_GAIN, MOST_SLOPE, TRIALS = 1e-4, 0.9, 30
#: A point between two others keeps this share of their distance from both.
MARGIN = 0.1


def wolfe_step(trial: Callable[[float], LinePoint], start: LinePoint) -> LinePoint | None:
    """Return a point that satisfies (6), or the best with its first half when all trials are used up; None if there is no such point."""
    low, high, step = start, None, 1.0  # the best point with the first half of (6), and the end beyond which there need be no better one
    for _ in range(TRIALS):
        point = trial(step)
        gains = low.value < point.value < math.inf and point.value >= start.value + LEAST_GAIN * point.step * start.slope
        if not gains:
            high = point
        elif abs(point.slope) <= MOST_SLOPE * start.slope:
            return point
        else:
            if point.slope * (math.inf if high is None else high.step - low.step) < 0:
                high = low
            low = point
        if high is None:
            step = 2 * low.step
        elif (step := _between(low, high)) in (low.step, high.step):
            break  # there is no number between them
    return None if low is start else low


def _between(a: LinePoint, b: LinePoint) -> float:
    """Return the step at the maximum of the cubic through two points, with their slopes; the middle if there is no such maximum."""
    width = b.step - a.step
    mean = 3 * (b.value - a.value) / width - a.slope - b.slope
    square = mean * mean - a.slope * b.slope
    root = math.copysign(math.sqrt(square), width) if 0 <= square < math.inf else math.nan
    share = 1 - (root - mean - b.slope) / (a.slope - b.slope + 2 * root) if a.slope - b.slope + 2 * root else math.nan
    return a.step + width * (min(max(share, MARGIN), 1 - MARGIN) if math.isfinite(share) else 0.5)


def maximum(problem: Sloped, theta: Theta, steps: int) -> Theta:
    """Return the parameters after at most this number of ``steps`` of L-BFGS from ``theta``."""
    state = _LBFGS.init(problem, theta, np.random.default_rng(0))
    while not state.is_done and state.steps < steps:
        state = _LBFGS.step(problem, state)
    return state.theta


_LBFGS = LBFGS()


@dataclass(frozen=True)
class StronglyConvex:
    """Ascend by L-BFGS until the gap of (7) is below ``tolerance``, relatively."""

    asks: ClassVar[type] = StronglyConvexProblem

    tolerance: float = 1e-3

    def init(self, problem: StronglyConvexProblem, theta: Theta, rng: np.random.Generator) -> LbfgsState:
        """Start at ``theta``."""
        return self._certify(problem, _LBFGS.init(problem, theta, rng))

    def resume(self, problem: StronglyConvexProblem, state: LbfgsState, rng: np.random.Generator) -> LbfgsState:
        """Start from the theta of ``state``, without its memory, which belongs to another problem."""
        return self.init(problem, state.theta, rng)

    def step(self, problem: StronglyConvexProblem, state: LbfgsState) -> LbfgsState:
        """Return the state after a step of L-BFGS."""
        return self._certify(problem, _LBFGS.step(problem, state))

    def _certify(self, problem: StronglyConvexProblem, state: LbfgsState) -> LbfgsState:
        slope = state.slope
        duality = Duality(-state.value, -state.value - dot(slope, slope) / (2 * problem.strength))
        return replace(state, duality=duality, is_done=state.is_done or duality.gap <= self.tolerance)
