"""How likely the top of the ideal ranking is (Tan, Xia, Guo & Wang 2013, section 2.3).

Under the model of Plackett and Luce documents are drawn one by one with chances in proportion to exp s. With documents in the
order of their grades, best first,

    L(alpha) = sum over queries of sum_{j <= k} log exp(s_j) / sum_{l >= j} exp(s_l),    s = score + alpha slope    (1)

where k is the measure's cutoff, or less where fewer documents are better than the worst. L is concave.
"""

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Matrix, PerDocument
from exactrank.measures.bound import BoundMeasure
from exactrank.objectives.step_function import Interval
from exactrank.threads import thread_count

#: Which point of an interval to take: its middle, or where (1) is largest.
Point: TypeAlias = Literal["middle", "likelihood"]
ITERATIONS = 30


class IdealLikelihood:
    """(1) for the queries of a measure's data, by their weights."""

    def __init__(self, bound: BoundMeasure) -> None:
        data = bound.data
        starts, sizes = data.indptr[:-1], data.sizes
        query = np.repeat(np.arange(data.n_queries), sizes)
        order = np.lexsort((np.arange(data.n_documents), -data.y, query))
        better = np.add.reduceat((data.y > np.repeat(np.minimum.reduceat(data.y, starts), sizes)).astype(np.int64), starts)
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
