"""Ascent with an exact line search, along coordinates (Tan, Xia, Guo & Wang 2013, Algorithm 1) and other directions.

    alpha* in the best interval of  alpha -> f(theta + alpha e_k),    theta <- theta + alpha* e_k               (1)

for one coordinate k after the other. f may be a step function: its problem says where along a line it is largest, so no slope
is needed. Each step is taken only where it raises the value as measured there, so that never falls.

**Powell's method** (1964) learns other directions on the way. A round steps along each of d directions, at first the coordinates, then
along where the round led as a whole,

    p = theta_end - theta_start                                                                                 (2)

and p takes the place of the direction that gained the most in the round, which it contains most of. So one exact step can move
all weights, as Tan et al. suggest for future work.

**Along a slope** and then along each coordinate:

    theta <- theta + alpha* g(theta),    then a round of (1)                                                    (3)

with alpha* the best of all step lengths. g need not be the slope of what is maximized: a lambda function is a good guess at
where a measure rises, and the exact step says how far.

**Under a guard** a step must not do harm elsewhere:

    step from theta to theta' is allowed if  f(theta') > f(theta)  and  g(theta') >= g(theta)                    (4)

f is maximized; g is the same on data that f does not see, such as the queries that a bootstrap sample leaves out. A step
that lowers g reports the value -inf, which no optimizer takes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from exactrank._support.serialize import storable
from exactrank.errors import SettingError
from exactrank.learning.objectives.linear_profile import Direction
from exactrank.learning.objectives.step_function import Interval
from exactrank.learning.optimizers.base import Draws, State, Theta, Valued, drawing_from, draws_of

#: A gain smaller than this is a rounding error.
LEAST_GAIN = 1e-12


class Spot(Protocol):
    """A point that can be left along a direction: the number of a coordinate, or a vector."""

    @property
    def theta(self) -> Theta:
        """The coordinates of the point."""

    @property
    def value(self) -> float:
        """The value there, as measured."""

    def best(self, direction: Direction, low: float, high: float) -> Interval:
        """The best stretch of alpha between ``low`` and ``high`` along ``direction``."""

    def point(self, direction: Direction, interval: Interval) -> float:
        """The alpha to take in it."""

    def moved(self, direction: Direction, alpha: float) -> Self:
        """The point at ``alpha``."""


SpotT = TypeVar("SpotT", bound=Spot)


class Profiled(Valued, Protocol):
    """A problem whose best point along a line is known exactly."""

    @property
    def dimension(self) -> int:
        """The number of coordinates."""

    def at(self, theta: Theta) -> Spot:
        """The point ``theta``."""


@runtime_checkable
class Foreseeing(Protocol):
    """A problem that answers sooner where it knows what comes next."""

    def foresee(self, directions: Sequence[Direction], reach: Callable[[Direction, Theta], tuple[float, float]]) -> None:
        """Searches will be along ``directions``, in turn, as far as ``reach`` says from where they are."""


class Steered(Profiled, Protocol):
    """A problem whose best point along a line is known, and that says along which to look."""

    def slope(self, theta: Theta) -> Theta:
        """A direction in which the value may rise."""


@dataclass(frozen=True)
class Limits:
    """Limits of coordinates: between ``low`` and ``high``, and by at most ``window`` times the largest in one step."""

    low: float = -math.inf
    high: float = math.inf
    window: float = math.inf

    def __post_init__(self) -> None:
        if not self.low < self.high or not self.window > 0:
            raise SettingError(f"limits need low < high and a window above 0, got {self.low}, {self.high} and {self.window}")

    @property
    def scale_free(self) -> bool:
        """True if multiples of allowed points are allowed."""
        return self.low in (-math.inf, 0.0) and self.high in (math.inf, 0.0)

    def along(self, direction: Direction, theta: Theta) -> tuple[float, float]:
        """Return how far each coordinate may move down and up from ``theta``, which is within the limits."""
        step = np.eye(1, len(theta), direction)[0] if isinstance(direction, int) else direction
        reach = self.window * max(float(np.abs(theta).max()), 1e-300) / max(float(np.abs(step).max()), 1e-300)
        moving = step != 0
        if not moving.any():  # such as the way to where one stands
            return 0.0, 0.0
        ends = np.array([(self.low - theta[moving]) / step[moving], (self.high - theta[moving]) / step[moving]])
        return min(0.0, max(ends.min(axis=0).max(), -reach)), max(0.0, min(ends.max(axis=0).min(), reach))


NO_LIMITS = Limits()


def foretell(problem: Profiled, directions: Sequence[Direction], limits: Limits) -> None:
    """Tell a problem that wants to know along what it will be searched."""
    if isinstance(problem, Foreseeing):
        problem.foresee(directions, limits.along)


def ascended(spot: SpotT, direction: Direction, limits: Limits) -> SpotT:
    """``spot``, or the better one that an exact step along ``direction`` leads to, (1)."""
    low, high = limits.along(direction, spot.theta)
    if not low < high:
        return spot
    interval = spot.best(direction, low, high)
    if interval.value <= spot.value + LEAST_GAIN:
        return spot
    candidate = spot.moved(direction, spot.point(direction, interval))
    return candidate if candidate.value > spot.value + LEAST_GAIN else spot


def rescaled(theta: Theta) -> Theta:
    """``theta`` times the power of two that brings its largest entry to between 1/2 and 1: no digit changes."""
    return theta * 2.0 ** -math.frexp(float(np.abs(theta).max()))[1] if np.any(theta) else theta


def settled(problem: Profiled, spot: Spot, before: State[Theta], limits: Limits) -> tuple[Theta, float]:
    """Theta and value where a round ends: at ``spot``, rescaled where only ratios count, unless rounding made that no better."""
    theta = rescaled(spot.theta) if limits.scale_free else spot.theta
    value = problem.value(theta)
    return (theta, value) if value > before.value else (before.theta, before.value)


@storable
@dataclass(frozen=True)
class CoordinateState(State[Theta]):
    """A state with the random generator's."""

    generator: Draws = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class CoordinateSearch:
    """Algorithm 1: a step is one round over all coordinates, ``cyclic`` or in ``random`` order; or, ``greedy``, the one best of them.

    A random round may visit only a ``share`` of the coordinates. Done when a step gains less than ``tolerance``. Where the limits
    allow it theta is rescaled, since only ratios count.
    """

    asks: ClassVar[type] = Profiled

    order: Literal["cyclic", "random", "greedy"] = "cyclic"
    limits: Limits = NO_LIMITS
    tolerance: float = 1e-6
    share: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise SettingError(f"share must be above 0 and at most 1, got {self.share}")

    def init(self, problem: Profiled, theta: Theta, rng: np.random.Generator) -> CoordinateState:
        """Start at ``theta``, brought within the limits."""
        start = np.clip(theta, self.limits.low, self.limits.high)
        return CoordinateState(start, problem.value(start), generator=draws_of(rng))

    def step(self, problem: Profiled, state: CoordinateState) -> CoordinateState:
        """Return the state after another round."""
        rng = drawing_from(state.generator)
        dimension = problem.dimension
        order: Sequence[int] = range(dimension)
        if self.order == "random":
            order = rng.permutation(dimension)[: math.ceil(self.share * dimension)].tolist()
        foretell(problem, order, self.limits)
        spot = problem.at(state.theta)
        if self.order == "greedy":
            order = [int(np.argmax([ascended(spot, k, self.limits).value for k in order]))]
        for k in order:
            spot = ascended(spot, k, self.limits)
        theta, value = settled(problem, spot, state, self.limits)
        return CoordinateState(theta, value, state.steps + 1, value < state.value + self.tolerance, generator=draws_of(rng))


@storable
@dataclass(frozen=True)
class PowellState(State[Theta]):
    """A state with the directions: numbers of coordinates, and vectors."""

    directions: tuple[Direction, ...] = ()


@dataclass(frozen=True)
class Powell:
    """A step is one round over all directions and (2). Done when it gains less than ``tolerance``."""

    asks: ClassVar[type] = Profiled

    limits: Limits = NO_LIMITS
    tolerance: float = 1e-6

    def init(self, problem: Profiled, theta: Theta, rng: np.random.Generator) -> PowellState:
        """Start at ``theta``, brought within the limits, with the coordinates."""
        start = np.clip(theta, self.limits.low, self.limits.high)
        return PowellState(start, problem.value(start), directions=tuple(range(problem.dimension)))

    def step(self, problem: Profiled, state: PowellState) -> PowellState:
        """Return the state after another round."""
        foretell(problem, state.directions, self.limits)
        start = spot = problem.at(state.theta)
        gains = []
        for direction in state.directions:
            before = spot.value
            spot = ascended(spot, direction, self.limits)
            gains.append(spot.value - before)
        led = spot.theta - start.theta
        directions = list(state.directions)
        if np.count_nonzero(led) > 1:
            spot = ascended(spot, led, self.limits)
            del directions[int(np.argmax(gains))]
            directions.append(led)
        theta, value = settled(problem, spot, state, self.limits)
        return PowellState(theta, value, state.steps + 1, value < state.value + self.tolerance, directions=tuple(directions))


@dataclass(frozen=True)
class SlopeAndCoordinates:
    """(3); done when a round gains less than ``tolerance``."""

    asks: ClassVar[type] = Steered

    tolerance: float = 1e-6

    def init(self, problem: Steered, theta: Theta, rng: np.random.Generator) -> CoordinateState:
        """At ``theta``."""
        return CoordinateSearch("cyclic").init(problem, theta, rng)

    def step(self, problem: Steered, state: CoordinateState) -> CoordinateState:
        """Return the state after a step along the slope and another round."""
        slope = problem.slope(state.theta)
        spot = problem.at(state.theta)
        if np.any(slope):
            spot = ascended(spot, slope, NO_LIMITS)
        after = CoordinateSearch("cyclic").step(problem, replace(state, theta=spot.theta, value=spot.value))
        return replace(after, done=after.value < state.value + self.tolerance)


class Guarded:
    """``problem`` under the ``guard`` of another, (4); its value is the problem's, whatever the guard says."""

    def __init__(self, problem: Profiled, guard: Profiled) -> None:
        self.dimension, self.value = problem.dimension, problem.value
        self._problem, self._guard = problem, guard

    def foresee(self, directions: Sequence[Direction], reach: Callable[[Direction, Theta], tuple[float, float]]) -> None:
        """Only the problem is searched."""
        if isinstance(self._problem, Foreseeing):
            self._problem.foresee(directions, reach)

    def at(self, theta: Theta) -> "GuardedSpot":
        """The point ``theta``."""
        return GuardedSpot(self._problem.at(theta), self._guard.at(theta), -math.inf)


class GuardedSpot:
    """A point of both; its value is the problem's, or -inf where the guard's is below ``least``. The problem says where to go."""

    def __init__(self, spot: Spot, guard: Spot, least: float) -> None:
        self.theta, self.best, self.point = spot.theta, spot.best, spot.point
        self.value = spot.value if guard.value >= least else -math.inf
        self._spot, self._guard = spot, guard

    def moved(self, direction: Direction, alpha: float) -> "GuardedSpot":
        """Both moved; from 0, where everything ties, any step is allowed."""
        least = self._guard.value if np.any(self.theta) else -math.inf
        return GuardedSpot(self._spot.moved(direction, alpha), self._guard.moved(direction, alpha), least)
