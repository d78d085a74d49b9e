"""Stochastic approximation: ascent along slopes that are estimated from values (Kiefer & Wolfowitz 1952; Spall 1992).

    theta <- theta + a_k g_k,    g_k estimated from values at a distance c_k along each coordinate it moves     (1)
    a_k = a0 / (A + k^alpha),    c_k = c0 / k^gamma,    k = 1, 2, ...                                           (2)

Steps converge if a_k and c_k fall to 0, the sum of a_k is infinite and that of (a_k / c_k)^2 is finite; alpha = 0.602 and
gamma = 0.101 are nearly the smallest that theory allows. A keeps the first steps from being much longer than later ones: Yue &
Burges (2007) take 50. A method is an estimate g_k.

**FDSA**, finite differences (Kiefer & Wolfowitz 1952; Yue & Burges 2007, section 4):

    g_i = (f(theta + c e_i) - f(theta - c e_i)) / (2 c)                                                         (3)

One coordinate at a time: 2 d values per step in d dimensions. A problem that has ``differences(theta, c)``, or else
``values(thetas)``, gives all of (3) at once.

**SPSA**, simultaneous perturbation (Spall 1992; Yue & Burges 2007):

    g = (f(theta + c delta) - f(theta - c delta)) / (2 c)  delta,    delta_i = +-1 evenly                       (4)

Two values estimate the slope along all coordinates at once, whatever their number: the mean of (4) over all delta is the slope
of f, up to its third derivatives times c^2. SPSA:F averages F / 2 such estimates. f may be a step function such as
nDCG, as long as its steps are small over the distance c.

Without a0 or c0 they are chosen at the start, from some values around it. Along a step u of length l let

    D(u) = f(theta + u) - f(theta - u),    S(u) = f(theta + u) + f(theta - u) - 2 f(theta)                      (5)

**How far to look.** Estimates of the slope are made of values at a distance l from theta. At first l is a quarter of |theta|, or
of 1 where theta is 0: far enough to see past the steps of a ranking measure. It is doubled as long as most of eight random
directions move nothing, or all looks like a plane: sum |S| < sum |D| / 4, and D still grows by half or more.

**How far to go.** Estimates g of the slope, taken as u = l g / |g|, give f'g = D |g| / 2 l and g'f''g = S |g|^2 / l^2 by (5), and

    a_1 = 1/2  sum f'g / sum |g'f''g|                                                                           (6)

is half the step that would gain the most on average if f were a quadratic; half, since later slopes may be steeper. First steps
are at most sqrt(d) l long, in d dimensions, and l / 2 if (6) is not a number above 0: Spall's rule (1998), which prescribes a size.

Neither depends on the units of f or theta. Where f is rough and its slope lost in steps, D and S are both of the size of the
roughness, so first steps are about l / 4 long.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import check_number
from exactrank._support.numerics import norm, power
from exactrank._support.serialize import storable
from exactrank.errors import SettingError
from exactrank.learning.optimizers.base import Draws, State, Theta, Valued, drawing_from, draws_of

#: Maximum number of coordinates of points that are evaluated at once.
NUMBERS_AT_ONCE = 1 << 22
#: The number of directions and estimates at the start.
LOOKS = 8
SHARE = 0.25  #: of |theta|: the first length
BEND = 0.25  #: the function looks like a plane if S is below this share of D,
GROWTH = 1.5  #: and D grows by this factor as the length doubles
DOUBLINGS = 20  #: maximum number of doublings of the length
CAUTION = 0.5  #: the share of the best first step that is taken


@runtime_checkable
class ManyValued(Protocol):
    """A problem that computes many values at once."""

    def values(self, thetas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the value at each row of ``thetas``."""


@runtime_checkable
class Differenced(Protocol):
    """A problem that computes the differences along all coordinates at once."""

    def differences(self, theta: Theta, c: float) -> Theta:
        """Return f(theta + c e_i) - f(theta - c e_i) for every coordinate i."""


class EvaluationCounter:
    """A ``problem`` whose evaluations are counted, with ``values`` and ``differences`` if it has them."""

    def __init__(self, problem: Valued) -> None:
        self._problem = problem
        self.evaluations = 0

    def value(self, theta: Theta) -> float:
        """Return the value at ``theta``."""
        self.evaluations += 1
        return float(self._problem.value(theta))

    def values(self, thetas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the value at each row of ``thetas``."""
        if not isinstance(self._problem, ManyValued):
            return np.array([self.value(theta) for theta in thetas])
        self.evaluations += len(thetas)
        return np.asarray(self._problem.values(thetas))

    def both_ways(self, theta: Theta, steps: npt.NDArray[np.float64]) -> tuple[Theta, Theta]:
        """Return the values at ``theta + step`` and at ``theta - step`` for each row of ``steps``."""
        forth, back = np.split(self.values(np.concatenate([theta + steps, theta - steps])), 2)
        return forth, back

    def differences(self, theta: Theta, c: float) -> Theta:
        """Return f(theta + c e_i) - f(theta - c e_i) for every coordinate i."""
        d = len(theta)
        if isinstance(self._problem, Differenced):
            self.evaluations += 2 * d
            return np.asarray(self._problem.differences(theta, c))
        rows = max(1, NUMBERS_AT_ONCE // (2 * d))
        parts = [np.subtract(*self.both_ways(theta, c * np.eye(min(rows, d - i), d, i))) for i in range(0, d, rows)]
        return np.concatenate(parts)


@storable
@dataclass(frozen=True)
class Gains:
    """The gains (2): ``a`` scales steps, ``c`` is the distance of estimates.

    >>> gains = Gains(a0=5.1, c0=0.5, A=50.0, alpha=0.602, gamma=0.101)
    >>> [(round(gains.a(k), 4), round(gains.c(k), 4)) for k in (1, 10, 1000)]
    [(0.1, 0.5), (0.0944, 0.3963), (0.0447, 0.2489)]
    """

    a0: float
    c0: float
    A: float
    alpha: float
    gamma: float

    def __post_init__(self) -> None:
        for name in ("a0", "c0"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingError(f"{name} must be a number above 0, or None for an automatic choice; got {getattr(self, name)}")
        for name in ("A", "alpha", "gamma"):
            check_number(name, getattr(self, name))

    def a(self, k: int) -> float:
        """Return a_k."""
        return float(self.a0 / (self.A + power(k, self.alpha)))

    def c(self, k: int) -> float:
        """Return c_k."""
        return float(self.c0 / power(k, self.gamma))


@dataclass(frozen=True)
class Surroundings:
    """The neighborhood of ``theta``, at which ``problem`` has ``value``."""

    problem: EvaluationCounter
    theta: Theta
    value: float

    def changes(self, steps: npt.NDArray[np.float64]) -> tuple[Theta, Theta]:
        """Return D and S along each row of ``steps``, (5)."""
        forth, back = self.problem.both_ways(self.theta, steps)
        return forth - back, forth + back - 2 * self.value

    def length(self, rng: np.random.Generator) -> float:
        """Return the size of the steps of estimates."""
        directions = signs(rng, LOOKS, len(self.theta)) / math.sqrt(len(self.theta))
        length = SHARE * (norm(self.theta) or 1.0)
        D, S = self.changes(length * directions)
        for _ in range(DOUBLINGS):
            still = 2 * np.count_nonzero(D) < LOOKS
            if not still and np.abs(S).sum() >= BEND * np.abs(D).sum():
                break
            further = self.changes(2 * length * directions)
            if not still and np.abs(further[0]).sum() < GROWTH * np.abs(D).sum():
                break
            length, (D, S) = 2 * length, further
        return length

    def first_gain(self, slopes: npt.NDArray[np.float64], length: float) -> float:
        """Return a_1 by (6) for the estimates ``slopes``, one per row; 1 if all are 0."""
        size = np.sqrt((slopes**2).sum(axis=1))
        if not np.any(size):
            return 1.0
        D, S = self.changes(slopes * (length / np.where(size > 0, size, 1.0))[:, None])
        gain, bend = float((D * size).sum() / (2 * length)), float((np.abs(S) * size**2).sum() / (length * length))
        as_long = length / float(size.mean())
        return min(CAUTION * gain / bend, math.sqrt(len(self.theta)) * as_long) if gain > 0 and bend > 0 else CAUTION * as_long


def signs(rng: np.random.Generator, rows: int, columns: int) -> npt.NDArray[np.float64]:
    """Return +1 or -1 at random, with equal probability."""
    return np.asarray(rng.integers(0, 2, (rows, columns)) * 2.0 - 1.0)


@storable
@dataclass(frozen=True, kw_only=True)
class ApproximationState(State[Theta]):
    """A state with its gains and the number of evaluations: to choose gains, for estimates, and one per state."""

    gains: Gains
    evaluations: int
    generator: Draws = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class StochasticApproximation(ABC):
    """Ascend by (1). A step evaluates what its estimate needs, and the value at its end."""

    asks: ClassVar[type] = Valued

    a0: float | None = None
    c0: float | None = None
    A: float = 50.0
    alpha: float = 0.602
    gamma: float = 0.101

    #: True if an estimate moves one coordinate at a time: then its points are c away, and all estimates at the start are equal.
    one_by_one: ClassVar[bool] = False

    def __post_init__(self) -> None:
        Gains(1.0 if self.a0 is None else self.a0, 1.0 if self.c0 is None else self.c0, self.A, self.alpha, self.gamma)

    @abstractmethod
    def _slope(self, problem: EvaluationCounter, theta: Theta, c: float, rng: np.random.Generator) -> Theta:
        """Return the estimate at ``theta``."""

    def init(self, problem: Valued, theta: Theta, rng: np.random.Generator) -> ApproximationState:
        """Start at ``theta``, and choose the gains that are not set."""
        counter, start = EvaluationCounter(problem), np.array(theta, np.float64)
        value, a0, c0 = counter.value(start), self.a0, self.c0
        if a0 is None or c0 is None:
            around = Surroundings(counter, start, value)
            length = around.length(rng)
            c0 = length / (1.0 if self.one_by_one else math.sqrt(len(start))) if c0 is None else c0
            if a0 is None:
                slopes = np.array([self._slope(counter, start, c0, rng) for _ in range(1 if self.one_by_one else LOOKS)])
                a0 = around.first_gain(slopes, length) * (self.A + 1)
        gains = Gains(a0, c0, self.A, self.alpha, self.gamma)
        return ApproximationState(start, value, gains=gains, evaluations=counter.evaluations, generator=draws_of(rng))

    def step(self, problem: Valued, state: ApproximationState) -> ApproximationState:
        """Return the state after step k of (1)."""
        rng, counter, k = drawing_from(state.generator), EvaluationCounter(problem), state.steps + 1
        theta = state.theta + state.gains.a(k) * self._slope(counter, state.theta, state.gains.c(k), rng)
        value = counter.value(theta) if np.all(np.isfinite(theta)) else np.nan
        evaluated = replace(state, evaluations=state.evaluations + counter.evaluations, generator=draws_of(rng))
        # Far away, perturbations are lost in the rounding of theta, and no step can lead back.
        if not np.isfinite(value) or state.gains.c(k) <= np.spacing(np.abs(theta).max()):
            return replace(evaluated, is_done=True, trouble=f"a0={state.gains.a0:g} diverged in step {k}; use a smaller a0")
        return replace(evaluated, theta=theta, value=value, steps=k)


@dataclass(frozen=True, kw_only=True)
class FDSA(StochasticApproximation):
    """Ascend by (3): 2 d evaluations per step, and one for the value of the state."""

    one_by_one: ClassVar[bool] = True

    def _slope(self, problem: EvaluationCounter, theta: Theta, c: float, rng: np.random.Generator) -> Theta:
        return problem.differences(theta, c) / (2 * c)


def simultaneous(problem: EvaluationCounter, theta: Theta, c: float, deltas: npt.NDArray[np.float64]) -> Theta:
    """Return the mean of (4) over the rows of ``deltas``."""
    forth, back = problem.both_ways(theta, c * deltas)
    return np.asarray(((forth - back)[:, None] * deltas).mean(axis=0) / (2 * c))


@dataclass(frozen=True)
class SPSA(StochasticApproximation):
    """Ascend by (4): ``evaluations`` per step, and one for the value of the state."""

    evaluations: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evaluations < 2 or self.evaluations % 2:
            raise SettingError(
                f"evaluations={self.evaluations} is not even: an estimate takes two; use {max(2, self.evaluations // 2 * 2)}"
            )

    def _slope(self, problem: EvaluationCounter, theta: Theta, c: float, rng: np.random.Generator) -> Theta:
        return simultaneous(problem, theta, c, signs(rng, self.evaluations // 2, len(theta)))
