"""The mean of a measure as a function of a linear model's weights.

    f(alpha) = mean over queries of measure(X (w + alpha d)),    along a ray, for an exact line search          (1)

A direction d is the number of a feature, so that one weight moves, or a vector, so that all do. Where f is largest there is an
interval, not a point (Tan, Xia, Guo & Wang 2013, section 2.3): `Point` says which of its points to take. Where one weight is tried at
many places instead,

    X (w + d e_j) = X w + d x_j,    x_j the column of weight j                                                  (2)

A search stands where the round over the weights began, and has moved since: so any worker can go there. Over several parts a search takes
two or three rounds of questions. If an optimizer says which directions come one after the other, the value of a step comes with the
outline along the next one, in one round. If a search led nowhere, the next ones start from the same place, so that several of them can be
made in the same rounds: twice as many each time, until one leads on, and what was computed for the others is of no use. That is done
where a round takes longer than the work on that many lines.
"""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank._support.threads import thread_count
from exactrank.data.dataset import CachedScore, Part, Score
from exactrank.data.ranking_data import RankingData
from exactrank.data.scratch_arrays import FeatureColumns
from exactrank.learning.objectives.searched_measure import KEPT, Along, LineState, Point, SearchedMeasure, Slopes
from exactrank.learning.objectives.step_function import Interval, StepFunction
from exactrank.learning.objectives.summed_steps import Outline
from exactrank.measures.bound import BoundMeasure, DatasetMeasure
from exactrank.models.missing import PerFeature

Known = TypeVar("Known")
Theta: TypeAlias = npt.NDArray[np.float64]
Direction: TypeAlias = int | Theta  #: a feature's number, or a vector of weights
Reach = Callable[[Direction, Theta], tuple[float, float]]  #: how far to look along a direction
#: How many lines are searched at once at most.
MOST_AT_ONCE = 8
#: About this number of scores is ranked at a time.
SCORES_PER_BLOCK = 1 << 16
#: About this number of values, one per query, is asked for at a time.
VALUES_PER_ROUND = 1 << 22


def columns_of(data: RankingData) -> FeatureColumns:
    """Return the features of ``data`` one after the other: a line search reads one of all documents."""
    return FeatureColumns.of(data.X) if data.by_column is None else data.by_column


class DocumentFeatures:
    """The features of documents, and their weighted sums, between which lines are searched."""

    def __init__(self, data: RankingData) -> None:
        self._data = data

    @cached_property
    def _columns(self) -> FeatureColumns:
        return columns_of(self._data)

    def feature(self, number: int) -> Slopes:
        """Return a feature of all documents."""
        return np.asarray(self._columns[number])

    def scores(self, weights: Theta, threads: int) -> Slopes:
        """Return the sum of the features, each times its weight."""
        return _core.linear_scores(self._data.X, weights, threads)


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


class LinearProfile:
    """(1) of a measure over its dataset, as a function of weights of its features, or of other ``features``.

    Weights are in units of ``scale``, where one is given: a feature is divided by it.
    """

    def __init__(
        self,
        search: SearchedMeasure,
        point: Point = "middle",
        features: Features | None = None,
        scale: PerFeature | None = None,
    ) -> None:
        self.search, self.point, self.features, self.scale = search, point, features, scale
        self.dimension = search.data.n_features if features is None else features.count  #: how many weights there are
        self._directions: Sequence[Direction] = ()
        self._reach: Reach | None = None

    @classmethod
    def of(cls, measure: DatasetMeasure, point: Point = "middle", scale: PerFeature | None = None) -> "LinearProfile":
        """Return the profile of ``measure``."""
        return cls(SearchedMeasure(measure), point, scale=scale)

    def foresee(self, directions: Sequence[Direction], reach: Reach) -> None:
        """Searches will be along ``directions``, in turn, as far as ``reach`` says from where they are."""
        if self.search.has_shares:
            self._directions, self._reach = directions, reach

    @cached_property
    def at_once(self) -> int:
        """How many lines are worth a round of their own only together."""
        return min(MOST_AT_ONCE, 1 + self.search.data.documents_per_round // self.search.data.n_documents)

    def coming(self, after: Direction | None, theta: Theta, count: int) -> list[Along]:
        """The ``count`` lines that will be asked for at ``theta``, if all searches on the way lead nowhere: at first, or ``after`` one."""
        if self._reach is None or not count:
            return []
        turn = 0 if after is None else next((i + 1 for i, way in enumerate(self._directions) if _same(way, after)), len(self._directions))
        return [(direction, *self._reach(direction, theta)) for direction in self._directions[turn : turn + count]]

    def value(self, theta: Theta) -> float:
        """The mean of the measure at ``theta``."""
        return Place(self, theta, self._path(theta)).value

    def at(self, theta: Theta) -> "Place":
        """The place to search from."""
        return Place(self, theta, self._path(theta), self.coming(None, theta, 1))

    def _path(self, theta: Theta) -> "SearchPath":
        return SearchPath(np.array(theta), (), self.features, self.scale)


def _same(one: Direction, other: Direction) -> bool:
    return one == other if isinstance(one, int) and isinstance(other, int) else one is other


def _known(those: Sequence[tuple[Along, Known]], line: Along) -> Known | None:
    """What is known of ``line``."""
    return next((known for other, known in those if _same(other[0], line[0]) and other[1:] == line[1:]), None)


class Place:
    """A point in weight space with the value there, and what several parts know of the lines ``ahead``, which will be asked for."""

    def __init__(self, problem: LinearProfile, theta: Theta, path: "SearchPath", ahead: Sequence[Along] = ()) -> None:
        self.theta, self._problem, self._path = theta, problem, path
        self.value, outlines = problem.search.values(path, ahead)
        self._ahead: list[tuple[Along, list[Outline]]] = list(zip(ahead, outlines, strict=True)) if outlines else []
        self._searched: list[tuple[Along, Interval]] = []

    def best(self, direction: Direction, low: float = -math.inf, high: float = math.inf) -> Interval:
        """The interval of alpha, low <= 0 <= high, where (1) is largest."""
        asked = direction, low, high
        interval = _known(self._searched, asked)
        if interval is None:
            self._search(asked)
            interval = _known(self._searched, asked)
        assert interval is not None
        return interval

    def _search(self, asked: Along) -> None:
        """Along the line that is ``asked`` for; with it along those that will be, where that costs no round of their own."""
        search, path = self._problem.search, self._path
        if _known(self._ahead, asked) is None:
            others = min(2 * len(self._searched), self._problem.at_once) - 1
            lines = [asked, *self._problem.coming(asked[0], self.theta, max(others, 0))]
            self._searched += zip(lines, search.best(path, lines), strict=True)
        else:
            lines = [line for line, _ in self._ahead]
            self._searched += zip(lines, search.best(path, lines, [outlines for _, outlines in self._ahead]), strict=True)
        self._ahead = []

    def profile(self, direction: Direction) -> StepFunction:
        """The whole of (1), with all its breakpoints."""
        return self._problem.search.profile(self._path, direction)

    def point(self, direction: Direction, interval: Interval) -> float:
        """The alpha to take in an interval: its middle; where it has no end, as far as the scores deviate; or the likeliest."""
        search, path = self._problem.search, self._path
        middle = interval.middle(search.unit(path, direction) if interval.endless else 1.0)
        return middle if self._problem.point == "middle" else search.likeliest(path, direction, interval, middle)

    def moved(self, direction: Direction, alpha: float) -> "Place":
        """The place at ``alpha`` along ``direction``."""
        theta = self.theta.copy()
        if isinstance(direction, int):
            theta[direction] += alpha
        else:
            theta += alpha * direction
        path = self._path.moved(direction, alpha)
        return Place(self._problem, theta, path, self._problem.coming(direction, theta, 1))


class SearchPath:
    """Where a search stands: ``moves`` from a ``start``. In the process of its only part it knows the scores there."""

    def __init__(
        self,
        start: Theta,
        moves: tuple[tuple[Direction, float], ...],
        features: Features | None = None,
        scale: PerFeature | None = None,  #: what features are divided by
    ) -> None:
        self.start, self.moves, self.features, self.scale = start, moves, features, scale
        self._scores: PerDocument | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Scores stay where they are."""
        return SearchPath, (self.start, self.moves, self.features, self.scale)

    def moved(self, direction: Direction, alpha: float) -> "SearchPath":
        """Return the path with one more move."""
        return SearchPath(self.start, (*self.moves, (direction, alpha)), self.features, self.scale)

    @property
    def key(self) -> Hashable:
        """Which features have weights, and in which units."""
        return "own" if self.features is None else self.features.key, None if self.scale is None else self.scale.tobytes()

    def go(self, state: LineState, threads: int) -> None:
        """To its end, from where ``state`` stands if that lies on it."""
        before = state.position
        if before is self:
            return
        if self._scores is not None:
            state.stand(self, self._scores, threads)
            return
        if not isinstance(before, SearchPath) or not self._passes(before):
            before, scores = SearchPath(self.start, ()), self.slopes(state, self.start, threads)
        elif len(before.moves) == len(self.moves):
            return
        else:
            scores = state.scores
        for direction, alpha in self.moves[len(before.moves) :]:
            scores = _added(scores, alpha, self.slopes(state, direction, threads))
        state.stand(self, scores, threads)
        self._scores = scores if state.part.is_complete else None

    def slopes(self, state: LineState, direction: Direction, threads: int) -> Slopes:
        """How fast each score changes along ``direction``."""
        features = self._features(state.part)
        if isinstance(direction, int):
            feature = features.feature(direction)
            unit = 1.0 if self.scale is None else float(self.scale[direction])
            return feature if unit == 1.0 else feature.astype(np.float64) / unit
        return features.scores(np.ascontiguousarray(direction if self.scale is None else direction / self.scale), threads)

    def _features(self, part: Part) -> DocumentFeatures:
        features, kernel = self.features, part.kernel(DocumentFeatures)
        if features is None:
            return part.once("columns", lambda: kernel(part.data))
        return part.recent("columns", features.key, KEPT, lambda: kernel(features(part.data)))

    def _passes(self, other: "SearchPath") -> bool:
        """Does ``other`` lie on it?"""
        if len(other.moves) > len(self.moves) or not (self.start is other.start or np.array_equal(self.start, other.start)):
            return False
        pairs = zip(other.moves, self.moves, strict=False)
        return all(one is two or (np.array_equal(one[0], two[0]) and one[1] == two[1]) for one, two in pairs)


def _added(scores: PerDocument, alpha: float, slopes: Slopes) -> PerDocument:
    """Return ``scores + alpha * slopes``."""
    moved = slopes.astype(np.float64)
    moved *= alpha
    moved += scores
    return moved


@dataclass(frozen=True, eq=False)
class LinearValue:
    """The mean of a measure over its dataset, which holds no missing values, at given weights."""

    measure: DatasetMeasure
    scale: PerFeature | float = 1.0  #: in whose units the weights are: a feature is divided by it
    _last: list[tuple[Theta, Score]] = field(default_factory=list, init=False, repr=False)  #: whose scores are at hand

    @property
    def most(self) -> float:
        """What no weights exceed."""
        return self.measure.most

    def value(self, theta: Theta) -> float:
        """The mean of the measure at the weights ``theta``."""
        return self.measure.mean(self.score(theta))

    def values_along(self, theta: Theta, j: int, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mean at ``theta`` with each of ``weights`` for its j-th; scores are made by (2), so equal up to rounding."""
        measure, score, unit = self.measure, self.score(theta), float(np.broadcast_to(self.scale, theta.shape)[j])
        some = _some(weights - theta[j], VALUES_PER_ROUND, measure.data.n_queries)
        return np.concatenate([measure.means_of(measure.by_query(_Along(score, j, unit, changes))) for changes in some])

    def score(self, theta: Theta) -> Score:
        """Return what scores documents at ``theta``; the last scores are kept, since a search asks again for where it stays."""
        at_hand = next((score for last, score in self._last if np.array_equal(last, theta)), None)
        if at_hand is not None:
            return at_hand
        weights = np.ascontiguousarray(theta / self.scale, np.float64)
        score = CachedScore(partial(linear_scores_of, weights, thread_count(self.measure.threads)))
        self._last[:] = [(np.array(theta), score)]
        return score


@dataclass(frozen=True, eq=False)
class _Along:
    """The value of each query with each of some ``changes`` of a weight, a row each, by (2)."""

    score: Score
    feature: int
    unit: float
    changes: npt.NDArray[np.float64]

    def __call__(self, bound: BoundMeasure) -> npt.NDArray[np.float64]:
        return np.concatenate([bound.values_of_each(scores) for scores in self._scores(bound.data)])

    def _scores(self, data: RankingData) -> Iterator[npt.NDArray[np.float64]]:
        """The scores with each change, a row each, some rows at a time."""
        scores, column = self.score(data), data.X[:, self.feature].astype(np.float64) / self.unit
        for changes in _some(self.changes, SCORES_PER_BLOCK, data.n_documents):
            yield scores + changes[:, None] * column


def linear_scores_of(weights: Theta, threads: int, data: RankingData) -> PerDocument:
    """The scores of the documents of ``data``."""
    return _core.linear_scores(data.X, weights, threads)


def _some(numbers: npt.NDArray[np.float64], most: int, size: int) -> list[npt.NDArray[np.float64]]:
    """``numbers`` some at a time: as many as stand for at most ``most`` things, of which each stands for ``size``."""
    at_once = max(1, most // size)
    return np.split(numbers, range(at_once, len(numbers), at_once))
