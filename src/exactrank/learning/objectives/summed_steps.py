"""A step function that is a sum over queries, of which each part knows its own share, in whole numbers of a small unit.

    f(alpha) = sum over parts of f_p(alpha),    the same in any order                                           (1)

Each part gives the histogram of its events, and its values left and right of 0; the events in the bins of their sum that can hold the
optimum are then asked for, in one more round. A part where these are very many gives their sums in narrower bins instead, of which few can
hold it, so that what travels hardly grows with the queries. Several lines are searched at once. A whole function is made of all jumps of
all parts.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.errors import DataError
from exactrank.learning.objectives.step_function import Interval, StepFunction

#: A part that has more events than this in the bins that it is asked for gives their sums, in at most this number of narrower bins.
MOST_EVENTS, NARROW_BINS = 1 << 14, 1 << 12
Events = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]  #: places and changes
Sums = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], npt.NDArray[np.int64]]  #: numbers of bins, changes and rises there
Close = tuple[Events, Sums, float, float]  #: events in some bins, or their sums; the last event before an edge, and the first that is not
Jumps = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64], int]  #: places, jumps to and from them; value at 0


@dataclass(frozen=True, eq=False)
class Outline:
    """What a part tells of its share along a line: the sums of its events by bins, and its values beside 0."""

    sums: Sums
    left: int
    right: int
    ties: bool  #: may these two differ?

    @classmethod
    def of(cls, native: _core.Outline) -> Self:
        """What is to be told."""
        return cls(native.sums, native.left, native.right, native.ties)


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is asked of each part about a line next: its events in some ``bins`` of one width, and beside the bin ``edge``."""

    line: int
    bins: npt.NDArray[np.uint32]
    shift: int
    edge: int

    def of(self, outline: _core.Outline, threads: int, most: int | None = None) -> Close:
        """What a part answers; with sums where there are more events than ``most``, or than are sent."""
        return outline.close(self.bins, self.shift, self.edge, MOST_EVENTS if most is None else most, self.finer, threads)

    @property
    def finer(self) -> int:
        """The shift of the bins for sums, where there are too many events."""
        return max(0, self.shift - max(1, (NARROW_BINS // max(1, len(self.bins))).bit_length() - 1))


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


@dataclass(frozen=True, eq=False)
class Sought:
    """A line between ``low`` <= 0 and ``high`` >= 0, and what each part knows of it."""

    outlines: Sequence[Outline]
    low: float
    high: float

    @classmethod
    def of(cls, outlines: Sequence[_core.Outline], low: float, high: float) -> "Sought":
        """Return the line that has these outlines."""
        return cls([Outline.of(outline) for outline in outlines], low, high)

    def search(self, scale: Scale) -> _core.BestInterval:
        """For the interval where (1) is largest."""
        numbers, change, up = (np.concatenate([outline.sums[i] for outline in self.outlines]) for i in range(3))
        left, right = sum(each.left for each in self.outlines), sum(each.right for each in self.outlines)
        at_zero = right - left if any(each.ties for each in self.outlines) else None
        return _core.BestInterval(numbers, change, up, left, at_zero, scale.peak, self.low, self.high)


def best_intervals(lines: Sequence[Sought], ask: Callable[[Sequence[Wanted]], Sequence[Sequence[Close]]], scale: Scale) -> list[Interval]:
    """The intervals of ``lines`` where (1) is largest; of what is wanted of some of them, ``ask`` gives what each part answers."""
    if not scale.total > 0:
        return [Interval(line.low, line.high, math.nan) for line in lines]
    found: dict[int, Interval] = {}
    searches = {number: line.search(scale) for number, line in enumerate(lines)}
    while searches:
        wanted = [Wanted(number, search.bins, search.shift, search.edge) for number, search in searches.items()]
        for one, close in zip(wanted, zip(*ask(wanted), strict=True), strict=True):
            search, (at, change) = searches[one.line], _joined([events for events, *_ in close])
            numbers, changes, up = _joined([sums for _, sums, *_ in close])
            if len(numbers):
                search.narrow(one.finer, numbers, changes, up, at, change)
                continue
            below, above = max(each[2] for each in close), min(each[3] for each in close)
            found[one.line] = Interval(*search.best(at, change, below, above, scale.peak))
            del searches[one.line]
    return [found[number] for number in range(len(lines))]


def _joined(parts: Sequence[tuple[npt.NDArray[Any], ...]]) -> tuple[npt.NDArray[Any], ...]:
    """The arrays of all parts, one after the other."""
    return tuple(np.concatenate(own) for own in zip(*parts, strict=True))


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
