"""The likelihood of the ideal ranking along a ray, which chooses a point of an interval in which a measure is constant.

Under the Plackett-Luce model documents are drawn one by one with probabilities proportional to exp s. With documents in the
order of their grades, best first,

    L(alpha) = sum over queries of sum_{j <= k} log exp(s_j) / sum_{l >= j} exp(s_l),    s = score + alpha slope    (1)

where k is the measure's cutoff (Tan, Xia, Guo & Wang 2013, section 2.3), or less if fewer documents are better than the worst, unless L
is taken as published. L is concave.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Matrix, PerDocument
from exactrank._support.threads import thread_count
from exactrank.learning.objectives.bradley_terry import grades_for
from exactrank.learning.objectives.step_function import Interval
from exactrank.measures.bound import BoundMeasure

Curves = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]  #: the first and second derivative of (1), by blocks of queries
ITERATIONS = 30


class IdealLikelihood:
    """(1) for the queries of a measure's data, by their weights."""

    def __init__(self, bound: BoundMeasure, as_published: bool = False) -> None:
        data, (y, _) = bound.data, grades_for(bound.measure, bound.data)
        starts, sizes = data.indptr[:-1], data.sizes
        order = np.lexsort((np.arange(data.n_documents), -y, data.query_numbers))
        better = np.add.reduceat((y > np.repeat(np.minimum.reduceat(y, starts), sizes)).astype(np.int64), starts)
        self._indptr = data.indptr
        self._ideal = (order - np.repeat(starts, sizes)).astype(np.int32)
        self._top = np.minimum(sizes if as_published else better, bound.measure.cutoff).astype(np.int32)
        self._weight = bound.weights
        self._threads = thread_count(bound.threads)

    def best(self, scores: PerDocument, slopes: PerDocument | Matrix, interval: Interval, start: float) -> float:
        """Return the point of ``interval`` at which L is largest; the search begins at ``start``."""
        t: npt.NDArray[np.float64] = np.ascontiguousarray(slopes, np.float64)
        return likeliest(lambda alpha: self.slope(scores, t, alpha), interval, start)

    def slope(self, scores: PerDocument, slopes: PerDocument, alpha: float) -> tuple[float, float]:
        """Return the first and second derivative of L."""
        return sum_curves([self.curves(scores, slopes, alpha)])

    def curves(self, scores: PerDocument, slopes: PerDocument, alpha: float) -> Curves:
        """Return the first and second derivative of L by blocks of queries."""
        return _core.likelihood_slopes(scores, slopes, self._indptr, self._ideal, self._top, self._weight, alpha, self._threads)


def sum_curves(parts: Sequence[Curves]) -> tuple[float, float]:
    """Return the derivatives of the sum of all blocks of all ``parts``, in order."""
    slope, curvature = (float(np.sum(np.concatenate([part[i] for part in parts]))) for i in range(2))
    return slope, curvature


def likeliest(slope_at: Callable[[float], tuple[float, float]], interval: Interval, start: float) -> float:
    """Return the point of ``interval`` at which (1) is largest, by Newton's method from ``start``; by halving if a step leaves it."""
    low, high, alpha = interval.low, interval.high, start
    for _ in range(ITERATIONS):
        slope, curvature = slope_at(alpha)
        low, high = (alpha, high) if slope > 0 else (low, alpha)
        step = alpha - slope / curvature if curvature < 0 else alpha
        if not low < step < high:
            step = Interval(low, high, 0.0).middle(max(abs(start), 1.0))
        if abs(step - alpha) <= 1e-4 * min(abs(step), interval.high - interval.low):
            break
        alpha = step
    return alpha
