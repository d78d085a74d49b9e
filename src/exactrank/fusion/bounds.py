"""The measure against the weight of two systems, whatever the grades of unjudged documents are.

At each weight the mean lies between the two bounds of `exactrank.measures.unjudged`, which are step functions of the weight as the measure
itself is: a query's bounds change only where two documents exchange their places. A weight at which the upper bound is below the largest
value of the lower one is certainly not the best. Whether one of two weights is better is a question for the bounds of their difference,
which are narrower (`exactrank.fusion.judging`).
"""

from dataclasses import dataclass

import numpy as np

from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError
from exactrank.fusion.preparation import problem_of
from exactrank.fusion.problem import Segment
from exactrank.learning.objectives.step_function import SAME_VALUE, StepFunction
from exactrank.measures.base import Measure
from exactrank.measures.unjudged import UnjudgedBound, highest_grade


@dataclass(frozen=True)
class CurveBounds:
    """Smallest and largest values of the measure against the weight."""

    lower: StepFunction
    upper: StepFunction
    highest: float  #: of the grades that unjudged documents may have

    def at(self, weight: float) -> tuple[float, float]:
        """Return the bounds at a weight."""
        return self.lower(weight), self.upper(weight)

    @property
    def possible(self) -> tuple[float, float]:
        """Ends between which all weights lie that may be the best."""
        ends = np.concatenate([[0.0], self.upper.breakpoints, [1.0]])
        intervals = np.flatnonzero(self.upper.values >= self.lower.best(0.0, 1.0).value - SAME_VALUE)
        return float(ends[intervals[0]]), float(ends[intervals[-1] + 1])


def curve_bounds(
    lists: RankingData,
    measure: Measure,
    segment: Segment,
    normalize: str,
    absent: str,
    *,
    nonnegative: bool = True,
    highest: float | None = None,
    threads: int | None = None,
) -> CurveBounds:
    """Return the bounds along a segment of the weights of two systems, whose results are ``lists``."""
    if len(lists.feature_names) != 2:
        raise IncompatibleError(
            f"bounds are drawn against the weight of two systems, and there are {len(lists.feature_names)}; fuse two, or leave out unjudged"
        )
    grade = highest_grade(lists, highest)
    sides = UnjudgedBound.pair(measure, grade)
    curves = [
        problem_of(lists, bound, normalize, absent, nonnegative, threads).sweep(segment.start, segment.end, lists.weights).steps
        for bound in sides
    ]
    return CurveBounds(curves[0], curves[1], grade)
