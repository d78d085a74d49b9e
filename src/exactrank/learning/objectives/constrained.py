"""A measure subject to constraints on other measures, searched exactly: along a line all of them are step functions.

    F = f               if all constraints hold                                                                 (1)
      = -shortfall      otherwise: the sum of the amounts by which they are missed, each as a share of its level

Measures are at least 0, so F prefers points that keep the constraints to all others. An ascent of F therefore first meets the
constraints, and then maximizes f without breaking them. F is a step function with the breakpoints of all measures, so its best
interval along a line is exact.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from exactrank.data.dataset import Dataset
from exactrank.learning.objectives.linear_profile import LinearProfile, ProfilePoint, Reach
from exactrank.learning.objectives.searched_measure import Direction
from exactrank.learning.objectives.step_function import SAME_VALUE, Interval, StepFunction, with_common_breakpoints
from exactrank.measures.bound import BoundMeasure, DatasetMeasure
from exactrank.measures.goal import Constraint
from exactrank.measures.ties import worst_tie_order
from exactrank.models.architecture import Theta


def constrain(f: StepFunction, constraints: Sequence[tuple[StepFunction, Constraint]]) -> StepFunction:
    """Return (1) of step functions: ``f`` subject to ``constraints``, each on a function of its own."""
    f, *functions = with_common_breakpoints([f, *(g for g, _ in constraints)])
    shortfalls = [(one.shortfall(g.values), one.shortfall(g.at)) for g, (_, one) in zip(functions, constraints, strict=True)]
    between, at = (np.sum(parts, axis=0) for parts in zip(*shortfalls, strict=True))
    return StepFunction(f.breakpoints, np.where(between > 0, -between, f.values), np.where(at > 0, -at, f.at))


def worst_for(constraint: Constraint, data: Dataset, threads: int | None) -> DatasetMeasure:
    """Return the constraint's measure over ``data``; tied documents are in the order that is worst for the constraint, unless averaged."""
    measure = constraint.measure
    over = worst_tie_order(measure).over(data, threads=threads)
    return over if measure.ties == "expected" or constraint.sign == ">=" else replace(over, adjust=_best_first)


def _best_first(bound: BoundMeasure) -> BoundMeasure:
    """Return ``bound`` with tied documents in the order that makes the measure largest."""
    return replace(bound, tie_key=-bound.measure.grades(bound.data))


class ConstrainedProfile:
    """(1) as a function of a linear model's weights: ``problem`` subject to ``constraints``, each on another measure."""

    def __init__(self, problem: LinearProfile, constraints: Sequence[tuple[LinearProfile, Constraint]]) -> None:
        self.dimension = problem.dimension
        self._problem, self._constraints = problem, constraints

    def announce(self, directions: Sequence[Direction], reach: Reach) -> None:
        """Announce searches along ``directions``, in turn; the first question of each is about the measure itself."""
        self._problem.announce(directions, reach)

    def value(self, theta: Theta) -> float:
        """Return (1) at ``theta``."""
        return self.at(theta).value

    def at(self, theta: Theta) -> "ConstrainedPoint":
        """Return the point ``theta``, to search from."""
        return ConstrainedPoint(self._problem.at(theta), [(profile.at(theta), one) for profile, one in self._constraints])


class ConstrainedPoint:
    """A point in weight space, with the values of all measures there."""

    def __init__(self, point: ProfilePoint, constraints: Sequence[tuple[ProfilePoint, Constraint]]) -> None:
        self.theta, self.choose_alpha = point.theta, point.choose_alpha
        shortfall = math.fsum(one.shortfall(measured.value) for measured, one in constraints)
        self.value = -shortfall if shortfall > 0 else point.value
        self._point, self._constraints = point, constraints

    def best(self, direction: Direction, low: float = -math.inf, high: float = math.inf) -> Interval:
        """Return the interval of alpha in which (1) is largest.

        It is the measure's own best interval if no other can be better, or if its point keeps all constraints.
        """
        if self.value >= 0:
            unconstrained = self._point.best(direction, low, high)
            alpha = self.choose_alpha(direction, unconstrained)
            if unconstrained.value <= self.value + SAME_VALUE or self.move(direction, alpha).value >= 0:
                return unconstrained
        functions = [(measured.profile(direction), one) for measured, one in self._constraints]
        return constrain(self._point.profile(direction), functions).best(low, high)

    def is_blocked(self, direction: Direction, low: float, high: float) -> bool:
        """Return whether a constraint is missed, or keeps the measure from its largest value along ``direction``."""
        return self.value < 0 or self._point.best(direction, low, high).value > self.best(direction, low, high).value + SAME_VALUE

    def move(self, direction: Direction, alpha: float) -> "ConstrainedPoint":
        """Return the point at ``alpha`` along ``direction``."""
        constraints = [(measured.move(direction, alpha), one) for measured, one in self._constraints]
        return ConstrainedPoint(self._point.move(direction, alpha), constraints)
