"""The mean of a measure as a function of a scorer's parameters.

    f(theta) = mean over queries of measure(s(theta))                                                           (1)

What is asked at once is answered at once where the scorer is linear: several vectors of parameters read the features once, and
for the differences along all coordinates,

    f(theta + c e_j) - f(theta - c e_j),    s(theta +- c e_j) = s(theta) +- c x_j / scale_j                     (2)

each query is read once and ranked anew for every coordinate.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument, PerQuery
from exactrank.measures.bound import BoundMeasure
from exactrank.scorers.architecture import Architecture, Theta
from exactrank.threads import thread_count

#: This number of vectors of parameters shares a reading of the features.
AT_ONCE = 8


@dataclass(frozen=True, eq=False)
class Measured:
    """(1) of a measure on its data, which has no missing values."""

    bound: BoundMeasure
    architecture: Architecture

    def value(self, theta: Theta) -> float:
        """At ``theta``, as [`xr.evaluate`][exactrank.evaluate] has it."""
        return self.bound.mean(self._scores(theta))

    def by_query(self, theta: Theta) -> PerQuery:
        """The measure of each query at ``theta``; NaN where it has none."""
        return self.bound.values(self._scores(theta))

    def values(self, thetas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """At each row of ``thetas``, with the same bits as `value`."""
        if self.architecture.hidden is not None:
            return np.array([self.value(theta) for theta in thetas])
        weights = np.ascontiguousarray(thetas * (1.0 / self.architecture.scale))
        blocks = (weights[first : first + AT_ONCE] for first in range(0, len(weights), AT_ONCE))
        X, threads = self.bound.data.X, thread_count(self.bound.threads)
        return np.array([self.bound.mean(scores) for block in blocks for scores in _core.products(X, block, threads)])

    def differences(self, theta: Theta, c: float) -> Theta:
        """(2) for every coordinate j; for a linear scorer scores are made by (2), so equal to those of `value` up to rounding."""
        if self.architecture.hidden is not None:
            steps = (c * np.eye(1, len(theta), j)[0] for j in range(len(theta)))
            return np.array([self.value(theta + step) - self.value(theta - step) for step in steps])
        return self.bound.differences(self._scores(theta), self.bound.data.X, c / self.architecture.scale)

    def _scores(self, theta: Theta) -> PerDocument:
        return self.architecture.scores(theta, self.bound.data.X, self.bound.threads)
