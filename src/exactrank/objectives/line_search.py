"""The best step along a ray: what an exact line search asks, of all queries at once.

[`profile`][exactrank.profile] gives the whole step function; an optimizer wants only its best interval. For positional
measures (nDCG, DCG, P, R, RBP, with or without cutoff) that comes from a kernel made for it; for all others from the
profile.
"""

import math

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, PerDocument, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import mean_value, tie_key_of
from exactrank.objectives.step_function import Interval, StepFunction
from exactrank.threads import thread_count


class LineSearch:
    """Exact line searches of one measure on the same queries, from scores that `start` sets.

    Arrays are in the order of the data's documents. ``weight`` is one a query.
    """

    def __init__(self, measure: Measure, data: RankingData, weight: PerQuery, threads: int | None = None) -> None:
        self._measure = measure
        self._data = data
        self._weight = weight
        self._threads = thread_count(threads)
        self._kernel, self._grades = measure.kernel(data.y, int(np.diff(data.indptr).max()))
        self._tie_key, self._mark_ties = tie_key_of(measure.ties, data), measure.ties == "expected"
        self._scores: PerDocument = np.zeros(data.n_documents)
        self._native = None
        if _core.LineSearch.serves(self._kernel):
            self._native = _core.LineSearch(self._kernel, self._grades, data.indptr, self._tie_key, self._mark_ties, weight)

    def start(self, scores: PerDocument) -> float:
        """Take the scores at alpha = 0, and return the measure's mean there."""
        self._scores = scores
        if self._native is not None:
            return self._native.rank(scores, self._threads)
        return mean_value(self._measure, self._data, scores, self._weight, self._threads)

    def best(self, slopes: PerDocument | Matrix, low: float = -math.inf, high: float = math.inf) -> Interval:
        """The interval between ``low`` and ``high``, which hold 0 between them, where the measure is largest."""
        if self._native is not None:
            return Interval(*self._native.best(slopes, low, high, self._threads))
        return self.profile(slopes, low, high).best(low, high)

    def profile(self, slopes: PerDocument | Matrix, low: float = -math.inf, high: float = math.inf) -> StepFunction:
        """The whole step function."""
        t: npt.NDArray[np.float64] = np.ascontiguousarray(slopes, np.float64)
        return StepFunction(
            *_core.profile(
                self._scores, t, self._data.indptr, self._tie_key, self._mark_ties,
                self._kernel, self._grades, self._weight, low, high, self._threads,
            )
        )  # fmt: skip
