"""The mean of a measure as a function of a scorer's parameters.

    f(theta) = mean over queries of measure(s(theta))                                                           (1)

Many values are computed at once where the architecture can. A measure that is only reported, not maximized, comes from the
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
from exactrank.learning.objectives.linear_profile import Direction, LinearProfile, LinearValue, Place, Reach, columns_of
from exactrank.measures.bound import BoundMeasure, DatasetMeasure, mean_over_queries, values_over
from exactrank.measures.graded import DCG
from exactrank.models.architecture import AT_ONCE, Architecture, Theta

#: What rounding may add to a share.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Measured:
    """(1) of a measure over its dataset, which has no missing values, and of the one ``asked``, over the same data, which is reported."""

    measure: DatasetMeasure
    architecture: Architecture
    asked: DatasetMeasure | None = None
    _last: list[tuple[Theta, PerQuery]] = field(default_factory=list, init=False, repr=False)  #: values as asked, and where

    def value(self, theta: Theta) -> float:
        """At ``theta``, as [`er.evaluate`][exactrank.evaluate] has it."""
        return self.measure.mean_of(self.by_query(theta))

    def by_query(self, theta: Theta) -> PerQuery:
        """The measure of each query at ``theta``; NaN where it has none."""
        score = self.architecture.score(theta, self.measure.threads)
        if self.asked is None:
            return self.measure.values(score)
        values, _ = values_over([self.measure, self.asked], score)
        self._last[:] = [(theta, values[1])]
        return np.asarray(values[0])

    def reported(self, theta: Theta) -> float:
        """The mean of the measure ``asked`` at ``theta``, which is known where that is where the last value was."""
        if self.asked is None:
            return self.value(theta)
        if not self._last or self._last[0][0] is not theta:
            self.by_query(theta)
        return self.asked.mean_of(self._last[0][1])

    def values(self, thetas: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """At each row of ``thetas``, with the same bits as `value`."""
        by_query = self.measure.by_query(partial(_values_of_each, self.architecture, thetas))
        return np.array([self.measure.mean_of(values) for values in by_query])

    def differences(self, theta: Theta, c: float) -> Theta:
        """f(theta + c e_j) - f(theta - c e_j) for every coordinate j.

        For linear scorers by s(theta +- c e_j) = s(theta) +- c x_j / scale_j, so up to rounding; each query is read once for all.
        """
        architecture, d = self.architecture, len(theta)
        if architecture.linear:
            return self.measure.differences(architecture.score(theta, self.measure.threads), c / architecture.scale)
        steps = (c * np.eye(min(AT_ONCE, d - j), d, j) for j in range(0, d, AT_ONCE))
        return np.concatenate([np.subtract(*np.split(self.values(np.concatenate([theta + some, theta - some])), 2)) for some in steps])


def _values_of_each(architecture: Architecture, thetas: npt.NDArray[np.float64], bound: BoundMeasure) -> npt.NDArray[np.float64]:
    """The values of each query, a row for each of ``thetas``."""
    return np.array([bound.values(scores) for scores in architecture.scores_of_each(thetas, bound.data.X, bound.threads)])


class LinearMeasured(Measured):
    """(1) of a linear model, which is known exactly along lines, and cheap for several values of one parameter."""

    @property
    def dimension(self) -> int:
        """How many parameters there are."""
        return self.architecture.size

    def at(self, theta: Theta) -> Place:
        """The place ``theta``, to search from."""
        return self._profile.at(theta)

    def foresee(self, directions: Sequence[Direction], reach: Reach) -> None:
        """Searches will be along ``directions``, in turn, as far as ``reach`` says from where they are."""
        self._profile.foresee(directions, reach)

    def values_along(self, theta: Theta, j: int, parameters: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """At ``theta`` with each of ``parameters`` for its j-th."""
        return self._along.values_along(theta, j, parameters)

    @property
    def most(self) -> float:
        """What no parameters exceed."""
        return self.measure.most

    @cached_property
    def _profile(self) -> LinearProfile:
        return LinearProfile.of(self.measure, scale=self.architecture.scale)

    @cached_property
    def _along(self) -> LinearValue:
        return LinearValue(self.measure, self.architecture.scale)


class QueryPerformance:
    """(2), of a linear model; ``turned`` counts features upside down as well. A query that the measure skips has no weight."""

    def __init__(self, measured: Measured, turned: bool = True) -> None:
        over, measure = measured.measure, measured.measure.measure
        most = np.nanmax(np.abs(over.values(measure.grades)))
        if most > 1 + ROUNDING or (isinstance(measure, DCG) and measure.normalizer == "one"):
            raise IncompatibleError(
                f"AdaRank needs a measure of at most 1, and {measure.name} can exceed that; use one relative to the ideal, e.g. nDCG"
            )
        alone = over.by_query(partial(_alone, (1.0, -1.0) if turned else (1.0,)))
        weight = np.where(np.isnan(alone[0, 0]), 0.0, over.weights)
        if not np.any(weight):
            raise DataError(f"no query that {measure} counts has a weight above 0; give such a query a weight")
        self.weight: PerQuery = weight / weight.sum()  #: of each query; they sum to 1
        #: E of each feature alone, by sign, feature and query; 0 where a query is skipped.
        self.alone: npt.NDArray[np.float64] = alone
        np.copyto(alone, 0.0, where=np.isnan(alone))
        self.measured = measured

    def performance(self, theta: Theta) -> tuple[float, PerQuery]:
        """The mean as [`er.evaluate`][exactrank.evaluate] has it, and E of each query, 0 where it is skipped."""
        values = self.measured.by_query(theta)
        return mean_over_queries(values, self.measured.measure.weights), np.nan_to_num(values)


def _alone(signs: tuple[float, ...], bound: BoundMeasure) -> npt.NDArray[np.float64]:
    """The values of each query by each feature times each of ``signs``."""
    alone = np.empty((len(signs), bound.data.n_features, bound.data.n_queries))
    for j, column in enumerate(columns_of(bound.data)):
        for number, sign in enumerate(signs):
            alone[number, j] = bound.values(sign * column.astype(np.float64))
    return alone
