"""The mean of a measure as a function of a linear model's weights.

    f(alpha) = mean over queries of measure(X (w + alpha d)),    along a ray, for an exact line search          (1)

A direction d is the number of a feature, so that one weight moves, or a vector, so that all do. Where f is largest there is an
interval, not a point (Tan, Xia, Guo & Wang 2013, section 2.3): `Point` says which of its points to take. Where one weight is tried at
many places instead,

    X (w + d e_j) = X w + d x_j,    x_j the column of weight j                                                  (2)
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Boundaries, Matrix, PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.data.room import FeatureColumns
from exactrank.engine.engine import Partitioned, scored
from exactrank.gpu.device import Array, on_host
from exactrank.measures.bound import BoundMeasure
from exactrank.objectives.ideal_likelihood import IdealLikelihood
from exactrank.objectives.line_search import LineSearch, Point
from exactrank.objectives.line_search_on_gpu import LineSearchOnGpu, OnGpu
from exactrank.objectives.step_function import Interval, StepFunction
from exactrank.objectives.within_query import spread
from exactrank.scorers.missing import PerFeature
from exactrank.threads import thread_count

Theta: TypeAlias = npt.NDArray[np.float64]
Direction: TypeAlias = int | Theta  #: a feature's number, or a vector of weights
#: About this number of scores is ranked at a time.
SCORES_PER_BLOCK = 1 << 16
#: About this number of values, one per query, is asked of partitions at a time.
VALUES_PER_ROUND = 1 << 22


def columns_of(data: RankingData, *, whole: bool = False) -> FeatureColumns:
    """The features of ``data`` one after the other: a line search reads one of all documents; a GPU is sent the ``whole``."""
    return FeatureColumns.of(data.X, whole=whole) if data.by_column is None or whole else data.by_column


def unit_of(scores: PerDocument, slopes: PerDocument, indptr: Boundaries) -> float:
    """How far to go where an interval has no end: until the scores have moved by their own deviation."""
    own, along = spread(scores, indptr), spread(slopes, indptr)
    return own / along if own > 0 and along > 0 else 1.0


class LinearProfile:
    """(1) of a measure on its data; ``columns`` come from `columns_of` and may be shared, as may the ``gpu``, where one is to search.

    Weights are in units of ``scale``: a feature is divided by it.
    """

    def __init__(
        self,
        bound: BoundMeasure,
        columns: FeatureColumns,
        *,
        point: Point = "middle",
        scale: PerFeature | float = 1.0,
        gpu: OnGpu | None = None,
    ) -> None:
        self.data = bound.data
        self.columns = columns
        self.scale = np.broadcast_to(scale, (bound.data.n_features,))
        self.threads = thread_count(bound.threads)
        self.search: LineSearch | LineSearchOnGpu = LineSearch(bound) if gpu is None else LineSearchOnGpu(bound, gpu)
        self.likelihood = IdealLikelihood(bound) if point == "likelihood" else None
        self.gpu = gpu
        self.xp = np if gpu is None else gpu.device.xp  #: the functions of arrays where scores and slopes are: where the search is
        self.searching: object = None  #: the mark of the place that the search is at, which itself refers to this
        self.dimension = bound.data.n_features  #: how many weights there are

    def value(self, theta: Theta) -> float:
        """The mean of the measure at ``theta``."""
        return self.at(theta).value

    def at(self, theta: Theta) -> "Place":
        """The place to search from."""
        return Place(self, theta, self._scores(theta))

    def slopes(self, direction: Direction) -> PerDocument | Matrix | Array:
        """How fast each score changes along ``direction``."""
        if isinstance(direction, int):
            unit, column = float(self.scale[direction]), np.asarray(self.columns[direction])
            there = column if self.gpu is None else self.gpu.feature(column)
            return there if unit == 1.0 else there.astype(np.float64) / unit
        return self._scores(direction)

    def _scores(self, theta: Theta) -> PerDocument | Array:
        weights = np.ascontiguousarray(theta / self.scale)
        return _core.linear_scores(self.data.X, weights, self.threads) if self.gpu is None else self.gpu.scores(self.columns, weights)


class Place:
    """A point in weight space with the value there, and its scores where the search is."""

    def __init__(self, problem: LinearProfile, theta: Theta, scores: PerDocument | Array) -> None:
        self.theta = theta
        self.value = problem.search.start(scores)
        problem.searching = self._mark = object()
        self._problem = problem
        self._scores = scores

    def best(self, direction: Direction, low: float = -math.inf, high: float = math.inf) -> Interval:
        """The interval of alpha, low <= 0 <= high, where (1) is largest."""
        return self._ready().best(self._problem.slopes(direction), low, high)

    def profile(self, direction: Direction) -> StepFunction:
        """The whole of (1)."""
        return self._ready().profile(self._problem.slopes(direction))

    def point(self, direction: Direction, interval: Interval) -> float:
        """The alpha to take in an interval."""
        slopes, scores = self._problem.slopes(direction), self._scores
        endless = interval.endless
        middle = interval.middle(unit_of(on_host(scores), on_host(slopes), self._problem.data.indptr) if endless else 1.0)
        if self._problem.likelihood is None:
            return middle
        return self._problem.likelihood.best(on_host(scores), on_host(slopes), interval, middle)

    def moved(self, direction: Direction, alpha: float) -> "Place":
        """The place at ``alpha`` along ``direction``."""
        theta = self.theta.copy()
        if isinstance(direction, int):
            theta[direction] += alpha
        else:
            theta += alpha * direction
        scores = self._problem.slopes(direction).astype(np.float64)
        scores *= alpha
        scores += self._scores
        return Place(self._problem, theta, scores)

    def _ready(self) -> LineSearch | LineSearchOnGpu:
        """The search, at this place."""
        if self._problem.searching is not self._mark:
            self._problem.search.start(self._scores)
            self._problem.searching = self._mark
        return self._problem.search


@dataclass(frozen=True, eq=False)
class LinearValue:
    """The mean of a measure on its data, which holds no missing values, at given weights."""

    bound: BoundMeasure
    scale: PerFeature | float = 1.0  #: in whose units the weights are: a feature is divided by it
    _last: list[tuple[Theta, PerDocument]] = field(default_factory=list, init=False, repr=False)  #: whose scores are at hand

    @property
    def most(self) -> float:
        """What no weights exceed."""
        return self.bound.most

    def value(self, theta: Theta) -> float:
        """The mean of the measure at the weights ``theta``."""
        return self.bound.mean(self.scores(theta))

    def values_along(self, theta: Theta, j: int, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mean at ``theta`` with each of ``weights`` for its j-th; scores are made by (2), so equal up to rounding."""
        bound = self.bound
        if not isinstance(bound.data, Partitioned):
            return np.concatenate([bound.means(scores) for scores in self.scores_along(theta, j, weights)])
        answers = (
            bound.by_part(partial(_along, self.scale, theta, j, some)) for some in _some(weights, VALUES_PER_ROUND, bound.data.n_queries)
        )
        return np.concatenate([bound.means_of(np.concatenate(values, axis=1)) for values in answers])

    def scores_along(self, theta: Theta, j: int, weights: npt.NDArray[np.float64]) -> Iterator[npt.NDArray[np.float64]]:
        """The scores with each of ``weights``, a row each, some rows at a time."""
        data = self.bound.data
        scores, column = self.scores(theta), data.X[:, j].astype(np.float64) / np.broadcast_to(self.scale, theta.shape)[j]
        for change in _some(weights - theta[j], SCORES_PER_BLOCK, data.n_documents):
            yield scores + change[:, None] * column

    def scores(self, theta: Theta) -> PerDocument:
        """The scores at ``theta``; those of the last one are kept, since a search asks again for where it stays."""
        at_hand = next((scores for last, scores in self._last if np.array_equal(last, theta)), None)
        if at_hand is not None:
            return at_hand
        weights = np.ascontiguousarray(theta / self.scale, np.float64)
        scores = scored(self.bound.data, partial(linear_scores_of, weights, thread_count(self.bound.threads)))
        self._last[:] = [(np.array(theta), scores)]
        return scores


def linear_scores_of(weights: Theta, threads: int, data: RankingData) -> PerDocument:
    """The scores of the documents of ``data``."""
    return _core.linear_scores(data.X, weights, threads)


def _along(
    scale: PerFeature | float, theta: Theta, j: int, weights: npt.NDArray[np.float64], bound: BoundMeasure
) -> npt.NDArray[np.float64]:
    """The value of each query with each of ``weights``, a row each."""
    return np.concatenate([bound.values_of_each(scores) for scores in LinearValue(bound, scale).scores_along(theta, j, weights)])


def _some(numbers: npt.NDArray[np.float64], most: int, each: int) -> list[npt.NDArray[np.float64]]:
    """``numbers`` some at a time: as many as stand for at most ``most`` things, of which each stands for ``each``."""
    at_once = max(1, most // each)
    return np.split(numbers, range(at_once, len(numbers), at_once))
