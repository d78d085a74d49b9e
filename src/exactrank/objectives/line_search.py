"""The best step along a ray, over all queries at once: an exact line search.

[`profile`][exactrank.profile] gives the whole step function; an optimizer wants only its best interval. For positional
measures (nDCG, DCG, P, R, RBP, with or without cutoff) that comes from a kernel made for it; for all others from the
profile. Where the measure is largest there is an interval, not a point; one point of it is where the ideal ranking is likeliest
(Tan, Xia, Guo & Wang 2013, section 2.3).
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.engine.partitions import refuse_shards
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure, mean_over_queries
from exactrank.measures.parse import parse_measure
from exactrank.objectives.bradley_terry import grades_for
from exactrank.objectives.line_search_on_gpu import search_on
from exactrank.objectives.profile import check_pairs, profile, query_weights, ray_of
from exactrank.objectives.step_function import Interval, StepFunction
from exactrank.threads import thread_count

#: Which point of an interval to take: its middle, or where `IdealLikelihood` is largest.
Point: TypeAlias = Literal["middle", "likelihood"]
ITERATIONS = 30


class LineSearch:
    """Exact line searches of one measure on the same queries, from scores that `start` sets.

    Arrays are in the order of the data's documents.
    """

    def __init__(self, bound: BoundMeasure) -> None:
        self._bound = bound
        self._threads = thread_count(bound.threads)
        self._scores: PerDocument = np.zeros(bound.data.n_documents)
        self._native = _core.LineSearch(bound.native) if _core.LineSearch.serves(bound.native) else None

    def start(self, scores: PerDocument) -> float:
        """Take the scores at alpha = 0, and return the measure's mean there; NaN where no query counts."""
        self._scores = scores
        if self._native is not None:
            return self._native.rank(scores, self._threads)
        return mean_over_queries(self._bound.values(scores), self._bound.weights)

    def best(self, slopes: PerDocument | Matrix, low: float = -math.inf, high: float = math.inf) -> Interval:
        """The interval between ``low`` and ``high``, which hold 0 between them, where the measure is largest."""
        if self._native is not None:
            return Interval(*self._native.best(slopes, low, high, self._threads))
        return self.profile(slopes, low, high).best(low, high)

    def profile(self, slopes: PerDocument | Matrix, low: float = -math.inf, high: float = math.inf) -> StepFunction:
        """The whole step function."""
        check_pairs(self._bound)
        t: npt.NDArray[np.float64] = np.ascontiguousarray(slopes, np.float64)
        return StepFunction(*_core.profile(self._bound.native, self._scores, t, low, high, self._threads))


class IdealLikelihood:
    """How likely the top of the ideal ranking is, for the queries of a measure's data, by their weights.

    Under the Plackett-Luce model documents are drawn one by one with probabilities proportional to exp s. With documents in the
    order of their grades, best first,

        L(alpha) = sum over queries of sum_{j <= k} log exp(s_j) / sum_{l >= j} exp(s_l),    s = score + alpha slope    (1)

    where k is the measure's cutoff, or less where fewer documents are better than the worst. L is concave.
    """

    def __init__(self, bound: BoundMeasure) -> None:
        data, (y, _) = bound.data, grades_for(bound.measure, bound.data)
        starts, sizes = data.indptr[:-1], data.sizes
        query = np.repeat(np.arange(data.n_queries), sizes)
        order = np.lexsort((np.arange(data.n_documents), -y, query))
        better = np.add.reduceat((y > np.repeat(np.minimum.reduceat(y, starts), sizes)).astype(np.int64), starts)
        self._indptr = data.indptr
        self._ideal = (order - np.repeat(starts, sizes)).astype(np.int32)
        self._top = np.minimum(better, bound.measure.cutoff).astype(np.int32)
        self._weight = bound.weights
        self._threads = thread_count(bound.threads)

    def best(self, scores: PerDocument, slopes: PerDocument | Matrix, interval: Interval, start: float) -> float:
        """Where in ``interval`` L is largest, by Newton's method from ``start``, halving the interval where that leaves it."""
        t: npt.NDArray[np.float64] = np.ascontiguousarray(slopes, np.float64)
        low, high, alpha = interval.low, interval.high, start
        for _ in range(ITERATIONS):
            slope, curvature = self.slope(scores, t, alpha)
            low, high = (alpha, high) if slope > 0 else (low, alpha)
            step = alpha - slope / curvature if curvature < 0 else alpha
            if not low < step < high:
                step = Interval(low, high, 0.0).middle(max(abs(start), 1.0))
            if abs(step - alpha) <= 1e-4 * min(abs(step), interval.high - interval.low):
                break
            alpha = step
        return alpha

    def slope(self, scores: PerDocument, slopes: PerDocument, alpha: float) -> tuple[float, float]:
        """The first and second derivative of L."""
        return _core.likelihood_slope(scores, slopes, self._indptr, self._ideal, self._top, self._weight, alpha, self._threads)


@dataclass(frozen=True)
class Step:
    """How far to go along a ray: ``alpha`` in ``interval``, on which the measure is ``value``."""

    alpha: float
    value: float
    interval: Interval


def line_search(
    measure: str | Measure,
    data: RankingData,
    scores: npt.ArrayLike,
    direction: npt.ArrayLike,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    point: Point = "middle",
    weight: npt.ArrayLike | None = None,
    preset: str | None = None,
    threads: int | None = None,
    device: Literal["cuda"] | None = None,
) -> Step:
    """The step along ``direction``, between ``low`` and ``high``, after which the measure is largest.

    Rows are in the caller's order, as in [`xr.profile`][exactrank.profile]. For the weight of one more tree in an ensemble, the
    direction is the tree's output for each document. With ``device="cuda"`` the search runs on the GPU, for nDCG, DCG, P, R and
    RBP of finite scores.

    >>> data = RankingData.from_arrays(None, [1, 0, 0, 1], qid=["a", "a", "b", "b"])
    >>> line_search("nDCG@1", data, [3.0, 2.0, 1.0, 0.0], [0.0, 0.5, 0.0, 2.0], low=0.1, high=1.5)
    Step(alpha=1.0, value=1.0, interval=Interval(low=0.5, high=1.5, value=1.0))
    """
    refuse_shards(data, "line_search")
    bound = parse_measure(measure, preset).on(data, query_weights(data, weight), threads)
    s, t = ray_of(data, scores, direction)
    if device is not None:
        interval = search_on(device, bound, s).best(t, low, high)
    elif low <= 0 <= high:
        search = LineSearch(bound)
        search.start(s)
        interval = search.best(t, low, high)
    else:
        steps = profile(bound.measure, data, scores, direction, low=low, high=high, weight=weight, threads=threads)
        interval = steps.best(low, high)
    alpha = interval.middle()
    if point == "likelihood":
        alpha = IdealLikelihood(bound).best(s, t, interval, alpha)
    return Step(alpha, interval.value, interval)
