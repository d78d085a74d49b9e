"""The exact value of a measure along a ray of scores: `xr.profile`.

    f(alpha) = mean over queries of measure(s + alpha t)                                                        (1)

Each document is a line in alpha, and f changes only where two lines of a query cross (Tan, Xia, Guo & Wang 2013). The ray may
be anything that moves scores along a line: one weight of a linear model, a direction in weight space, a tree's output, the
weight of one retriever against another. Of data in several files each part makes its own rays, and f is the sum of what the parts give.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, PerDocument, PerQuery
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.engine.engine import Engine, LocalEngine, partitioned
from exactrank.engine.partitions import Shards
from exactrank.errors import DataError, IncompatibleError
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure
from exactrank.measures.evaluate import Predicts, checked_scores
from exactrank.measures.parse import parse_measure
from exactrank.objectives.line_search_on_gpu import search_on
from exactrank.objectives.partitioned_search import ALL_EVENTS, PartitionedLine, PartitionedSearch, State
from exactrank.objectives.step_function import Interval, StepFunction
from exactrank.objectives.summed_steps import Outline, Scale, Sought, best_intervals, whole_function
from exactrank.threads import thread_count

#: The maximum number of documents of which all pairs are looked at.
MOST_CROSSING = 20_000
TINY = 1e-300
#: One number per document: the numbers, or a model, the name of a feature, or a function of the data that gives them.
PerRow: TypeAlias = npt.ArrayLike | Predicts | str | Callable[[RankingData], npt.ArrayLike]


def profile(
    measure: str | Measure,
    data: RankingData | Shards,
    scores: PerRow,
    direction: PerRow,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    weight: npt.ArrayLike | None = None,
    preset: str | None = None,
    threads: int | None = None,
    device: Literal["cuda"] | None = None,
    engine: Engine | None = None,
) -> StepFunction:
    """The measure's mean at ``scores + alpha * direction`` for every alpha from ``low`` to ``high``, (1).

    ``scores`` and ``direction`` are one number per row, or what gives them: a model, the name of a feature, or a function of the data.
    Data in several files (`xr.read_shards`) takes only these, each part for its own rows; ``engine`` says who does it.

    It equals [`xr.evaluate`][exactrank.evaluate] at every point, even where documents tie. Crossings are accurate to 13
    significant decimals; ``ties='docid'`` compares scores in double precision here. ``weight``, one per query, replaces
    ``data.query_weight``, e.g. with the counts of a bootstrap sample. With ``device="cuda"`` it is computed on
    the GPU, for nDCG, DCG, P, R and RBP of finite scores.

    >>> data = RankingData.from_arrays(None, [1, 0, 0, 1], qid=["a", "a", "b", "b"])
    >>> f = profile("nDCG@1", data, [3.0, 2.0, 1.0, 0.0], [0.0, 0.5, 0.0, 2.0])
    >>> f.breakpoints.tolist(), f.values.tolist(), f.best()
    ([0.5, 2.0], [0.5, 1.0, 0.5], Interval(low=0.5, high=2.0, value=1.0))
    """
    check_data(data, Shards)
    parsed = parse_measure(measure, preset)
    if not low < high:
        raise DataError(f"a ray needs low < high, got {low} and {high}")
    if isinstance(data, Shards):
        refuse_device(device)
        with line_through(data, engine, parsed, scores, direction, weight, threads, (min(low, 0.0), max(high, 0.0))) as line:
            return line.whole().part(low, high)
    bound, (s, t) = parsed.on(data, query_weights(data, weight), threads), ray_of(data, scores, direction)
    if device is not None:
        # A little more, for crossings that are at the ends up to rounding.
        whole = search_on(device, bound, s).profile(t, low - 1e-12 * abs(low) - TINY, high + 1e-12 * abs(high) + TINY)
    else:
        steps = Steps(bound)
        steps.start(s)
        whole = steps.whole(t, min(low, 0.0), max(high, 0.0))
    return whole.part(low, high)


class Steps:
    """The step functions (1) of a measure of any kind on its data, from scores that `start` sets, in the order of its documents."""

    def __init__(self, bound: BoundMeasure) -> None:
        self._bound, self._threads = bound, thread_count(bound.threads)
        self._native = _core.StepSearch(bound.native)
        self._scale = Scale.of(bound.measure, [(self._native.counted(), self._native.peak())], bound.weights)

    def start(self, scores: PerDocument) -> float:
        """Take the scores at alpha = 0, and return the measure's mean there; NaN where no query counts."""
        return self._scale.value([self._native.rank_part(scores, self._threads)])

    def best(self, slopes: PerDocument | Matrix, low: float, high: float) -> Interval:
        """The interval between ``low`` and ``high``, which hold 0 between them, where the measure is largest."""
        check_pairs(self._bound)
        t: npt.NDArray[np.float64] = np.ascontiguousarray(slopes, np.float64)
        outline = self._native.outline(t, low, high, self._threads)
        sought = Sought([Outline.of(outline)], low, high)
        return best_intervals([sought], lambda wanted: [[one.of(outline, self._threads, ALL_EVENTS) for one in wanted]], self._scale)[0]

    def whole(self, slopes: PerDocument | Matrix, low: float, high: float) -> StepFunction:
        """All of it between ``low`` and ``high``, which hold 0 between them."""
        check_pairs(self._bound)
        t: npt.NDArray[np.float64] = np.ascontiguousarray(slopes, np.float64)
        return whole_function([self._native.jumps(t, low, high, self._threads)], self._scale)


def query_weights(data: RankingData, weight: npt.ArrayLike | None) -> PerQuery:
    """``weight``, or the data's own: one per query."""
    weights = data.weights if weight is None else np.ascontiguousarray(weight, np.float64)
    if weights.shape != (data.n_queries,) or not np.all(np.isfinite(weights) & (weights >= 0)) or not np.any(weights > 0):
        raise DataError(f"weight must hold {data.n_queries} numbers of at least 0, one per query, not all 0")
    return weights


def check_pairs(bound: BoundMeasure) -> None:
    """Refuse a whole profile where all pairs of very many documents would have to be looked at."""
    measure, data = bound.measure, bound.data
    if min(data.longest, measure.cutoff) > MOST_CROSSING:
        raise IncompatibleError(
            f"{measure} counts every rank, and a query has {data.longest:,} documents: too many to examine all pairs;"
            f" give the measure a cutoff, or leave out documents beyond {MOST_CROSSING:,}"
        )


def ray_of(data: RankingData, scores: PerRow, direction: PerRow) -> tuple[PerDocument, PerDocument]:
    """Scores and direction in the order of the documents, once they are numbers."""
    given = (("scores", scores), ("direction", direction))
    s, t = (data.grouped(checked_scores(data, _numbers(data, numbers), name)) for name, numbers in given)
    for name, bad in (("scores", np.isnan(s) | (s == np.inf)), ("direction", ~np.isfinite(t))):
        if np.any(bad):
            raise DataError(f"{name} holds {(s if name == 'scores' else t)[bad][0]}; give numbers (a score of -inf: not retrieved)")
    return s, t


def _numbers(data: RankingData, given: PerRow) -> npt.ArrayLike:
    """What ``given`` stands for: one number per row, in the caller's order."""
    if hasattr(given, "predict"):
        return cast(Predicts, given).predict(data)
    if isinstance(given, str):
        return data.ungrouped(data.column(given))
    return given(data) if callable(given) and not isinstance(given, type) else cast(npt.ArrayLike, given)


def refuse_device(device: str | None) -> None:
    """Raise where data in several files is to be searched on a GPU."""
    if device is not None:
        raise IncompatibleError(f"device={device!r}: data in several files is searched on processors; leave it out, or xr.read one file")


@contextmanager
def line_through(
    shards: Shards,
    engine: Engine | None,
    measure: Measure,
    scores: PerRow,
    direction: PerRow,
    weight: npt.ArrayLike | None,
    threads: int | None,
    ends: tuple[float, float],
) -> Iterator[PartitionedLine]:
    """The line of scores that each part of ``shards`` makes for its own documents; it is forgotten afterwards."""
    for name, given in (("scores", scores), ("direction", direction)):
        if not (isinstance(given, str) or callable(given) or hasattr(given, "predict")):
            raise DataError(f"of data in several files, {name} must be a model, the name of a feature, or a function of a part of the data")
    data = partitioned(shards, LocalEngine() if engine is None else engine)
    weights = query_weights(cast(RankingData, data), weight)
    bound = measure.on(cast(RankingData, data), weights, threads)
    check_pairs(bound)
    token = uuid4().hex
    search = PartitionedSearch.of(bound, data, None if weight is None else _Given(weights, token))
    try:
        yield PartitionedLine(search, _Ray(scores, direction, token), True, *ends)
    finally:
        data.engine.forget(data)


@dataclass(frozen=True)
class _Given:
    """Weights of all queries; the ``key`` tells them from others."""

    weights: PerQuery = field(compare=False)
    key: str

    def __call__(self, first: int, own: PerQuery) -> PerQuery:
        return self.weights[first : first + len(own)]


@dataclass(frozen=True, eq=False)
class _Ray:
    """How each part makes its rays; the ``key`` tells this line from others."""

    scores: PerRow
    direction: PerRow
    key: str

    def go(self, state: State, threads: int) -> None:
        if state.stands is None:
            scores, slopes = ray_of(state.bound.data, self.scores, self.direction)
            state.stand(slopes, scores, threads)

    def slopes(self, state: State, direction: bool, threads: int) -> PerDocument:
        return cast(PerDocument, state.stands)
