"""The mean of a measure as a function of steps of single features.

    f(theta) = mean over queries of measure(s),    s_i = sum_k jump_k [x_i,f_k > t_k]                            (1)

Theta has three numbers a step: feature, threshold, jump. Scores are kept from one theta to the next: one that goes on from the last
costs its new steps alone.
"""

import numpy as np

from exactrank.arrays import PerDocument
from exactrank.measures.bound import BoundMeasure
from exactrank.scorers.architecture import Theta


class ThresholdValue:
    """(1) of a measure on its data, which holds no missing values."""

    def __init__(self, bound: BoundMeasure) -> None:
        self._X = bound.data.X
        self._mean = bound.mean
        self._theta: Theta = np.empty(0)
        self._scores: PerDocument = np.zeros(len(self._X))

    def value(self, theta: Theta) -> float:
        """The mean of the measure, as [`xr.evaluate`][exactrank.evaluate] has it where sums of the jumps are exact."""
        known = len(self._theta)
        if not np.array_equal(theta[:known], self._theta):
            known, self._scores = 0, np.zeros(len(self._X))
        for feature, threshold, jump in theta[known:].reshape(-1, 3):
            # Compared as floats, a threshold halfway between two values could fall onto one of them.
            self._scores = self._scores + jump * (self._X[:, int(feature)].astype(np.float64) > threshold)
        self._theta = theta
        return self._mean(self._scores)
