"""How well a linear model does on each query, and each of its features alone: what AdaRank asks.

    E_q(theta) = measure of query q, ranked by its scores,    E_q(k) the same, ranked by feature k               (1)

Features alone are evaluated once. A query that the measure skips has no weight.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerQuery
from exactrank.errors import DataError, IncompatibleError
from exactrank.measures.bound import BoundMeasure, mean_over_queries
from exactrank.measures.dcg import DCG
from exactrank.objectives.measured import Measured
from exactrank.scorers.architecture import Theta

#: What rounding may add to a share.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class QueryPerformance:
    """(1), of a linear model; ``turned`` counts features upside down as well."""

    measured: Measured
    turned: bool = True

    def __post_init__(self) -> None:
        measure, ideal = self.bound.measure, self.bound.values(self.bound.data.y)
        if np.nanmax(np.abs(ideal)) > 1 + ROUNDING or (isinstance(measure, DCG) and measure.normaliser == "one"):
            raise IncompatibleError(
                f"AdaRank needs a measure of at most 1, and {measure.name} can exceed that; take a share of the ideal, as nDCG"
            )

    @property
    def bound(self) -> BoundMeasure:
        """The measure."""
        return self.measured.bound

    @cached_property
    def weight(self) -> PerQuery:
        """Of each query; they sum to 1."""
        given = np.where(np.isnan(self._alone[0, 0]), 0.0, self.bound.weights)
        if not np.any(given):
            raise DataError(f"no query that counts has a weight above 0, by {self.bound.measure}; give such a query a weight")
        return np.asarray(given / given.sum())

    @cached_property
    def alone(self) -> npt.NDArray[np.float64]:
        """E of each feature alone, by sign, feature and query; 0 where a query is skipped."""
        return np.nan_to_num(self._alone)

    def performance(self, theta: Theta) -> tuple[float, PerQuery]:
        """The mean as [`xr.evaluate`][exactrank.evaluate] has it, and E of each query, 0 where it is skipped."""
        values = self.measured.by_query(theta)
        return mean_over_queries(values, self.bound.weights), np.nan_to_num(values)

    @cached_property
    def _alone(self) -> npt.NDArray[np.float64]:
        columns = (column.astype(np.float64) for column in self.bound.data.X.T)
        signs = (1.0, -1.0) if self.turned else (1.0,)
        found = [[self.bound.values(sign * column) for sign in signs] for column in columns]
        return np.ascontiguousarray(np.swapaxes(found, 0, 1))
