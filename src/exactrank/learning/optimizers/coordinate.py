"""Ascent with an exact line search, along coordinates (Tan, Xia, Guo & Wang 2013, Algorithm 1) and other directions.

    alpha* in the best interval of  alpha -> f(theta + alpha e_k),    theta <- theta + alpha* e_k               (1)

for one coordinate k after the other. f may be a step function: its problem says where along a line it is largest, so no slope
is needed. A step is taken only if it raises the value as measured at its end, so the value never falls.

**Powell's method** (1964) learns other directions on the way. A round steps along each of d directions, at first the coordinates, and then
along the direction of the whole round,

    p = theta_end - theta_start                                                                                 (2)

and p replaces the direction that gained the most in the round, which it mostly consists of. So one exact step can move all weights, as
Tan et al. suggest for future work.

**Along a slope** and then along each coordinate:

    theta <- theta + alpha* g(theta),    then a round of (1)                                                    (3)

with alpha* the best of all step lengths. g need not be the slope of the function that is maximized: a lambda function is a good guess
of the direction in which a measure rises, and the exact step finds the length.

**With a guard** a step must not lower the value on other data:

    step from theta to theta' is allowed if  f(theta') > f(theta)  and  g(theta') >= g(theta)                    (4)

f is maximized; g is the same function on data that f does not see, such as the queries that a bootstrap sample leaves out. A step
that lowers g has the value -inf, so no optimizer takes it.

**Random directions** help where a constraint stops steps along coordinates: there no single weight may gain any more, though several
together could, along the edge of the allowed region. So once a round gains nothing there, exact steps follow along

    u_k = z_k / sd_k,    z_k standard normal, drawn anew for each step                                          (5)

with sd_k the standard deviation of feature k, so that each weight moves the scores alike (Solis & Wets 1981 draw theirs so). A step that
gains is followed by another round; if none of `RANDOM_STEPS` per weight gains, the search ends.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Generic, Literal, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from exactrank._support.numerics import standard_normal
from exactrank._support.serialize import storable
from exactrank.errors import SettingError
from exactrank.learning.objectives.searched_measure import Direction
from exactrank.learning.objectives.step_function import Interval
from exactrank.learning.optimizers.base import Draws, State, Theta, Valued, drawing_from, draws_of

#: A gain smaller than this is a rounding error.
LEAST_GAIN = 1e-12
RANDOM_STEPS = 4  #: per weight


class SearchPoint(Protocol):
    """A point from which lines can be searched."""

    @property
    def theta(self) -> Theta:
        """The coordinates of the point."""

    @property
    def value(self) -> float:
        """The value at the point, as measured."""

    def best(self, direction: Direction, low: float, high: float) -> Interval:
        """Return the best interval of alpha between ``low`` and ``high`` along ``direction``."""

    def choose_alpha(self, direction: Direction, interval: Interval) -> float:
        """Return the alpha to take in ``interval``."""

    def move(self, direction: Direction, alpha: float) -> Self:
        """Return the point at ``alpha`` along ``direction``."""


PointT = TypeVar("PointT", bound=SearchPoint)


class Profiled(Valued, Protocol):
    """A problem that finds the best point along a line exactly."""

    @property
    def dimension(self) -> int:
        """The number of coordinates."""

    def at(self, theta: Theta) -> SearchPoint:
        """Return the point ``theta``."""


@runtime_checkable
class PlansAhead(Protocol):
    """A problem that answers faster if it knows the searches to come."""

    def announce(self, directions: Sequence[Direction], reach: Callable[[Direction, Theta], tuple[float, float]]) -> None:
        """Announce searches along ``directions``, in turn, as far as ``reach`` says."""


class Steered(Profiled, Protocol):
    """A problem that finds the best point along a line, and proposes a direction to search."""

    def slope(self, theta: Theta) -> Theta:
        """Return a direction in which the value may rise."""


@dataclass(frozen=True)
class Limits:
    """Limits of coordinates: between ``low`` and ``high``, and by at most ``window`` times the largest in one step."""

    low: float = -math.inf
    high: float = math.inf
    window: float = math.inf
    rescale: bool = True  #: after each round, if multiples are allowed

    def __post_init__(self) -> None:
        if not self.low < self.high or not self.window > 0:
            raise SettingError(f"limits need low < high and a window above 0, got {self.low}, {self.high} and {self.window}")

    @property
    def scale_free(self) -> bool:
        """True if multiples of allowed points are allowed and count as the same."""
        return self.rescale and self.low in (-math.inf, 0.0) and self.high in (math.inf, 0.0)

    def along(self, direction: Direction, theta: Theta) -> tuple[float, float]:
        """Return how far each coordinate may move down and up from ``theta``, which is within the limits."""
        step = np.eye(1, len(theta), direction)[0] if isinstance(direction, int) else direction
        reach = self.window * max(float(np.abs(theta).max()), 1e-300) / max(float(np.abs(step).max()), 1e-300)
        moving = step != 0
        if not moving.any():  # a direction of length 0
            return 0.0, 0.0
        ends = np.array([(self.low - theta[moving]) / step[moving], (self.high - theta[moving]) / step[moving]])
        return min(0.0, max(ends.min(axis=0).max(), -reach)), max(0.0, min(ends.max(axis=0).min(), reach))


NO_LIMITS = Limits()


def announce_searches(problem: Profiled, directions: Sequence[Direction], limits: Limits) -> None:
    """Announce the next searches to a problem that plans ahead."""
    if isinstance(problem, PlansAhead):
        problem.announce(directions, limits.along)


def ascend(point: PointT, direction: Direction, limits: Limits) -> PointT:
    """Return the point after an exact step (1) along ``direction``; ``point`` itself if that gains nothing."""
    low, high = limits.along(direction, point.theta)
    if not low < high:
        return point
    interval = point.best(direction, low, high)
    if interval.value <= point.value + LEAST_GAIN:
        return point
    candidate = point.move(direction, point.choose_alpha(direction, interval))
    return candidate if candidate.value > point.value + LEAST_GAIN else point


def rescale(theta: Theta) -> Theta:
    """Return ``theta`` times the power of two that brings its largest entry to between 1/2 and 1: no digit changes."""
    return theta * 2.0 ** -math.frexp(float(np.abs(theta).max()))[1] if np.any(theta) else theta


def end_round(problem: Profiled, point: SearchPoint, before: State[Theta], limits: Limits) -> tuple[Theta, float]:
    """Return theta and value at the end of a round: of ``point``, rescaled if only ratios count; of ``before`` if that is no better."""
    theta = rescale(point.theta) if limits.scale_free else point.theta
    value = problem.value(theta)
    return (theta, value) if value > before.value else (before.theta, before.value)


@storable
@dataclass(frozen=True)
class CoordinateState(State[Theta]):
    """A state with that of the random generator."""

    generator: Draws = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class CoordinateSearch:
    """Algorithm 1: a step is one round over all coordinates, ``cyclic`` or in ``random`` order, or ``greedy``: along the best one.

    A random round may visit only a ``share`` of the coordinates. Done when a step gains less than ``tolerance``. Theta is rescaled if
    the limits allow it, since then only ratios count.
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
        """Start at ``theta``, clipped to the limits."""
        start = np.clip(theta, self.limits.low, self.limits.high)
        return CoordinateState(start, problem.value(start), generator=draws_of(rng))

    def step(self, problem: Profiled, state: CoordinateState) -> CoordinateState:
        """Return the state after another round."""
        rng = drawing_from(state.generator)
        dimension = problem.dimension
        order: Sequence[int] = range(dimension)
        if self.order == "random":
            order = rng.permutation(dimension)[: math.ceil(self.share * dimension)].tolist()
        announce_searches(problem, order, self.limits)
        point = problem.at(state.theta)
        if self.order == "greedy":
            order = [int(np.argmax([ascend(point, k, self.limits).value for k in order]))]
        for k in order:
            point = ascend(point, k, self.limits)
        theta, value = end_round(problem, point, state, self.limits)
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
        """Start at ``theta``, clipped to the limits, with the coordinates as directions."""
        start = np.clip(theta, self.limits.low, self.limits.high)
        return PowellState(start, problem.value(start), directions=tuple(range(problem.dimension)))

    def step(self, problem: Profiled, state: PowellState) -> PowellState:
        """Return the state after another round."""
        announce_searches(problem, state.directions, self.limits)
        start = point = problem.at(state.theta)
        gains = []
        for direction in state.directions:
            before = point.value
            point = ascend(point, direction, self.limits)
            gains.append(point.value - before)
        whole_round = point.theta - start.theta  # (2)
        directions = list(state.directions)
        if np.count_nonzero(whole_round) > 1:
            point = ascend(point, whole_round, self.limits)
            del directions[int(np.argmax(gains))]
            directions.append(whole_round)
        theta, value = end_round(problem, point, state, self.limits)
        return PowellState(theta, value, state.steps + 1, value < state.value + self.tolerance, directions=tuple(directions))


@dataclass(frozen=True)
class SlopeAndCoordinates:
    """(3); done when a round gains less than ``tolerance``."""

    asks: ClassVar[type] = Steered

    tolerance: float = 1e-6

    def init(self, problem: Steered, theta: Theta, rng: np.random.Generator) -> CoordinateState:
        """Start at ``theta``."""
        return CoordinateSearch("cyclic").init(problem, theta, rng)

    def step(self, problem: Steered, state: CoordinateState) -> CoordinateState:
        """Return the state after a step along the slope and another round."""
        slope = problem.slope(state.theta)
        point = problem.at(state.theta)
        if np.any(slope):
            point = ascend(point, slope, NO_LIMITS)
        after = CoordinateSearch("cyclic").step(problem, replace(state, theta=point.theta, value=point.value))
        return replace(after, is_done=after.value < state.value + self.tolerance)


class GuardedProblem:
    """(4): ``problem``, whose steps must not lower the value of ``guard``; the value is that of ``problem``."""

    def __init__(self, problem: Profiled, guard: Profiled) -> None:
        self.dimension, self.value = problem.dimension, problem.value
        self._problem, self._guard = problem, guard

    def announce(self, directions: Sequence[Direction], reach: Callable[[Direction, Theta], tuple[float, float]]) -> None:
        """Announce searches to the problem; the guard is not searched."""
        if isinstance(self._problem, PlansAhead):
            self._problem.announce(directions, reach)

    def at(self, theta: Theta) -> "GuardedPoint":
        """Return the point ``theta``."""
        return GuardedPoint(self._problem.at(theta), self._guard.at(theta), -math.inf)


class GuardedPoint:
    """A point of both; its value is that of the problem, or -inf if the guard's value is below ``least``."""

    def __init__(self, point: SearchPoint, guard: SearchPoint, least: float) -> None:
        self.theta, self.best, self.choose_alpha = point.theta, point.best, point.choose_alpha
        self.value = point.value if guard.value >= least else -math.inf
        self._point, self._guard = point, guard

    def move(self, direction: Direction, alpha: float) -> "GuardedPoint":
        """Move both; from 0, where all documents tie, any step is allowed."""
        least = self._guard.value if np.any(self.theta) else -math.inf
        return GuardedPoint(self._point.move(direction, alpha), self._guard.move(direction, alpha), least)


class ConstrainedSearchPoint(SearchPoint, Protocol):
    """A point of a problem with constraints."""

    def is_blocked(self, direction: Direction, low: float, high: float) -> bool:
        """Return whether a constraint keeps the value from rising along ``direction``."""


class ConstrainedProblem(Profiled, Protocol):
    """A problem with constraints."""

    def at(self, theta: Theta) -> ConstrainedSearchPoint:
        """Return the point ``theta``."""


S = TypeVar("S", bound=State[Theta])


class Rounds(Protocol[S]):
    """An optimizer whose steps are rounds of exact steps, such as `CoordinateSearch`."""

    @property
    def limits(self) -> Limits:
        """The limits of coordinates."""

    @property
    def tolerance(self) -> float:
        """The least gain of a round that is followed by another."""

    def init(self, problem: Profiled, theta: Theta, rng: np.random.Generator) -> S:
        """Return the state to start from."""

    def step(self, problem: Profiled, state: S) -> S:
        """Return the state after another round."""


@dataclass(frozen=True)
class RandomDirections(Generic[S]):
    """``rounds``, and (5) if they gain less than their tolerance and a constraint binds; ``scale`` is 1 / sd, or 0 for a constant."""

    asks: ClassVar[type] = ConstrainedProblem

    rounds: Rounds[S]
    scale: Theta
    seed: int = 0

    def init(self, problem: ConstrainedProblem, theta: Theta, rng: np.random.Generator) -> S:
        """Return the initial state of the rounds."""
        return self.rounds.init(problem, theta, rng)

    def step(self, problem: ConstrainedProblem, state: S) -> S:
        """Return the state after a round and the steps of (5); the draws are those of the step's number."""
        after, limits = self.rounds.step(problem, state), self.rounds.limits
        point, dimension = problem.at(after.theta), problem.dimension
        if not after.is_done or not any(point.is_blocked(k, *limits.along(k, point.theta)) for k in range(dimension)):
            return after
        rng = np.random.default_rng([self.seed, after.steps])
        for _ in range(RANDOM_STEPS * dimension):
            point = ascend(point, standard_normal(rng, dimension) * self.scale, limits)
        theta, value = end_round(problem, point, after, limits)
        return replace(after, theta=theta, value=value, is_done=value < after.value + self.rounds.tolerance)
