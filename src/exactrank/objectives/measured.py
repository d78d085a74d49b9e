"""The mean of a measure as a function of a scorer's parameters.

    f(theta) = mean over queries of measure(s(theta))                                                           (1)

What is asked at once is answered at once where the architecture knows how.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerQuery
from exactrank.measures.bound import BoundMeasure
from exactrank.scorers.architecture import Architecture, Theta


@dataclass(frozen=True, eq=False)
class Measured:
    """(1) of a measure on its data, which has no missing values."""

    bound: BoundMeasure
    architecture: Architecture

    def value(self, theta: Theta) -> float:
        """At ``theta``, as [`xr.evaluate`][exactrank.evaluate] has it."""
        return self.bound.mean(self.architecture.scores(theta, self.bound.data.X, self.bound.threads))

    def by_query(self, theta: Theta) -> PerQuery:
        """The measure of each query at ``theta``; NaN where it has none."""
        return self.bound.values(self.architecture.scores(theta, self.bound.data.X, self.bound.threads))

    def values(self, thetas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """At each row of ``thetas``, with the same bits as `value`."""
        each = self.architecture.scores_of_each(thetas, self.bound.data.X, self.bound.threads)
        return np.array([self.bound.mean(scores) for scores in each])

    def differences(self, theta: Theta, c: float) -> Theta:
        """f(theta + c e_j) - f(theta - c e_j) for every coordinate j; for a linear scorer up to rounding."""
        return self.architecture.differences(self.bound, theta, c)
