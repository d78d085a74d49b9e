"""The best step along a ray, over all queries at once: an exact line search.

[`profile`][exactrank.profile] gives the whole step function; an optimizer wants only its best interval. For positional
measures (nDCG, DCG, P, R, RBP, with or without cutoff) that comes from a kernel made for it; for all others from the
profile. Where the measure is largest there is an interval, not a point; one point of it is where the ideal ranking is likeliest
(Tan, Xia, Guo & Wang 2013, section 2.3).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, PerDocument
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.engine.engine import Engine
from exactrank.engine.partitions import Shards
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.ideal_likelihood import IdealLikelihood
from exactrank.objectives.line_search_on_gpu import search_on
from exactrank.objectives.profile import PerRow, Steps, line_through, profile, query_weights, ray_of, refuse_device
from exactrank.objectives.step_function import Interval, StepFunction
from exactrank.threads import thread_count

#: Which point of an interval to take: its middle, or where `IdealLikelihood` is largest.
Point: TypeAlias = Literal["middle", "likelihood"]


class LineSearch:
    """Exact line searches of one measure on the same queries, from scores that `start` sets.

    Arrays are in the order of the data's documents. Where the queries are some of a whole, ``peak`` is that of the whole: sums are then
    rounded as there.
    """

    def __init__(self, bound: BoundMeasure, peak: float | None = None) -> None:
        self._bound = bound
        self._threads = thread_count(bound.threads)
        self._scores: PerDocument = np.zeros(bound.data.n_documents)
        self._native = _core.LineSearch(bound.native, peak=peak) if _core.LineSearch.serves(bound.native) else None

    @cached_property
    def _steps(self) -> Steps:
        """The step functions of measures of any kind."""
        return Steps(self._bound)

    @property
    def peak(self) -> float:
        """What no query exceeds; infinity where sums are not rounded by it."""
        return math.inf if self._native is None else self._native.peak()

    def start(self, scores: PerDocument) -> float:
        """Take the scores at alpha = 0, and return the measure's mean there; NaN where no query counts."""
        self._scores = scores
        return self._native.rank(scores, self._threads) if self._native is not None else self._steps.start(scores)

    def best(self, slopes: PerDocument | Matrix, low: float = -math.inf, high: float = math.inf) -> Interval:
        """The interval between ``low`` and ``high``, which hold 0 between them, where the measure is largest."""
        if self._native is not None:
            return Interval(*self._native.best(slopes, low, high, self._threads))
        return self._steps.best(slopes, low, high)

    def profile(self, slopes: PerDocument | Matrix, low: float = -math.inf, high: float = math.inf) -> StepFunction:
        """The whole step function."""
        if self._native is not None:
            self._steps.start(self._scores)
        return self._steps.whole(slopes, low, high)


@dataclass(frozen=True)
class Step:
    """How far to go along a ray: ``alpha`` in ``interval``, on which the measure is ``value``."""

    alpha: float
    value: float
    interval: Interval


def line_search(
    measure: str | Measure,
    data: RankingData | Shards,
    scores: PerRow,
    direction: PerRow,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    point: Point = "middle",
    weight: npt.ArrayLike | None = None,
    preset: str | None = None,
    threads: int | None = None,
    device: Literal["cuda"] | None = None,
    engine: Engine | None = None,
) -> Step:
    """The step along ``direction``, between ``low`` and ``high``, after which the measure is largest.

    Scores and direction are given, and ``engine`` is used, as in [`xr.profile`][exactrank.profile]. For the weight of one more tree in an
    ensemble, the direction is the tree's output for each document. With ``device="cuda"`` the search runs on the GPU, for nDCG, DCG, P, R
    and RBP of finite scores.

    >>> data = RankingData.from_arrays(None, [1, 0, 0, 1], qid=["a", "a", "b", "b"])
    >>> line_search("nDCG@1", data, [3.0, 2.0, 1.0, 0.0], [0.0, 0.5, 0.0, 2.0], low=0.1, high=1.5)
    Step(alpha=1.0, value=1.0, interval=Interval(low=0.5, high=1.5, value=1.0))
    """
    check_data(data, Shards)
    parsed = parse_measure(measure, preset)
    if isinstance(data, Shards):
        refuse_device(device)
        with line_through(data, engine, parsed, scores, direction, weight, threads, (min(low, 0.0), max(high, 0.0))) as line:
            interval = line.best() if low <= 0 <= high else line.whole().best(low, high)
            alpha = line.likeliest(interval, interval.middle()) if point == "likelihood" else interval.middle()
            return Step(alpha, interval.value, interval)
    bound = parsed.on(data, query_weights(data, weight), threads)
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
