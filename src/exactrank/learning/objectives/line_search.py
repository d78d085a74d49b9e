"""The best step along a ray, over all queries at once: an exact line search.

[`profile`][exactrank.profile] returns the whole step function; an optimizer needs only its best interval. For positional measures (nDCG,
DCG, P, R, RBP, with or without cutoff) a special kernel finds it; for all others it comes from the step functions of single queries.

`LineSearch` searches the queries of one part. `exactrank.learning.objectives.searched_measure` asks all parts of a dataset.
"""

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Matrix, PerDocument
from exactrank._support.threads import thread_count
from exactrank.errors import IncompatibleError
from exactrank.learning.objectives.step_function import Interval, StepFunction
from exactrank.learning.objectives.summed_steps import (
    EventRequest,
    LineOutlines,
    NearbyEvents,
    Outline,
    Scale,
    best_intervals,
    whole_function,
)
from exactrank.measures.bound import BoundMeasure, DatasetMeasure

#: Maximum number of documents of a query whose pairs are all examined.
MOST_CROSSING = 20_000
#: A limit that keeps all events.
ALL_EVENTS = 1 << 62


class LineSearch:
    """Exact line searches of one measure on the queries of one part, from scores that `start` sets.

    Arrays are in the order of the data's documents. If the queries are some of several, ``peak`` is that of all: sums are then rounded
    alike.
    """

    def __init__(self, bound: BoundMeasure, peak: float | None = None) -> None:
        self._bound = bound
        self._threads = thread_count(bound.threads)
        self._scores: PerDocument = np.zeros(bound.data.n_documents)
        self._native = _core.LineSearch(bound.native, peak=peak) if _core.LineSearch.serves(bound.native) else None

    @cached_property
    def _steps(self) -> "StepFunctions":
        """The step functions of measures of any kind."""
        return StepFunctions(self._bound)

    @property
    def peak(self) -> float:
        """An upper bound of the value of a query; infinity if sums are not rounded by it."""
        return math.inf if self._native is None else self._native.peak()

    def start(self, scores: PerDocument) -> float:
        """Take the scores at alpha = 0, and return the measure's mean there; NaN if no query counts."""
        self._scores = scores
        return self._native.rank(scores, self._threads) if self._native is not None else self._steps.start(scores)

    def best(self, slopes: PerDocument | Matrix, low: float = -math.inf, high: float = math.inf) -> Interval:
        """Return the interval between ``low`` <= 0 and ``high`` >= 0 in which the measure is largest."""
        if self._native is not None:
            return Interval(*self._native.best(slopes, low, high, self._threads))
        return self._steps.best(slopes, low, high)

    def profile(self, slopes: PerDocument | Matrix, low: float = -math.inf, high: float = math.inf) -> StepFunction:
        """Return the whole step function, at least between ``low`` and ``high``."""
        if self._native is not None:
            self._steps.start(self._scores)
        return self._steps.whole(slopes, low, high)

    def fetch(self, numbers: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Return scores or slopes as an array of this process, as they are already."""
        return numbers


class StepFunctions:
    """The step functions of a measure of any kind on the queries of one part, from scores that `start` sets."""

    def __init__(self, bound: BoundMeasure) -> None:
        self._bound, self._threads = bound, thread_count(bound.threads)
        self._native = _core.StepSearch(bound.native)
        self._scale = Scale.of(bound.measure, [(self._native.counted(), self._native.peak())], bound.weights)

    def start(self, scores: PerDocument) -> float:
        """Take the scores at alpha = 0, and return the measure's mean there; NaN if no query counts."""
        return self._scale.value([self._native.rank_part(scores, self._threads)])

    def best(self, slopes: PerDocument | Matrix, low: float, high: float) -> Interval:
        """Return the interval between ``low`` <= 0 and ``high`` >= 0 in which the measure is largest."""
        check_pairs(self._bound)
        t: npt.NDArray[np.float64] = np.ascontiguousarray(slopes, np.float64)
        outline = self._native.outline(t, low, high, self._threads)

        def ask(requests: Sequence[EventRequest]) -> list[list[NearbyEvents]]:
            return [[request.answer(outline, self._threads, ALL_EVENTS) for request in requests]]

        return best_intervals([LineOutlines([Outline.of(outline)], low, high)], ask, self._scale)[0]

    def whole(self, slopes: PerDocument | Matrix, low: float, high: float) -> StepFunction:
        """Return the whole step function between ``low`` <= 0 and ``high`` >= 0."""
        check_pairs(self._bound)
        t: npt.NDArray[np.float64] = np.ascontiguousarray(slopes, np.float64)
        return whole_function([self._native.jumps(t, low, high, self._threads)], self._scale)


def check_pairs(bound: BoundMeasure | DatasetMeasure) -> None:
    """Raise if all pairs of very many documents would have to be examined."""
    measure, data = bound.measure, bound.data
    if min(data.longest, measure.cutoff) > MOST_CROSSING:
        raise IncompatibleError(
            f"{measure} counts every rank, and a query has {data.longest:,} documents: too many to examine all pairs;"
            f" give the measure a cutoff, or leave out documents beyond {MOST_CROSSING:,}"
        )
