"""The mean of a measure as a function of a linear model's weights.

    f(alpha) = mean over queries of measure(X (w + alpha d)),    along a ray, for an exact line search          (1)

A direction d is the number of a feature, so that one weight moves, or a vector, so that all do. The maximum of f is an interval, not a
point (Tan, Xia, Guo & Wang 2013, section 2.3): `Point` says which of its points to take. If many values of one weight are tried instead,

    X (w + d e_j) = X w + d x_j,    x_j the column of weight j                                                  (2)

A search has a path: the weights with which a round began, and the moves since. So any worker can follow it. Over several parts a search
takes two or three rounds of questions. If an optimizer announces its directions, the value after a step comes in one round with the
outline along the next direction. As long as searches gain nothing, the next ones start from the same point, so several of them share
rounds: twice as many each time, until one gains, and the results of the others are discarded. This is done if a round takes longer than
the work on that many lines.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank._support.threads import thread_count
from exactrank.data.dataset import CachedScore, Part, Score
from exactrank.data.ranking_data import RankingData
from exactrank.data.scratch_arrays import FeatureColumns
from exactrank.learning.objectives.searched_measure import (
    SEARCHES_PER_PART,
    Direction,
    Line,
    LineSlopes,
    LineState,
    Point,
    SearchedMeasure,
    same_direction,
)
from exactrank.learning.objectives.step_function import Interval, StepFunction
from exactrank.learning.objectives.summed_steps import Outline
from exactrank.measures.bound import BoundMeasure, DatasetMeasure
from exactrank.models.architecture import Theta
from exactrank.models.missing import PerFeature

Answer = TypeVar("Answer")
Reach = Callable[[Direction, Theta], tuple[float, float]]  #: how far to search along a direction from some weights, down and up
#: Maximum number of lines that are searched at once.
MOST_AT_ONCE = 8
#: About this number of scores is ranked at a time.
SCORES_PER_BLOCK = 1 << 16
#: About this number of values, one per query, is asked for at a time.
VALUES_PER_ROUND = 1 << 22


def columns_of(data: RankingData) -> FeatureColumns:
    """Return ``data`` by column: a line search reads one feature of all documents."""
    return FeatureColumns.of(data.X) if data.by_column is None else data.by_column


class DocumentFeatures:
    """The features of documents and their weighted sums, along which lines are searched."""

    def __init__(self, data: RankingData) -> None:
        self._data = data

    @cached_property
    def _columns(self) -> FeatureColumns:
        return columns_of(self._data)

    def feature(self, number: int) -> LineSlopes:
        """Return a feature of all documents."""
        return np.asarray(self._columns[number])

    def scores(self, weights: Theta, threads: int) -> PerDocument:
        """Return the sum of the features, each times its weight."""
        return _core.linear_scores(self._data.X, weights, threads)


class Features(Protocol):
    """Features that are computed from those of the data, such as hidden units; picklable."""

    @property
    def count(self) -> int:
        """The number of features."""

    @property
    def key(self) -> Hashable:
        """A value that distinguishes them from other features."""

    def __call__(self, data: RankingData) -> RankingData:
        """Return ``data`` with these features instead of its own."""


class LinearProfile:
    """(1) of a measure over its dataset, as a function of the weights of its features, or of computed ``features``.

    If ``scale`` is given, each feature is divided by its scale.
    """

    def __init__(
        self,
        search: SearchedMeasure,
        point: Point = "middle",
        features: Features | None = None,
        scale: PerFeature | None = None,
    ) -> None:
        self.search, self.point, self.features, self.scale = search, point, features, scale
        self.dimension = search.data.n_features if features is None else features.count  #: the number of weights
        self._directions: Sequence[Direction] = ()
        self._reach: Reach | None = None

    @classmethod
    def of(cls, measure: DatasetMeasure, point: Point = "middle", scale: PerFeature | None = None) -> "LinearProfile":
        """Return the profile of ``measure``."""
        return cls(SearchedMeasure(measure), point, scale=scale)

    def announce(self, directions: Sequence[Direction], reach: Reach) -> None:
        """Announce searches along ``directions``, in turn, as far as ``reach`` says."""
        if self.search.has_shares:
            self._directions, self._reach = directions, reach

    @cached_property
    def lines_per_round(self) -> int:
        """The number of lines whose work takes as long as a round of questions."""
        return min(MOST_AT_ONCE, 1 + self.search.data.documents_per_round // self.search.data.n_documents)

    def next_lines(self, after: Direction | None, theta: Theta, count: int) -> list[Line]:
        """Return the ``count`` lines to be searched from ``theta`` if no search gains: the first ones, or those ``after`` a direction."""
        if self._reach is None or not count:
            return []
        turn = 0
        if after is not None:
            turn = next((i + 1 for i, way in enumerate(self._directions) if same_direction(way, after)), len(self._directions))
        return [(direction, *self._reach(direction, theta)) for direction in self._directions[turn : turn + count]]

    def value(self, theta: Theta) -> float:
        """Return the mean of the measure at ``theta``."""
        return ProfilePoint(self, theta, self._path(theta)).value

    def at(self, theta: Theta) -> "ProfilePoint":
        """Return the point ``theta``, to search from."""
        return ProfilePoint(self, theta, self._path(theta), self.next_lines(None, theta, 1))

    def _path(self, theta: Theta) -> "SearchPath":
        return SearchPath(np.array(theta), (), self.features, self.scale)


def _look_up(answers: Sequence[tuple[Line, Answer]], line: Line) -> Answer | None:
    """Return the answer for ``line``, if there is one."""
    return next((answer for (way, *ends), answer in answers if same_direction(way, line[0]) and tuple(ends) == line[1:]), None)


class ProfilePoint:
    """A point in weight space, with the value there and the outlines of ``next_lines``, which will be searched."""

    def __init__(self, problem: LinearProfile, theta: Theta, path: "SearchPath", next_lines: Sequence[Line] = ()) -> None:
        self.theta, self._problem, self._path = theta, problem, path
        self.value, outlines = problem.search.values(path, next_lines)
        self._outlines: list[tuple[Line, list[Outline]]] = list(zip(next_lines, outlines, strict=True)) if outlines else []
        self._intervals: list[tuple[Line, Interval]] = []

    def best(self, direction: Direction, low: float = -math.inf, high: float = math.inf) -> Interval:
        """Return the interval of alpha, low <= 0 <= high, in which (1) is largest."""
        line = direction, low, high
        interval = _look_up(self._intervals, line)
        if interval is None:
            self._search(line)
            interval = _look_up(self._intervals, line)
        assert interval is not None
        return interval

    def _search(self, line: Line) -> None:
        """Search along ``line``, and in the same rounds along some of the lines that are expected next."""
        search, path = self._problem.search, self._path
        if _look_up(self._outlines, line) is None:
            count = min(2 * len(self._intervals), self._problem.lines_per_round) - 1
            lines = [line, *self._problem.next_lines(line[0], self.theta, max(count, 0))]
            self._intervals += zip(lines, search.best(path, lines), strict=True)
        else:
            lines = [line for line, _ in self._outlines]
            self._intervals += zip(lines, search.best(path, lines, [outlines for _, outlines in self._outlines]), strict=True)
        self._outlines = []

    def profile(self, direction: Direction) -> StepFunction:
        """Return (1) along ``direction``, with all its breakpoints."""
        return self._problem.search.profile(self._path, direction)

    def choose_alpha(self, direction: Direction, interval: Interval) -> float:
        """Return the alpha to take in ``interval``: its middle, or the likeliest; if it is unbounded, scores move by their deviation."""
        search, path = self._problem.search, self._path
        middle = interval.middle(search.unit(path, direction) if interval.is_unbounded else 1.0)
        point = self._problem.point
        return middle if point == "middle" else search.likeliest(path, direction, interval, middle, point)

    def move(self, direction: Direction, alpha: float) -> "ProfilePoint":
        """Return the point at ``alpha`` along ``direction``."""
        theta = self.theta.copy()
        if isinstance(direction, int):
            theta[direction] += alpha
        else:
            theta += alpha * direction
        path = self._path.extend(direction, alpha)
        return ProfilePoint(self._problem, theta, path, self._problem.next_lines(direction, theta, 1))


class SearchPath:
    """The path of a search: ``moves`` from a ``start``. In the process of the only part it keeps the scores at its end."""

    def __init__(
        self,
        start: Theta,
        moves: tuple[tuple[Direction, float], ...],
        features: Features | None = None,
        scale: PerFeature | None = None,  #: the divisors of features
    ) -> None:
        self.start, self.moves, self.features, self.scale = start, moves, features, scale
        self._scores: PerDocument | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without the scores."""
        return SearchPath, (self.start, self.moves, self.features, self.scale)

    def extend(self, direction: Direction, alpha: float) -> "SearchPath":
        """Return the path with one more move."""
        return SearchPath(self.start, (*self.moves, (direction, alpha)), self.features, self.scale)

    @property
    def key(self) -> Hashable:
        """The features that have weights, and their units."""
        return "own" if self.features is None else self.features.key, None if self.scale is None else self.scale.tobytes()

    def follow(self, state: LineState, threads: int) -> None:
        """Bring ``state`` to the end of the path, from its present position if that lies on the path."""
        before = state.position
        if before is self:
            return
        if self._scores is not None:
            state.start(self, self._scores, threads)
            return
        if not isinstance(before, SearchPath) or not self._begins_with(before):
            before, scores = SearchPath(self.start, ()), self._weighted_sum(state, self.start, threads)
        elif len(before.moves) == len(self.moves):
            return
        else:
            scores = state.scores
        for direction, alpha in self.moves[len(before.moves) :]:
            moved = self.slopes(state, direction, threads).astype(np.float64)
            moved *= alpha
            moved += scores
            scores = moved
        state.start(self, scores, threads)
        self._scores = scores if state.part.is_complete else None

    def slopes(self, state: LineState, direction: Direction, threads: int) -> LineSlopes:
        """Return the rate of change of each score along ``direction``."""
        if isinstance(direction, int):
            feature = self._features(state.part).feature(direction)
            unit = 1.0 if self.scale is None else float(self.scale[direction])
            return feature if unit == 1.0 else feature.astype(np.float64) / unit
        return self._weighted_sum(state, direction, threads)

    def _weighted_sum(self, state: LineState, weights: Theta, threads: int) -> PerDocument:
        weights = np.ascontiguousarray(weights if self.scale is None else weights / self.scale)
        return self._features(state.part).scores(weights, threads)

    def _features(self, part: Part) -> DocumentFeatures:
        features, kernel = self.features, part.kernel(DocumentFeatures)
        if features is None:
            return part.once("columns", lambda: kernel(part.data))
        return part.recent("columns", features.key, SEARCHES_PER_PART, lambda: kernel(features(part.data)))

    def _begins_with(self, path: "SearchPath") -> bool:
        """Return whether ``path`` is the beginning of this one."""
        if len(path.moves) > len(self.moves) or not (self.start is path.start or np.array_equal(self.start, path.start)):
            return False
        pairs = zip(path.moves, self.moves, strict=False)
        return all(a is b or (np.array_equal(a[0], b[0]) and a[1] == b[1]) for a, b in pairs)


@dataclass(frozen=True, eq=False)
class LinearValue:
    """The mean of a measure over its dataset, which holds no missing values, at given weights."""

    measure: DatasetMeasure
    scale: PerFeature | float = 1.0  #: the divisors of features
    _last: list[tuple[Theta, Score]] = field(default_factory=list, init=False, repr=False)  #: the last weights, and their scores

    @property
    def upper_bound(self) -> float:
        """A value that the mean never exceeds."""
        return self.measure.upper_bound

    def value(self, theta: Theta) -> float:
        """Return the mean of the measure at the weights ``theta``."""
        return self.measure.mean(self.score(theta))

    def values_along(self, theta: Theta, j: int, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the mean at ``theta`` with each of ``weights`` for its j-th; scores come from (2), so they are equal up to rounding."""
        measure, score, unit = self.measure, self.score(theta), float(np.broadcast_to(self.scale, theta.shape)[j])
        rounds = _split(weights - theta[j], VALUES_PER_ROUND, measure.data.n_queries)
        return np.concatenate([measure.means_of(measure.by_query(_ValuesOfChanges(score, j, unit, changes))) for changes in rounds])

    def score(self, theta: Theta) -> Score:
        """Return a function that scores documents at ``theta``; the last one is kept, since searches return to where they were."""
        known_score = next((score for last, score in self._last if np.array_equal(last, theta)), None)
        if known_score is not None:
            return known_score
        weights = np.ascontiguousarray(theta / self.scale, np.float64)
        score = CachedScore(partial(linear_scores_of, weights, thread_count(self.measure.threads)))
        self._last[:] = [(np.array(theta), score)]
        return score


@dataclass(frozen=True, eq=False)
class _ValuesOfChanges:
    """The value of each query after each of some ``changes`` of a weight, one row per change, by (2)."""

    score: Score
    feature: int
    unit: float
    changes: npt.NDArray[np.float64]

    def __call__(self, bound: BoundMeasure) -> npt.NDArray[np.float64]:
        return np.concatenate([bound.values_of_each(scores) for scores in self._scores(bound.data)])

    def _scores(self, data: RankingData) -> Iterator[npt.NDArray[np.float64]]:
        """Yield the scores after each change, one row per change, some rows at a time."""
        scores, column = self.score(data), data.X[:, self.feature].astype(np.float64) / self.unit
        for changes in _split(self.changes, SCORES_PER_BLOCK, data.n_documents):
            yield scores + changes[:, None] * column


def linear_scores_of(weights: Theta, threads: int, data: RankingData) -> PerDocument:
    """Return the scores of the documents of ``data``."""
    return _core.linear_scores(data.X, weights, threads)


def _split(numbers: npt.NDArray[np.float64], limit: int, size: int) -> list[npt.NDArray[np.float64]]:
    """Return ``numbers`` in pieces; each number stands for ``size`` values, and a piece for at most ``limit`` if possible."""
    length = max(1, limit // size)
    return np.split(numbers, range(length, len(numbers), length))
