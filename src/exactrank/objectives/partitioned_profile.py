"""The mean of a measure along lines of a linear model's weights, for data in partitions.

A search takes two or three rounds (`exactrank.objectives.summed_steps`), and gives the same interval and the same value as `LinearProfile`
on all queries at once.

Where a search stands is told by where the round over the weights began and by the moves since, so that any worker can go there:
scores are moved as `Place` moves them, to the bit. Where an optimizer says which directions come one after the other, the value of a step
comes with the outline along the next one, in one round.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.data.ranking_data import RankingData
from exactrank.objectives.line_search import Point
from exactrank.objectives.linear_profile import Direction, Theta, columns_of
from exactrank.objectives.partitioned_search import KEPT, PartitionedLine, PartitionedSearch, State
from exactrank.objectives.step_function import Interval, StepFunction
from exactrank.scorers.missing import PerFeature

Move = tuple[Direction, float]
Reach = Callable[[Direction, Theta], tuple[float, float]]  #: how far to look along a direction
Along = tuple[Direction, float, float]  #: a direction, and how far to look along it: low and high


class Features(Protocol):
    """Other features than those of the data, made by each part of its own; picklable."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def key(self) -> Hashable:
        """What tells them from others."""

    def __call__(self, data: RankingData) -> RankingData:
        """``data`` with them for its features."""


class PartitionedProfile:
    """A measure on its data in partitions, as a function of weights of its ``features``, or of others.

    Weights are in units of ``scale``, where one is given: a feature is divided by it.
    """

    def __init__(
        self, search: PartitionedSearch, point: Point = "middle", features: Features | None = None, scale: PerFeature | None = None
    ) -> None:
        self.search, self.point, self.features, self.scale = search, point, features, scale
        self.dimension = search.data.n_features if features is None else features.count
        self._directions: Sequence[Direction] = ()
        self._reach: Reach | None = None

    def foresee(self, directions: Sequence[Direction], reach: Reach) -> None:
        """Searches will be along ``directions``, in turn, as far as ``reach`` says from where they are."""
        self._directions, self._reach = directions, reach

    def next_after(self, direction: Direction | None, theta: Theta) -> Along | None:
        """What will be asked for at ``theta``, after a step along ``direction`` or at first."""
        turn = 0 if direction is None else next((i + 1 for i, one in enumerate(self._directions) if _same(one, direction)), math.inf)
        if self._reach is None or turn >= len(self._directions):
            return None
        coming = self._directions[int(turn)]
        return coming, *self._reach(coming, theta)

    def value(self, theta: Theta) -> float:
        """The mean of the measure at ``theta``."""
        return PartitionedPlace(self, theta, self._path(theta)).value

    def at(self, theta: Theta) -> "PartitionedPlace":
        """The place to search from."""
        return PartitionedPlace(self, theta, self._path(theta), self.next_after(None, theta))

    def _path(self, theta: Theta) -> "Path":
        return Path(np.array(theta), (), self.features, self.scale)


def _same(one: Direction, other: Direction) -> bool:
    return one == other if isinstance(one, int) and isinstance(other, int) else one is other


class PartitionedPlace:
    """A point in weight space with the value there, and the outlines ``ahead``, where it is known what comes next."""

    def __init__(self, problem: PartitionedProfile, theta: Theta, path: "Path", ahead: Along | None = None) -> None:
        self.theta, self._problem, self._path, self._ahead = theta, problem, path, ahead
        more: dict[str, Any] = {} if ahead is None else dict(zip(("direction", "low", "high"), ahead, strict=True))
        answers = problem.search.ask(path, "value", **more)
        self.value = problem.search.scale().value([value for value, _ in answers])
        self._outlines = [outline for _, outline in answers]

    def best(self, direction: Direction, low: float = -math.inf, high: float = math.inf) -> Interval:
        """The interval of alpha, low <= 0 <= high, where the measure is largest."""
        ahead = self._ahead
        known = ahead is not None and _same(ahead[0], direction) and ahead[1:] == (low, high)
        return self._line(direction, low, high).best(self._outlines if known else None)

    def profile(self, direction: Direction) -> StepFunction:
        """The whole function, with all its breakpoints."""
        return self._line(direction).whole()

    def point(self, direction: Direction, interval: Interval) -> float:
        """The alpha to take in an interval: its middle; where it has no end, as far as the scores deviate; or the likeliest."""
        scale = 1.0
        if interval.endless:
            own, along = self._line(direction).spreads()
            scale = own / along if along > 0 and own > 0 else 1.0
        middle = interval.middle(scale)
        return middle if self._problem.point == "middle" else self._line(direction).likeliest(interval, middle)

    def moved(self, direction: Direction, alpha: float) -> "PartitionedPlace":
        """The place at ``alpha`` along ``direction``."""
        theta = self.theta.copy()
        if isinstance(direction, int):
            theta[direction] += alpha
        else:
            theta += alpha * direction
        path = replace(self._path, moves=(*self._path.moves, (direction, alpha)))
        return PartitionedPlace(self._problem, theta, path, self._problem.next_after(direction, theta))

    def _line(self, direction: Direction, low: float = -math.inf, high: float = math.inf) -> PartitionedLine:
        return PartitionedLine(self._problem.search, self._path, direction, low, high)


@dataclass(frozen=True, eq=False)
class Path:
    """Where a search stands: moves from a start."""

    start: Theta
    moves: tuple[Move, ...]
    features: Features | None = None
    scale: PerFeature | None = None  #: what features are divided by

    @property
    def key(self) -> Hashable:
        """Which features have weights, and in which units."""
        return "own" if self.features is None else self.features.key, None if self.scale is None else self.scale.tobytes()

    def go(self, state: State, threads: int) -> None:
        """To its end, from where ``state`` stands if that lies on it."""
        now = state.stands
        if not isinstance(now, Path) or not self._passes(now):
            now, scores = Path(self.start, ()), self.slopes(state, self.start, threads)
        elif len(now.moves) == len(self.moves):
            return
        else:
            scores = state.scores
        for direction, alpha in self.moves[len(now.moves) :]:
            scores = scores + alpha * self.slopes(state, direction, threads).astype(np.float64)
        state.stand(self, scores, threads)

    def slopes(self, state: State, direction: Direction, threads: int) -> npt.NDArray[Any]:
        """How fast each score changes along ``direction``."""
        data = state.part.lately("features", self.key, KEPT, lambda: self._featured(state.bound.data))
        if isinstance(direction, int):
            column = np.asarray(state.part.lately("columns", self.key, KEPT, lambda: columns_of(data))[direction])
            unit = 1.0 if self.scale is None else float(self.scale[direction])
            return column if unit == 1.0 else column.astype(np.float64) / unit
        weights = np.ascontiguousarray(direction if self.scale is None else direction / self.scale)
        return _core.linear_scores(data.X, weights, threads)

    def _featured(self, data: RankingData) -> RankingData:
        return data if self.features is None else self.features(data)

    def _passes(self, other: "Path") -> bool:
        """Does ``other`` lie on it?"""
        if not np.array_equal(self.start, other.start) or len(other.moves) > len(self.moves):
            return False
        return all(np.array_equal(a[0], b[0]) and a[1] == b[1] for a, b in zip(other.moves, self.moves, strict=False))
