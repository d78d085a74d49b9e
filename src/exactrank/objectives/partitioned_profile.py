"""The mean of a measure along lines of a linear model's weights, for data in partitions.

A search takes two or three rounds (`exactrank.objectives.summed_steps`), and gives the same interval and the same value as `LinearProfile`
on all queries at once.

Where a search stands is told by where the round over the weights began and by the moves since, so that any worker can go there:
scores are moved as `Place` moves them, to the bit. Where an optimizer says which directions come one after the other, the value of a step
comes with the outline along the next one, in one round. Where a search led nowhere, the next ones start from the same place, so that
several of them can be made in the same rounds: twice as many each time, until one leads on, and what was found for the others is of no
use. That is done where a round takes longer than the work on that many lines.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.data.ranking_data import RankingData
from exactrank.objectives.line_search import Point
from exactrank.objectives.linear_profile import Direction, Theta, columns_of
from exactrank.objectives.partitioned_search import KEPT, Along, PartitionedLine, PartitionedSearch, State
from exactrank.objectives.step_function import Interval, StepFunction
from exactrank.objectives.summed_steps import Outline
from exactrank.scorers.missing import PerFeature

Known = TypeVar("Known")
Move = tuple[Direction, float]
Reach = Callable[[Direction, Theta], tuple[float, float]]  #: how far to look along a direction
#: How many lines are searched at once at most.
MOST_AT_ONCE = 8


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

    @cached_property
    def at_once(self) -> int:
        """How many lines are worth a round of their own only together."""
        engine, documents = self.search.data.engine, self.search.data.n_documents
        return min(MOST_AT_ONCE, 1 + engine.documents_per_round * engine.workers // documents)

    def coming(self, after: Direction | None, theta: Theta, count: int) -> list[Along]:
        """The ``count`` lines that will be asked for at ``theta``, if all searches on the way lead nowhere: at first, or ``after`` one."""
        turn = 0 if after is None else next((i + 1 for i, one in enumerate(self._directions) if _same(one, after)), len(self._directions))
        directions = self._directions[turn : turn + count]
        return [] if self._reach is None else [(direction, *self._reach(direction, theta)) for direction in directions]

    def value(self, theta: Theta) -> float:
        """The mean of the measure at ``theta``."""
        return PartitionedPlace(self, theta, self._path(theta)).value

    def at(self, theta: Theta) -> "PartitionedPlace":
        """The place to search from."""
        return PartitionedPlace(self, theta, self._path(theta), self.coming(None, theta, 1))

    def _path(self, theta: Theta) -> "Path":
        return Path(np.array(theta), (), self.features, self.scale)


def _same(one: Direction, other: Direction) -> bool:
    return one == other if isinstance(one, int) and isinstance(other, int) else one is other


def _known(those: Sequence[tuple[Along, Known]], line: Along) -> Known | None:
    """What is known of ``line``."""
    return next((known for own, known in those if _same(own[0], line[0]) and own[1:] == line[1:]), None)


class PartitionedPlace:
    """A point in weight space with the value there, and what the parts know of the lines ``ahead``, which will be asked for."""

    def __init__(self, problem: PartitionedProfile, theta: Theta, path: "Path", ahead: Sequence[Along] = ()) -> None:
        self.theta, self._problem, self._path = theta, problem, path
        self.value, outlines = problem.search.values(path, ahead)
        self._ahead: list[tuple[Along, list[Outline]]] = list(zip(ahead, outlines, strict=True))
        self._found: list[tuple[Along, Interval]] = []

    def best(self, direction: Direction, low: float = -math.inf, high: float = math.inf) -> Interval:
        """The interval of alpha, low <= 0 <= high, where the measure is largest."""
        asked = direction, low, high
        found = _known(self._found, asked)
        if found is None:
            self._search(asked)
            found = _known(self._found, asked)
        assert found is not None
        return found

    def _search(self, asked: Along) -> None:
        """Along the line that is ``asked`` for; with it along those that will be, where that costs no round of their own."""
        search, path = self._problem.search, self._path
        if _known(self._ahead, asked) is None:
            others = min(2 * len(self._found), self._problem.at_once) - 1
            lines = [asked, *self._problem.coming(asked[0], self.theta, max(others, 0))]
            self._ahead = list(zip(lines, search.values(path, lines)[1], strict=True))
        lines, outlines = [line for line, _ in self._ahead], [own for _, own in self._ahead]
        self._found += zip(lines, search.best(path, lines, outlines), strict=True)
        self._ahead = []

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
        return PartitionedPlace(self._problem, theta, path, self._problem.coming(direction, theta, 1))

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
