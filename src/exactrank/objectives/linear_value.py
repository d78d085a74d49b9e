"""The mean of a measure as a function of a linear model's weights.

    f(w) = mean over queries of measure(X w)                                                                    (1)

Vectors that differ from a base vector w in a few weights are cheap to compare: with D the columns of those weights,

    X (w + d) = X w + D d                                                                                       (2)
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import mean_value
from exactrank.threads import thread_count

Theta = npt.NDArray[np.float64]
#: With more weights than this that differ, (2) saves nothing.
FEW = 4


@dataclass(frozen=True, eq=False)
class LinearValue:
    """(1) on ``data``, which holds no missing values."""

    measure: Measure
    data: RankingData
    threads: int | None = None

    def value(self, theta: Theta) -> float:
        """The mean of the measure at the weights ``theta``, as [`xr.evaluate`][exactrank.evaluate] has it."""
        return self.mean(self._scores(theta))

    def values(self, thetas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mean at each row of ``thetas``; scores are made by (2) where few weights differ, so equal up to rounding."""
        base = thetas[0]
        moving = np.flatnonzero(np.any(thetas != base, axis=0))
        if len(moving) > FEW:
            return np.array([self.value(theta) for theta in thetas])
        scores, columns = self._scores(base), self.data.X.T[moving].astype(np.float64)
        found = np.empty(len(thetas))
        for i, change in enumerate((thetas - base)[:, moving]):
            # A matrix product may round equal rows differently, which would break their tie.
            moved = scores + sum(column * d for column, d in zip(columns, change, strict=True))
            found[i] = self.mean(moved)
        return found

    def mean(self, scores: PerDocument) -> float:
        """The mean of the measure for ``scores`` in the order of the documents."""
        mean = mean_value(self.measure, self.data, scores, self._weight, self.threads)
        if not np.isfinite(mean):
            raise DataError(f"{self.measure} is {mean} on this data: no query counts, or a gain overflows; choose another measure")
        return mean

    def _scores(self, theta: Theta) -> PerDocument:
        return _core.linear_scores(self.data.X, np.ascontiguousarray(theta, np.float64), thread_count(self.threads))

    @cached_property
    def _weight(self) -> npt.NDArray[np.float64]:
        return np.ones(self.data.n_queries) if self.data.query_weight is None else self.data.query_weight
