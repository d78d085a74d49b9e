"""A measure subject to constraints on others, along lines and so everywhere: exactly, since all are step functions of one alpha.

    F = f               where all constraints hold                                                              (1)
      = -shortfall      elsewhere: by how much they are missed, each as a share of its level, added up

Measures are at least 0, so F prefers any point that keeps the constraints to any that does not. An ascent of F from weights that
miss one therefore first meets them, and then maximizes f without leaving them. On the breakpoints of all of them F is a step
function too, so its best interval along a line is exact.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from exactrank.data.dataset import Dataset
from exactrank.learning.objectives.linear_profile import Direction, LinearProfile, Place, Reach, Theta
from exactrank.learning.objectives.step_function import SAME_VALUE, Interval, StepFunction, together
from exactrank.measures.bound import BoundMeasure, DatasetMeasure
from exactrank.measures.goal import Constraint
from exactrank.measures.ties import worst_tie_order


def constrained(f: StepFunction, others: Sequence[tuple[StepFunction, Constraint]]) -> StepFunction:
    """(1) of step functions: ``f`` subject to a constraint on each of the ``others``."""
    own, *rest = together([f, *(g for g, _ in others)])
    missed = [(each.shortfall(g.values), each.shortfall(g.at)) for g, (_, each) in zip(rest, others, strict=True)]
    between, at = (np.sum(parts, axis=0) for parts in zip(*missed, strict=True))
    return StepFunction(own.breakpoints, np.where(between > 0, -between, own.values), np.where(at > 0, -at, own.at))


def worst_for(constraint: Constraint, data: Dataset, threads: int | None) -> DatasetMeasure:
    """Return the constraint's measure over ``data``, with tied documents in the order that is worst for the constraint, or on average."""
    measure = constraint.measure
    over = worst_tie_order(measure).over(data, threads=threads)
    return over if measure.ties == "expected" or constraint.sign == ">=" else replace(over, adjust=_best_first)


def _best_first(bound: BoundMeasure) -> BoundMeasure:
    """Return ``bound`` with tied documents in the order that makes the measure largest."""
    return replace(bound, tie_key=-bound.measure.grades(bound.data))


class ConstrainedProfile:
    """(1) as a function of a linear model's weights: ``problem`` subject to the constraints of ``others``."""

    def __init__(self, problem: LinearProfile, others: Sequence[tuple[LinearProfile, Constraint]]) -> None:
        self.dimension = problem.dimension
        self._problem, self._others = problem, others

    def foresee(self, directions: Sequence[Direction], reach: Reach) -> None:
        """Searches will be along ``directions``, in turn: first of the measure itself."""
        self._problem.foresee(directions, reach)

    def value(self, theta: Theta) -> float:
        """(1) at ``theta``."""
        return self.at(theta).value

    def at(self, theta: Theta) -> "ConstrainedPlace":
        """The place to search from."""
        return ConstrainedPlace(self._problem.at(theta), [(other.at(theta), each) for other, each in self._others])


class ConstrainedPlace:
    """A point in weight space, with the places of all measures there."""

    def __init__(self, place: Place, others: Sequence[tuple[Place, Constraint]]) -> None:
        self.theta, self.point = place.theta, place.point
        missed = math.fsum(each.shortfall(other.value) for other, each in others)
        self.value = -missed if missed > 0 else place.value
        self._place, self._others = place, others

    def best(self, direction: Direction, low: float = -math.inf, high: float = math.inf) -> Interval:
        """The interval of alpha where (1) is largest.

        The measure's own best interval will do where nothing better is possible, or its point keeps all constraints.
        """
        if self.value >= 0:
            free = self._place.best(direction, low, high)
            if free.value <= self.value + SAME_VALUE or self.moved(direction, self.point(direction, free)).value >= 0:
                return free
        others = [(other.profile(direction), each) for other, each in self._others]
        return constrained(self._place.profile(direction), others).best(low, high)

    def stopped(self, direction: Direction, low: float, high: float) -> bool:
        """Is a constraint missed, or does one keep the measure from its largest value along ``direction``?"""
        return self.value < 0 or self._place.best(direction, low, high).value > self.best(direction, low, high).value + SAME_VALUE

    def moved(self, direction: Direction, alpha: float) -> "ConstrainedPlace":
        """The place at ``alpha`` along ``direction``."""
        return ConstrainedPlace(
            self._place.moved(direction, alpha), [(other.moved(direction, alpha), each) for other, each in self._others]
        )
