"""A step function that is a sum over queries, of which each part knows its share, in whole numbers of a small unit.

    f(alpha) = sum over parts of f_p(alpha),    the same in any order                                           (1)

Each part sends the histogram of its events, and its values left and right of 0. One more round then requests the events in those bins of
the sum that can hold the optimum. A part with very many such events sends their sums in narrower bins instead, of which few can hold the
optimum; so the size of answers hardly grows with the number of queries. Several lines are searched at once. A whole function consists of
all jumps of all parts.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Floats, Ints
from exactrank.errors import DataError
from exactrank.learning.objectives.step_function import Interval, StepFunction

#: A part with more events than this in the requested bins sends their sums, in at most this number of narrower bins.
MOST_EVENTS, NARROW_BINS = 1 << 14, 1 << 12
BinNumbers: TypeAlias = npt.NDArray[np.uint32]
Events: TypeAlias = tuple[Floats, Ints]  #: points and changes
Sums: TypeAlias = tuple[BinNumbers, Ints, Ints]  #: numbers of bins, changes and rises there
#: Events in some bins, or their sums; the last event before an edge, and the first after it.
NearbyEvents: TypeAlias = tuple[Events, Sums, float, float]
Jumps: TypeAlias = tuple[Floats, Ints, Ints, int]  #: points, jumps to and from them; value at 0


@dataclass(frozen=True, eq=False)
class Outline:
    """A part's share of a function along a line: the sums of its events by bins, and its values beside 0."""

    sums: Sums
    left: int
    right: int
    ties: bool  #: True if these two may differ

    @classmethod
    def of(cls, native: _core.Outline) -> Self:
        """Return what travels of ``native``."""
        return cls(native.sums, native.left, native.right, native.ties)


@dataclass(frozen=True, eq=False)
class EventRequest:
    """A request to each part for its events along a line, in some ``bins`` of one width and beside the bin ``edge``."""

    line: int
    bins: BinNumbers
    shift: int
    edge: int

    def answer(self, outline: _core.Outline, threads: int, limit: int | None = None) -> NearbyEvents:
        """Return the answer of a part; sums if there are more events than ``limit``, by default `MOST_EVENTS`."""
        return outline.close(self.bins, self.shift, self.edge, MOST_EVENTS if limit is None else limit, self.narrow_shift, threads)

    @property
    def narrow_shift(self) -> int:
        """The shift of the narrower bins for sums, if there are too many events."""
        return max(0, self.shift - max(1, (NARROW_BINS // max(1, len(self.bins))).bit_length() - 1))


@dataclass(frozen=True)
class Scale:
    """The unit of the whole numbers."""

    measure: object  #: in messages
    total: float  #: the weight of the queries that count
    peak: float  #: an upper bound of the value of a query

    def __post_init__(self) -> None:
        if math.isinf(self.peak):
            raise DataError(f"{self.measure} is infinite on this data: a gain overflows; use gain='linear', or nDCG, which has no limit")

    @classmethod
    def of(cls, measure: object, parts: Sequence[tuple[npt.NDArray[np.uint8], float]], weights: Floats) -> "Scale":
        """Return the scale for queries of these ``weights``; ``parts`` have masks of those that count, and upper bounds of values."""
        counted = np.concatenate([counted for counted, _ in parts])
        return cls(measure, float(np.cumsum(np.where(counted, weights, 0.0))[-1]), max(peak for _, peak in parts))

    def value(self, parts: Sequence[int]) -> float:
        """Return the sum of ``parts``; NaN if no query counts."""
        return _core.from_fixed(sum(parts), self.peak) if self.total > 0 else math.nan


@dataclass(frozen=True, eq=False)
class LineOutlines:
    """A line between ``low`` <= 0 and ``high`` >= 0, with the outline of each part."""

    outlines: Sequence[Outline]
    low: float
    high: float

    def search(self, scale: Scale) -> _core.BestInterval:
        """Return the search for the interval in which (1) is largest."""
        numbers, change, up = _join_sums([outline.sums for outline in self.outlines])
        left, right = sum(outline.left for outline in self.outlines), sum(outline.right for outline in self.outlines)
        at_zero = right - left if any(outline.ties for outline in self.outlines) else None
        return _core.BestInterval(numbers, change, up, left, at_zero, scale.peak, self.low, self.high)


def best_intervals(
    lines: Sequence[LineOutlines], ask: Callable[[Sequence[EventRequest]], Sequence[Sequence[NearbyEvents]]], scale: Scale
) -> list[Interval]:
    """Return the intervals of ``lines`` in which (1) is largest; ``ask`` returns the answers of each part to some requests."""
    if not scale.total > 0:
        return [Interval(line.low, line.high, math.nan) for line in lines]
    intervals: dict[int, Interval] = {}
    searches = {number: line.search(scale) for number, line in enumerate(lines)}
    while searches:
        requests = [EventRequest(number, search.bins, search.shift, search.edge) for number, search in searches.items()]
        for request, answers in zip(requests, zip(*ask(requests), strict=True), strict=True):
            search, line = searches[request.line], request.line
            at, change = (np.concatenate([events[i] for events, *_ in answers]) for i in range(2))
            numbers, changes, up = _join_sums([sums for _, sums, *_ in answers])
            if len(numbers):
                search.narrow(request.narrow_shift, numbers, changes, up, at, change)
                continue
            below, above = max(answer[2] for answer in answers), min(answer[3] for answer in answers)
            intervals[line] = Interval(*search.best(at, change, below, above, scale.peak))
            del searches[line]
    return [intervals[number] for number in range(len(lines))]


def _join_sums(parts: Sequence[Sums]) -> Sums:
    """Return the sums of all parts, one after the other."""
    numbers, changes, rises = zip(*parts, strict=True)
    return np.concatenate(numbers), np.concatenate(changes), np.concatenate(rises)


def whole_function(parts: Sequence[Jumps], scale: Scale) -> StepFunction:
    """Return (1), with all its breakpoints."""
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
