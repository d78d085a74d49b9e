"""The exact value of a measure along a ray of scores: `er.profile`.

    f(alpha) = mean over queries of measure(s + alpha t)                                                        (1)

Each document is a line in alpha, and f changes only where two lines of a query cross (Tan, Xia, Guo & Wang 2013). The ray may
be anything that moves scores along a line: one weight of a linear model, a direction in weight space, a tree's output, or the
weight of one retriever against another. In data in several files each part computes its own rays, and f is the sum over the parts.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument, PerQuery
from exactrank.data.backend import Backend
from exactrank.data.dataset import Dataset
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.data.sharded import check_scorers, dataset_of
from exactrank.data.shards import Shards
from exactrank.errors import DataError
from exactrank.learning.objectives.searched_measure import Direction, LineState, Point, SearchedMeasure
from exactrank.learning.objectives.step_function import Interval, StepFunction
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import Predicts, checked_scores
from exactrank.measures.parse import parse_measure

#: One number per document, or a model, the name of a feature, or a function of the data that returns them.
PerRow: TypeAlias = npt.ArrayLike | Predicts | str | Callable[[RankingData], npt.ArrayLike]
#: A ray has one direction.
ALONG_RAY = 0


def profile(
    data: RankingData | Shards,
    scores: PerRow,
    direction: PerRow,
    measure: str | Measure,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    weight: npt.ArrayLike | None = None,
    preset: str | None = None,
    threads: int | None = None,
    backend: Backend | None = None,
) -> StepFunction:
    """Return the measure's mean at ``scores + alpha * direction`` for every alpha from ``low`` to ``high``, (1).

    ``scores`` and ``direction`` are one number per row, or a model, the name of a feature, or a function of the data.
    Data in several files (`er.read_shards`) takes only the latter, which each part applies to its own rows. ``backend`` says who computes
    it: by default this process, for data in several files also a cluster (`er.DaskBackend`), otherwise also a GPU (`er.CudaBackend`).

    It equals [`er.evaluate`][exactrank.evaluate] at every point, even where documents tie. Crossings are accurate to 13
    significant decimals; ``ties='docid'`` compares scores in double precision here. ``weight``, one per query, replaces
    ``data.query_weight``, e.g. with the counts of a bootstrap sample.

    >>> data = RankingData.from_arrays(None, [1, 0, 0, 1], qid=["a", "a", "b", "b"])
    >>> f = profile(data, [3.0, 2.0, 1.0, 0.0], [0.0, 0.5, 0.0, 2.0], "nDCG@1")
    >>> f.breakpoints.tolist(), f.values.tolist(), f.best()
    ([0.5, 2.0], [0.5, 1.0, 0.5], Interval(low=0.5, high=2.0, value=1.0))
    """
    check_data(data, Shards)
    parsed = parse_measure(measure, preset)
    if not low < high:
        raise DataError(f"a ray needs low < high, got {low} and {high}")
    with line_through(data, backend, parsed, scores, direction, weight, threads) as line:
        return line.search.profile(line.ray, ALONG_RAY, min(low, 0.0), max(high, 0.0)).part(low, high)


@dataclass(frozen=True)
class Step:
    """A step along a ray: ``alpha`` lies in ``interval``, in which the measure is ``value``."""

    alpha: float
    value: float
    interval: Interval


def line_search(
    data: RankingData | Shards,
    scores: PerRow,
    direction: PerRow,
    measure: str | Measure,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    point: Point = "middle",
    weight: npt.ArrayLike | None = None,
    preset: str | None = None,
    threads: int | None = None,
    backend: Backend | None = None,
) -> Step:
    """Return the step along ``direction``, between ``low`` and ``high``, after which the measure is largest.

    Scores, direction and ``backend`` are as in [`er.profile`][exactrank.profile]. For the weight of one more tree in an
    ensemble, the direction is the tree's output for each document.

    >>> data = RankingData.from_arrays(None, [1, 0, 0, 1], qid=["a", "a", "b", "b"])
    >>> line_search(data, [3.0, 2.0, 1.0, 0.0], [0.0, 0.5, 0.0, 2.0], "nDCG@1", low=0.1, high=1.5)
    Step(alpha=1.0, value=1.0, interval=Interval(low=0.5, high=1.5, value=1.0))
    """
    check_data(data, Shards)
    parsed = parse_measure(measure, preset)
    with line_through(data, backend, parsed, scores, direction, weight, threads) as line:
        if low <= 0 <= high:
            (interval,) = line.search.best(line.ray, [(ALONG_RAY, low, high)])
        else:
            interval = line.search.profile(line.ray, ALONG_RAY, min(low, 0.0), max(high, 0.0)).best(low, high)
        alpha = interval.middle()
        if point != "middle":
            alpha = line.search.likeliest(line.ray, ALONG_RAY, interval, alpha, point)
        return Step(alpha, interval.value, interval)


def query_weights(data: Dataset, weight: npt.ArrayLike | None) -> PerQuery:
    """Return ``weight``, or the data's own weights: one per query."""
    weights = data.weights if weight is None else np.ascontiguousarray(weight, np.float64)
    if weights.shape != (data.n_queries,) or not np.all(np.isfinite(weights) & (weights >= 0)) or not np.any(weights > 0):
        raise DataError(f"weight must hold {data.n_queries} numbers of at least 0, one per query, not all 0")
    return weights


def ray_of(data: RankingData, scores: PerRow, direction: PerRow) -> tuple[PerDocument, PerDocument]:
    """Return scores and direction in the order of the documents, after checking them."""
    arguments = (("scores", scores), ("direction", direction))
    s, t = (data.group(checked_scores(data, _numbers(data, source), name)) for name, source in arguments)
    for name, bad in (("scores", np.isnan(s) | (s == np.inf)), ("direction", ~np.isfinite(t))):
        if np.any(bad):
            raise DataError(f"{name} holds {(s if name == 'scores' else t)[bad][0]}; give numbers (a score of -inf: not retrieved)")
    return s, t


def _numbers(data: RankingData, source: PerRow) -> npt.ArrayLike:
    """Return one number per row from ``source``, in the caller's order."""
    if isinstance(source, Predicts):
        return source.predict(data)
    if isinstance(source, str):
        return data.ungroup(data.column(source))
    return source(data) if callable(source) and not isinstance(source, type) else np.asarray(source)


@dataclass(frozen=True)
class _Line:
    """A line of scores, and a measure that can be searched along it."""

    search: SearchedMeasure
    ray: "_Ray"


@contextmanager
def line_through(
    data: RankingData | Shards,
    backend: Backend | None,
    measure: Measure,
    scores: PerRow,
    direction: PerRow,
    weight: npt.ArrayLike | None,
    threads: int | None,
) -> Iterator[_Line]:
    """Yield the line of scores that each part of ``data`` computes for its own documents; parts in files are forgotten afterwards."""
    check_scorers(data, scores=scores, direction=direction)
    dataset, token = dataset_of(data, backend), uuid4().hex
    weigh = None if weight is None else GivenWeights(query_weights(dataset, weight), token)
    over = measure.over(dataset, weigh, threads)
    try:
        yield _Line(SearchedMeasure(over), _Ray(scores, direction, token))
    finally:
        dataset.forget()


@dataclass(frozen=True)
class GivenWeights:
    """Weights of all queries; the ``key`` distinguishes them from other weights."""

    weights: PerQuery = field(compare=False)
    key: str

    def __call__(self, first: int, weights: PerQuery) -> PerQuery:
        """Return the weights of some queries, from the number ``first`` on."""
        return self.weights[first : first + len(weights)]


@dataclass(frozen=True, eq=False)
class _Ray:
    """A course along which each part computes its own scores and slopes; the ``key`` distinguishes it from other lines."""

    scores: PerRow
    direction: PerRow
    key: str

    def follow(self, state: LineState, threads: int) -> None:
        """Bring ``state`` to the scores."""
        if state.position is None:
            scores, slopes = ray_of(state.part.data, self.scores, self.direction)
            state.start(slopes, scores, threads)

    def slopes(self, state: LineState, direction: Direction, threads: int) -> PerDocument:
        """Return the slopes along the ray, its only direction."""
        assert isinstance(state.position, np.ndarray)
        return state.position
