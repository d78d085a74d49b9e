"""A step function that is a sum over queries, of which each part knows its own share, in whole numbers of a small unit.

    f(alpha) = sum over parts of f_p(alpha),    the same in any order                                           (1)

Each part gives the histogram of its events, and its values left and right of 0; the bins of their sum that can hold the optimum are then
asked for exactly, in one more round. A whole function is made of all jumps of all parts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.errors import DataError
from exactrank.objectives.step_function import Interval, StepFunction

Outline = tuple[Any, ...]  #: numbers, changes and rises of the bins that hold something; values left and right of 0; may these differ?
Jumps = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64], int]  #: places, jumps to and from them; value at 0


@dataclass(frozen=True)
class Scale:
    """The unit of the whole numbers."""

    measure: object  #: in messages
    total: float  #: the weight of the queries that count
    peak: float  #: what the value of none exceeds

    def __post_init__(self) -> None:
        if math.isinf(self.peak):
            raise DataError(f"{self.measure} is infinite on this data: a gain overflows; use gain='linear', or nDCG, which has no limit")

    @classmethod
    def of(cls, measure: object, facts: Sequence[tuple[npt.NDArray[np.uint8], float]], weights: npt.NDArray[np.float64]) -> "Scale":
        """Of queries of these ``weights``; the facts of each part are which of them count, and what none exceeds."""
        counted = np.concatenate([counted for counted, _ in facts])
        return cls(measure, float(np.cumsum(np.where(counted, weights, 0.0))[-1]), max(peak for _, peak in facts))

    def value(self, parts: Sequence[int]) -> float:
        """The sum of ``parts``; NaN where no query counts."""
        return _core.from_fixed(sum(parts), self.peak) if self.total > 0 else math.nan


class Events(Protocol):
    """The events of all parts between the limits of a search; one answer per part."""

    def events(self, bins: npt.NDArray[np.uint32], edge: int) -> Sequence[tuple[Any, Any, float, float]]:
        """Places and changes of those that lie in ``bins``; the last before the bin ``edge``, and the first that is not."""


def best_interval(outlines: Sequence[Outline], parts: Events, low: float, high: float, scale: Scale) -> Interval:
    """The interval of alpha, low <= 0 <= high, where (1) is largest."""
    if not scale.total > 0:
        return Interval(low, high, math.nan)
    numbers, change, up = (np.concatenate([outline[i] for outline in outlines]) for i in range(3))
    left, right = (sum(outline[i] for outline in outlines) for i in (3, 4))
    ties = any(outline[5] for outline in outlines)
    if ties:
        numbers = np.append(numbers, np.uint32(_core.BIN_OF_ZERO))
        change, up = np.append(change, right - left), np.append(up, max(right - left, 0))

    beside: dict[int, Sequence[tuple[float, float]]] = {}  # an edge; nothing is known of it yet
    expected: list[int] = []

    def asked(bins: npt.NDArray[np.uint32], edge: int) -> Sequence[tuple[Any, Any, float, float]]:
        found = parts.events(bins, edge)
        beside[edge] = [each[2:] for each in found]
        return found

    def in_bins(bins: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        found = asked(bins, expected[-1])
        at, changes = (np.concatenate([each[i] for each in found]) for i in range(2))
        if ties and _core.BIN_OF_ZERO in bins:
            at, changes = np.append(at, 0.0), np.append(changes, right - left)
        order = np.lexsort((changes, at))
        return at[order], changes[order]

    def around(edge: int, low: float, high: float) -> tuple[float, float]:
        if ties:
            low, high = (max(low, 0.0), high) if edge > _core.BIN_OF_ZERO else (low, min(high, 0.0))
        if edge not in beside:
            asked(np.zeros(0, np.uint32), edge)
        return max(low, *(each[0] for each in beside[edge])), min(high, *(each[1] for each in beside[edge]))

    return Interval(*_core.best_of_outline(numbers, change, up, left, low, high, scale.peak, in_bins, around, expected.append))


def whole_function(parts: Sequence[Jumps], scale: Scale) -> StepFunction:
    """(1), with all its breakpoints."""
    if not scale.total > 0:
        return StepFunction(np.zeros(0), np.array([math.nan]), np.zeros(0))
    at, to, beyond = (np.concatenate([part[i] for part in parts]) for i in range(3))
    if len(parts) > 1:
        order = np.argsort(at, kind="stable")
        at, to, beyond = at[order], to[order], beyond[order]
        first = np.flatnonzero(np.append(True, at[1:] != at[:-1])[: len(at)])
        if len(first) < len(at):
            at, to, beyond = at[first], np.add.reduceat(to, first), np.add.reduceat(beyond, first)
    leftmost = sum(part[3] for part in parts) - int(to[at <= 0].sum()) - int(beyond[at < 0].sum())
    values = np.append(leftmost, leftmost + np.cumsum(to + beyond))
    unit = _core.from_fixed(1, scale.peak)
    return StepFunction(at, values * unit, (values[:-1] + to) * unit)
