"""Lambda functions written in Python: a force for each pair of a query's documents, or for each document.

A function of pairs is a few lines, and obeys Newton's third law by construction:

>>> def cubic_springs(pairs):
...     return pairs.delta * np.maximum(0, 1 - pairs.lead) ** 3

In a function of documents the forces of a query must sum to zero; otherwise its scores would drift up or down together
(Burges, Ragno & Le 2006, section 4), so a sum that is not zero is an error.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Floats, PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.learning.objectives.bounded_gain import bound_exponents, training_kernel
from exactrank.learning.objectives.score_space import LambdaForces, by_query, read_measure
from exactrank.measures.base import Measure

#: Forces may miss a sum of zero by this share of their sizes.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class RankedQuery:
    """The documents of a query in ranked order, the best first."""

    s: Floats  #: scores
    y: Floats  #: grades
    measure: Measure
    exponents: Floats | None = None  #: grades for `swaps`, if these are bounded (`exactrank.learning.objectives.bounded_gain`)

    @cached_property
    def swaps(self) -> Floats:
        """The change of the measure when two documents swap ranks, for all pairs."""
        return self.measure.swap_deltas(self.y if self.exponents is None else self.exponents)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of documents of a query with different grades; each field holds one number per pair."""

    better: npt.NDArray[np.intp]  #: position of the document of the higher grade, from 0
    worse: npt.NDArray[np.intp]
    query: RankedQuery

    @property
    def lead(self) -> Floats:
        """The score of the better document less that of the other."""
        return np.asarray(self.query.s[self.better] - self.query.s[self.worse])

    @property
    def delta(self) -> Floats:
        """The size of the measure's change when the two swap ranks."""
        return np.asarray(np.abs(self.query.swaps[self.better, self.worse]))

    @property
    def y_better(self) -> Floats:
        """The higher grade."""
        return np.asarray(self.query.y[self.better])

    @property
    def y_worse(self) -> Floats:
        """The lower grade."""
        return np.asarray(self.query.y[self.worse])


PairForce = Callable[[Pairs], npt.ArrayLike]
SubjectT = TypeVar("SubjectT", Pairs, RankedQuery)


@dataclass(frozen=True)
class OwnForces(LambdaForces, Generic[SubjectT]):
    """The base of both kinds: ``force`` gives the slope, without a known curvature, and the value is the measure's."""

    conservative: ClassVar[bool] = False

    force: Callable[[SubjectT], npt.ArrayLike]
    measure: Measure

    def __post_init__(self) -> None:
        read_measure(self)

    @abstractmethod
    def forces(self, query: RankedQuery) -> Floats:
        """Return the force on each document of ``query``."""

    def forces_on(self, data: RankingData) -> _core.Objective:
        kernel, grades = training_kernel(self.measure, data)
        bounded_measure, exponents = bound_exponents(self.measure, data.y, data.grade_range[1])

        def answer(number: int, scores: PerDocument) -> tuple[float, Floats, Floats]:
            rows = slice(data.indptr[number], data.indptr[number + 1])
            y = data.y[rows]
            if not np.all(np.isfinite(scores)):
                return float("nan"), np.full(len(y), np.nan), np.zeros(len(y))
            values, _, _ = _core.evaluate(scores, np.array([0, len(y)]), [(kernel, grades[rows], y, False)], 1)
            order = np.lexsort((np.arange(len(y)), y, -scores))
            slope = np.empty(len(y))
            slope[order] = self.forces(RankedQuery(scores[order], y[order], bounded_measure, exponents[rows][order]))
            return float(np.nan_to_num(values[0])), slope, np.zeros(len(y))

        return by_query(answer)


@dataclass(frozen=True)
class PairForces(OwnForces[Pairs]):
    """A force for each pair: up for its better document, down for the other."""

    def forces(self, query: RankedQuery) -> Floats:
        better, worse = np.nonzero(query.y[:, None] > query.y[None, :])
        force = _call(self.force, Pairs(better, worse, query), len(better), "pair")
        total = np.zeros(len(query.s))
        np.add.at(total, better, force)
        np.subtract.at(total, worse, force)
        return total


@dataclass(frozen=True)
class DocumentForces(OwnForces[RankedQuery]):
    """A force for each document, in ranked order; those of a query sum to zero."""

    def forces(self, query: RankedQuery) -> Floats:
        force = _call(self.force, query, len(query.s), "document")
        if abs(force.sum()) > ROUNDING * max(np.abs(force).sum(), 1e-300):
            raise DataError(
                f"the forces of {_name(self.force)} sum to {force.sum():g} over a query of {len(force)} documents, not to 0;"
                " subtract their mean, or give each pair equal and opposite forces"
            )
        return force


def _call(function: Callable[[SubjectT], npt.ArrayLike], subject: SubjectT, count: int, unit: str) -> Floats:
    """Return the result of ``function`` after checking that it is ``count`` finite numbers, one per ``unit``."""
    force = np.asarray(function(subject), np.float64)
    if force.shape != (count,) or not np.all(np.isfinite(force)):
        odd = f"shape {force.shape}" if force.shape != (count,) else "values that are not finite"
        raise DataError(f"the lambda function {_name(function)} gave {odd}; it must give {count} finite numbers, one per {unit}")
    return force


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", repr(function))
