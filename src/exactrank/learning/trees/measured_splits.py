"""Splits chosen by the measure itself: of the best few by their gain, the one that raises it most (Tan, Xia, Guo & Wang 2013, future work).

The gain of a split is that of an approximation of the objective. But of splits whose gains are nearly equal some move documents past each
other that the measure counts, and some do not. With s the scores before the tree and o_c the outputs of the tree so far, its next leaf
split in the c-th best way (each at another feature),

    c = argmax_c  measure(s + weight o_c),    over the queries that the tree is fitted to                       (1)

Of equal values the larger gain wins. The outputs are Newton's steps, from the sums in histograms; ``weight`` is what the tree is expected
to be multiplied by. A document of weight 0 keeps its score in (1).
"""

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument, PerQuery
from exactrank.learning.objectives.step_function import SAME_VALUE
from exactrank.measures.bound import BoundMeasure, mean_over_queries


class SplitChoice:
    """The choices (1) of one tree, in the order in which its leaves are split."""

    def __init__(self, bound: BoundMeasure, scores: PerDocument, weights: PerQuery, weight: float) -> None:
        self._bound, self._before, self._weights, self._weight = bound, scores, weights, weight
        self._scores = scores.copy()

    def __call__(self, documents: npt.NDArray[np.int32], outputs: npt.NDArray[np.float64]) -> int:
        """Return the best row of ``outputs``, which has a candidate's output for each of the ``documents`` of a leaf; go on from there."""
        candidates = self._before[documents] + self._weight * outputs
        values = np.array([self._value(documents, scores) for scores in candidates] if len(candidates) > 1 else [0.0])
        best = int(np.argmax(values >= values.max() - SAME_VALUE))
        self._scores[documents] = candidates[best]
        return best

    def _value(self, documents: npt.NDArray[np.int32], scores: PerDocument) -> float:
        """Return the measure if these ``documents`` have these ``scores``."""
        changed = self._scores.copy()
        changed[documents] = scores
        return mean_over_queries(self._bound.values(changed), self._weights)
