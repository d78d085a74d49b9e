"""The mean of a measure as a function of a scorer's parameters.

    f(theta) = mean over queries of measure(s(theta))                                                           (1)

What is asked at once is answered at once where the scorer is linear: several vectors of parameters read the features once, and
for the differences along all coordinates,

    f(theta + c e_j) - f(theta - c e_j),    s(theta +- c e_j) = s(theta) +- c x_j / scale_j                     (2)

each query is read once and ranked anew for every coordinate.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import mean_value, tie_key_of, values_per_query
from exactrank.scorers.architecture import Architecture, Theta
from exactrank.threads import thread_count

#: So many vectors of parameters share a reading of the features.
AT_ONCE = 8


@dataclass(frozen=True, eq=False)
class Measured:
    """(1) over the queries of ``data``, which has no missing values."""

    measure: Measure
    architecture: Architecture
    data: RankingData
    threads: int | None = None

    def value(self, theta: Theta) -> float:
        """At ``theta``, as [`xr.evaluate`][exactrank.evaluate] has it."""
        return self._mean(self.architecture.scores(theta, self.data.X, self.threads))

    def by_query(self, theta: Theta) -> PerQuery:
        """The measure of each query at ``theta``; NaN where it has none."""
        scores = self.architecture.scores(theta, self.data.X, self.threads)
        return np.asarray(values_per_query([self.measure], self.data, scores, self.measure.ties, self.threads)[0][0])

    def values(self, thetas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """At each row of ``thetas``, with the same bits as `value`."""
        if self.architecture.hidden is not None:
            return np.array([self.value(theta) for theta in thetas])
        weights = np.ascontiguousarray(thetas * (1.0 / self.architecture.scale))
        blocks = (weights[first : first + AT_ONCE] for first in range(0, len(weights), AT_ONCE))
        return np.array([self._mean(scores) for block in blocks for scores in _core.products(self.data.X, block, self._count)])

    def differences(self, theta: Theta, c: float) -> Theta:
        """(2) for every coordinate j; for a linear scorer scores are made by (2), so equal to those of `value` up to rounding."""
        if self.architecture.hidden is not None:
            steps = (c * np.eye(1, len(theta), j)[0] for j in range(len(theta)))
            return np.array([self.value(theta + step) - self.value(theta - step) for step in steps])
        scores = self.architecture.scores(theta, self.data.X, self.threads)
        ties, (kernel, grades) = self.measure.ties, self.measure.kernel(self.data.y, self.data.longest)
        sums = _core.differences(
            scores, self.data.X, c / self.architecture.scale, self.data.indptr, tie_key_of(ties, self.data),
            ties == "expected", ties == "docid", kernel, grades, self.data.weights, self._count,
        )  # fmt: skip
        self._check(np.all(np.isfinite(sums)) and self._counted > 0)
        return sums / self._counted

    def _mean(self, scores: PerDocument) -> float:
        mean = mean_value(self.measure, self.data, scores, self.data.weights, self.threads)
        self._check(np.isfinite(mean))
        return mean

    def _check(self, finite: bool | np.bool_) -> None:
        if not finite:
            raise DataError(f"{self.measure} is no number on this data: no query counts, or a gain overflows; choose another measure")

    @property
    def _count(self) -> int:
        return thread_count(self.threads)

    @cached_property
    def _counted(self) -> float:
        """The weight of the queries that count."""
        values, _ = values_per_query([self.measure], self.data, np.zeros(self.data.n_documents), self.measure.ties, self.threads)
        return float(self.data.weights[~np.isnan(values[0])].sum())
