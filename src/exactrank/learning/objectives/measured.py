"""The mean of a measure as a function of a scorer's parameters.

    f(theta) = mean over queries of measure(s(theta))                                                           (1)

Many values are computed at once if the architecture allows it. A measure that is only reported, not maximized, is computed from the
same ranking. AdaRank needs values by query, of the model and of each of its features alone:

    E_q(theta) = measure of query q, ranked by its scores,    E_q(k) the same, ranked by feature k               (2)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerQuery
from exactrank.errors import DataError, IncompatibleError
from exactrank.learning.objectives.linear_profile import LinearProfile, LinearValue, ProfilePoint, Reach, columns_of
from exactrank.learning.objectives.searched_measure import Direction
from exactrank.measures.bound import BoundMeasure, DatasetMeasure, mean_over_queries, values_over
from exactrank.measures.graded import DCG
from exactrank.models.architecture import AT_ONCE, Architecture, Theta

#: What rounding may add to a share.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Measured:
    """(1) of a measure over its dataset, which has no missing values; and of the ``reported`` measure over the same data."""

    measure: DatasetMeasure
    architecture: Architecture
    reported: DatasetMeasure | None = None
    _last: list[tuple[Theta, PerQuery]] = field(
        default_factory=list, init=False, repr=False
    )  #: the last theta, and the reported values there

    def value(self, theta: Theta) -> float:
        """Return (1) at ``theta``, as [`er.evaluate`][exactrank.evaluate] computes it."""
        return self.measure.mean_of(self.by_query(theta))

    def by_query(self, theta: Theta) -> PerQuery:
        """Return the measure of each query at ``theta``; NaN if it skips the query."""
        score = self.architecture.score(theta, self.measure.threads)
        if self.reported is None:
            return self.measure.values(score)
        values, _ = values_over([self.measure, self.reported], score)
        self._last[:] = [(theta, values[1])]
        return np.asarray(values[0])

    def reported_value(self, theta: Theta) -> float:
        """Return the mean of the ``reported`` measure at ``theta``; it is known if the last value was computed there."""
        if self.reported is None:
            return self.value(theta)
        if not self._last or self._last[0][0] is not theta:
            self.by_query(theta)
        return self.reported.mean_of(self._last[0][1])

    def values(self, thetas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return (1) at each row of ``thetas``, with the same bits as `value`."""
        by_query = self.measure.by_query(partial(_values_of_each, self.architecture, thetas))
        return np.array([self.measure.mean_of(values) for values in by_query])

    def differences(self, theta: Theta, c: float) -> Theta:
        """Return f(theta + c e_j) - f(theta - c e_j) for every coordinate j.

        For linear scorers by s(theta +- c e_j) = s(theta) +- c x_j / scale_j, up to rounding; each query is read once for all.
        """
        architecture, d = self.architecture, len(theta)
        if architecture.linear:
            return self.measure.differences(architecture.score(theta, self.measure.threads), c / architecture.scale)
        steps = (c * np.eye(min(AT_ONCE, d - j), d, j) for j in range(0, d, AT_ONCE))
        return np.concatenate([np.subtract(*np.split(self.values(np.concatenate([theta + step, theta - step])), 2)) for step in steps])


def _values_of_each(architecture: Architecture, thetas: npt.NDArray[np.float64], bound: BoundMeasure) -> npt.NDArray[np.float64]:
    """Return the values of each query, one row for each of ``thetas``."""
    return np.array([bound.values(scores) for scores in architecture.scores_of_each(thetas, bound.data.X, bound.threads)])


class LinearMeasured(Measured):
    """(1) of a linear model, which is exact along lines, and cheap for several values of one parameter."""

    @property
    def dimension(self) -> int:
        """The number of parameters."""
        return self.architecture.size

    def at(self, theta: Theta) -> ProfilePoint:
        """Return the point ``theta``, to search from."""
        return self._profile.at(theta)

    def announce(self, directions: Sequence[Direction], reach: Reach) -> None:
        """Announce searches along ``directions``, in turn, as far as ``reach`` says."""
        self._profile.announce(directions, reach)

    def values_along(self, theta: Theta, j: int, parameters: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return (1) at ``theta`` with each of ``parameters`` for its j-th."""
        return self._along.values_along(theta, j, parameters)

    @property
    def upper_bound(self) -> float:
        """A value that (1) never exceeds."""
        return self.measure.upper_bound

    @cached_property
    def _profile(self) -> LinearProfile:
        return LinearProfile.of(self.measure, scale=self.architecture.scale)

    @cached_property
    def _along(self) -> LinearValue:
        return LinearValue(self.measure, self.architecture.scale)


class QueryPerformance:
    """(2) of a linear model; with ``turned`` also of features upside down. A query that the measure skips has no weight."""

    def __init__(self, measured: Measured, turned: bool = True) -> None:
        over, measure = measured.measure, measured.measure.measure
        largest = np.nanmax(np.abs(over.values(measure.grades)))
        if largest > 1 + ROUNDING or (isinstance(measure, DCG) and measure.normalizer == "one"):
            raise IncompatibleError(
                f"AdaRank needs a measure of at most 1, and {measure.name} can exceed that; use one relative to the ideal, e.g. nDCG"
            )
        by_coordinate = over.by_query(partial(_values_by_feature, (1.0, -1.0) if turned else (1.0,)))
        weight = np.where(np.isnan(by_coordinate[0, 0]), 0.0, over.weights)
        if not np.any(weight):
            raise DataError(f"no query that {measure} counts has a weight above 0; give such a query a weight")
        self.weight: PerQuery = weight / weight.sum()  #: of each query; they sum to 1
        #: E of each feature alone, by sign, feature and query; 0 if a query is skipped.
        self.by_coordinate: npt.NDArray[np.float64] = by_coordinate
        np.copyto(by_coordinate, 0.0, where=np.isnan(by_coordinate))
        self.measured = measured

    def performance(self, theta: Theta) -> tuple[float, PerQuery]:
        """Return the mean as [`er.evaluate`][exactrank.evaluate] computes it, and E of each query, 0 if it is skipped."""
        values = self.measured.by_query(theta)
        return mean_over_queries(values, self.measured.measure.weights), np.nan_to_num(values)


def _values_by_feature(signs: tuple[float, ...], bound: BoundMeasure) -> npt.NDArray[np.float64]:
    """Return the values of each query ranked by each feature times each of ``signs``."""
    values = np.empty((len(signs), bound.data.n_features, bound.data.n_queries))
    for j, column in enumerate(columns_of(bound.data)):
        for number, sign in enumerate(signs):
            values[number, j] = bound.values(sign * column.astype(np.float64))
    return values
