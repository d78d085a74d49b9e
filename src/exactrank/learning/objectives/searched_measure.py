"""A measure over a dataset along lines of scores: the questions to its parts, and how their answers are combined.

The scores of documents are computed where the documents lie, along a `Course` that any worker can follow. A part keeps what it needs for
the next question about the same search; a part that has lost it, or never had it, computes it again, to the same bits. The only part of a
dataset finds the best interval itself; several parts know their shares of the function (`exactrank.learning.objectives.summed_steps`).
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Matrix, PerDocument
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Part, Weigh
from exactrank.learning.objectives.ideal_likelihood import Curves, IdealLikelihood, likeliest, sum_curves
from exactrank.learning.objectives.line_search import ALL_EVENTS, LineSearch, check_pairs
from exactrank.learning.objectives.step_function import Interval, StepFunction
from exactrank.learning.objectives.summed_steps import (
    EventRequest,
    Jumps,
    LineOutlines,
    NearbyEvents,
    Outline,
    Scale,
    best_intervals,
    whole_function,
)
from exactrank.learning.objectives.within_query import spread_by_block
from exactrank.measures.base import Measure
from exactrank.measures.bound import Adjust, BoundMeasure, DatasetMeasure, bound_on

Direction: TypeAlias = int | npt.NDArray[np.float64]  #: the number of a coordinate, or a vector
Line: TypeAlias = tuple[Direction, float, float]  #: a direction, and how far to search along it: low <= 0 and high >= 0
CountedAndPeak: TypeAlias = tuple[npt.NDArray[np.uint8], float]  #: a mask of the queries that count, and an upper bound of their values
LineSlopes: TypeAlias = PerDocument | Matrix  #: the rate of change of each score
#: The point of an interval to take: its middle, or where `IdealLikelihood` is largest, ours or as published.
Point: TypeAlias = Literal["middle", "likelihood", "plackett-luce"]
#: How many searches a part keeps: two of a bag, one per constraint.
SEARCHES_PER_PART = 6


def same_direction(one_direction: Direction, direction: Direction) -> bool:
    """Return whether two directions are the same coordinate, or the same array."""
    if isinstance(one_direction, int) and isinstance(direction, int):
        return one_direction == direction
    return one_direction is direction


class Course(Protocol):
    """A way to score the documents of a part along lines; picklable."""

    @property
    def key(self) -> Hashable:
        """A value that distinguishes it from courses that share no state with it."""

    def follow(self, state: "LineState", threads: int) -> None:
        """Bring ``state`` to the position of the search."""

    def slopes(self, state: "LineState", direction: Direction, threads: int) -> LineSlopes:
        """Return the rate of change of each score along ``direction``."""


class LineState:
    """A measure on the queries of a part, at the position of a search."""

    def __init__(self, part: Part, bound: BoundMeasure) -> None:
        self.part, self.bound = part, bound
        self.position: object = None  #: of the course
        self.scores: PerDocument = np.zeros(0)

    @cached_property
    def likelihood(self) -> IdealLikelihood:
        """The likelihood of the ideal ranking among documents that are better than the worst."""
        return IdealLikelihood(self.bound)

    @cached_property
    def plackett_luce(self) -> IdealLikelihood:
        """The likelihood as published, also among the worst documents."""
        return IdealLikelihood(self.bound, as_published=True)

    def start(self, position: object, scores: PerDocument, threads: int) -> None:
        """Take these scores for alpha = 0."""
        self.position, self.scores = position, scores

    def fetch(self, numbers: npt.NDArray[np.generic]) -> PerDocument:
        """Return scores or slopes as numbers in double precision of this process."""
        return np.ascontiguousarray(numbers, np.float64)


class WholeState(LineState):
    """The state of the only part."""

    def __init__(self, part: Part, bound: BoundMeasure) -> None:
        super().__init__(part, bound)
        self.search = part.kernel(LineSearch)(bound)
        self.value = math.nan

    def start(self, position: object, scores: PerDocument, threads: int) -> None:
        """Take these scores for alpha = 0."""
        super().start(position, scores, threads)
        self.value = self.search.start(scores)

    def fetch(self, numbers: npt.NDArray[np.generic]) -> PerDocument:
        """Return scores or slopes as numbers in double precision of this process."""
        return super().fetch(self.search.fetch(numbers))


class ShareState(LineState):
    """The state of one of several parts, which knows its share of the sum."""

    def __init__(self, part: Part, bound: BoundMeasure, native: _core.LineSearch | _core.StepSearch) -> None:
        super().__init__(part, bound)
        self.native, self.value = native, 0
        self._outlines: dict[object, _core.Outline] = {}

    def start(self, position: object, scores: PerDocument, threads: int) -> None:
        """Take these scores for alpha = 0."""
        super().start(position, scores, threads)
        self._outlines, self.value = {}, self.native.rank_part(scores, threads)

    def outlines(self, lines: Sequence[Line], slopes: Callable[[Direction], LineSlopes], threads: int) -> list[_core.Outline]:
        """Return the outlines of the function along ``lines``; only these are kept, since their events are requested next."""
        keys = [(way.tobytes() if isinstance(way, np.ndarray) else way, low, high) for way, low, high in lines]
        before, self._outlines = self._outlines, {}
        for key, (direction, low, high) in zip(keys, lines, strict=True):
            if key in before:
                self._outlines[key] = before[key]
            else:
                self._outlines[key] = self._outline(slopes(direction), low, high, threads)
        return [self._outlines[key] for key in keys]

    def _outline(self, slopes: LineSlopes, low: float, high: float, threads: int) -> _core.Outline:
        if isinstance(self.native, _core.LineSearch):
            return self.native.outline(slopes, low, high, threads)
        return self.native.outline(np.ascontiguousarray(slopes, np.float64), low, high, threads)


@dataclass(frozen=True, eq=False)
class Search:
    """A measure that is searched along a course; ``general`` for whole functions, whose kernel serves all measures."""

    measure: Measure
    name: str  #: of the measure
    adjust: Adjust | None
    weigh: Weigh | None
    threads: int
    general: bool = False
    scale: Scale | None = None  #: of all parts together; None if there is only one
    course: Course | None = None

    def bound(self, part: Part) -> BoundMeasure:
        """Return the measure on the queries of ``part``, with their weights."""
        bound = bound_on(part, self.measure, self.adjust, self.threads)
        weights = bound.weights if self.weigh is None else self.weigh(part.first, part.data.weights)
        return replace(bound, weights=weights, threads=self.threads)

    def native(self, bound: BoundMeasure) -> _core.LineSearch | _core.StepSearch:
        """Return the kernel for one of several parts."""
        total, peak = (None, None) if self.scale is None else (self.scale.total, self.scale.peak)
        if self.general or not _core.LineSearch.serves(bound.native):
            check_pairs(bound)
            return _core.StepSearch(bound.native, total, peak)
        return _core.LineSearch(bound.native, events=ALL_EVENTS, total=total, peak=peak)

    def share(self, part: Part) -> ShareState:
        """Return the state of one of several parts, at the position of the search."""
        key = self.name, self.adjust, self.weigh, self.general, self.scale, self._course.key
        state = part.recent("search", key, SEARCHES_PER_PART, lambda: ShareState(part, bound := self.bound(part), self.native(bound)))
        self._course.follow(state, self.threads)
        return state

    def alone(self, part: Part) -> WholeState:
        """Return the state of the only part, at the position of the search."""
        key = self.name, self.adjust, self.weigh, self._course.key
        state = part.recent("search", key, SEARCHES_PER_PART, lambda: WholeState(part, self.bound(part)))
        self._course.follow(state, self.threads)
        return state

    def state(self, part: Part) -> LineState:
        """Return the state of any part."""
        return self.alone(part) if part.is_complete else self.share(part)

    def slopes(self, state: LineState, direction: Direction) -> LineSlopes:
        """Return the rate of change of each score along ``direction``."""
        return self._course.slopes(state, direction, self.threads)

    @property
    def _course(self) -> Course:
        assert self.course is not None
        return self.course


@dataclass(frozen=True, eq=False)
class CountedQueries:
    """The queries that count, and an upper bound of their values, of each of several parts; nothing if there is only one."""

    search: Search

    def ask(self, part: Part) -> CountedAndPeak | None:
        """Answer for ``part``."""
        if part.is_complete:
            return None
        native = self.search.native(self.search.bound(part))
        return native.counted(), native.peak()

    def combine(self, answers: Sequence[CountedAndPeak | None]) -> list[CountedAndPeak]:
        """Return the answers of several parts."""
        return [answer for answer in answers if answer is not None]


@dataclass(frozen=True, eq=False)
class ValueAndOutlines:
    """The value at the position of the search, and the shares that several parts have of the functions along ``lines``."""

    search: Search
    lines: tuple[Line, ...] = ()

    def ask(self, part: Part) -> tuple[float, list[Outline]]:
        """Answer for ``part``."""
        search = self.search
        if part.is_complete:
            return search.alone(part).value, []
        state = search.share(part)
        outlines = state.outlines(self.lines, lambda direction: search.slopes(state, direction), search.threads)
        return state.value, [Outline.of(outline) for outline in outlines]

    def combine(self, answers: Sequence[tuple[float, list[Outline]]]) -> tuple[float, list[list[Outline]]]:
        """Return the result for the dataset."""
        scale, ((value, _), *_) = self.search.scale, answers
        if scale is None:
            return value, []
        outlines = [list(of_parts) for of_parts in zip(*(outlines for _, outlines in answers), strict=True)]
        return scale.value([int(value) for value, _ in answers]), outlines


@dataclass(frozen=True, eq=False)
class BestIntervals:
    """The interval of each of ``lines`` in which the measure is largest, from the only part."""

    search: Search
    lines: tuple[Line, ...]

    def ask(self, part: Part) -> list[Interval]:
        """Answer for ``part``."""
        state = self.search.alone(part)
        return [state.search.best(self.search.slopes(state, direction), low, high) for direction, low, high in self.lines]

    def combine(self, answers: Sequence[list[Interval]]) -> list[Interval]:
        """Return the result for the dataset."""
        return answers[0]


@dataclass(frozen=True, eq=False)
class RequestedEvents:
    """The events along ``lines`` that are requested from each of several parts."""

    search: Search
    lines: tuple[Line, ...]
    requests: tuple[EventRequest, ...]

    def ask(self, part: Part) -> list[NearbyEvents]:
        """Answer for ``part``."""
        search, state = self.search, self.search.share(part)
        outlines = state.outlines(self.lines, lambda direction: search.slopes(state, direction), search.threads)
        return [request.answer(outlines[request.line], search.threads) for request in self.requests]

    def combine(self, answers: Sequence[list[NearbyEvents]]) -> Sequence[list[NearbyEvents]]:
        """Return the result for the dataset."""
        return answers


@dataclass(frozen=True, eq=False)
class WholeFunction:
    """The function along a line, with all its breakpoints."""

    search: Search
    line: Line

    def ask(self, part: Part) -> StepFunction | Jumps:
        """Answer for ``part``."""
        search, (direction, low, high) = self.search, self.line
        if part.is_complete:
            state = search.alone(part)
            return state.search.profile(search.slopes(state, direction), low, high)
        share = search.share(part)
        assert isinstance(share.native, _core.StepSearch)
        return share.native.jumps(np.ascontiguousarray(search.slopes(share, direction), np.float64), low, high, search.threads)

    def combine(self, answers: Sequence[StepFunction | Jumps]) -> StepFunction:
        """Return the result for the dataset."""
        if isinstance(answers[0], StepFunction):
            return answers[0]
        assert self.search.scale is not None
        return whole_function([jumps for jumps in answers if not isinstance(jumps, StepFunction)], self.search.scale)


@dataclass(frozen=True, eq=False)
class SpreadSums:
    """The sums of scores and slopes; or, if their ``means`` are given, of their squared deviations from these."""

    search: Search
    direction: Direction
    means: tuple[float, float] | None = None

    def ask(self, part: Part) -> tuple[list[float], list[float]]:
        """Answer for ``part``."""
        state, means = self.search.state(part), (None, None) if self.means is None else self.means
        scores, slopes = state.fetch(state.scores), state.fetch(self.search.slopes(state, self.direction))
        indptr = state.bound.data.indptr
        return spread_by_block(scores, indptr, means[0]), spread_by_block(slopes, indptr, means[1])

    def combine(self, answers: Sequence[tuple[list[float], list[float]]]) -> tuple[float, float]:
        """Return the result for the dataset."""
        scores, slopes = (float(np.sum([block for answer in answers for block in answer[i]])) for i in range(2))
        return scores, slopes


@dataclass(frozen=True, eq=False)
class LikelihoodCurves:
    """The derivatives of the likelihood of the ideal ranking at ``alpha`` along a direction."""

    search: Search
    direction: Direction
    alpha: float
    as_published: bool

    def ask(self, part: Part) -> Curves:
        """Answer for ``part``."""
        state = self.search.state(part)
        slopes = state.fetch(self.search.slopes(state, self.direction))
        likelihood = state.plackett_luce if self.as_published else state.likelihood
        return likelihood.curves(state.fetch(state.scores), slopes, self.alpha)

    def combine(self, answers: Sequence[Curves]) -> tuple[float, float]:
        """Return the result for the dataset."""
        return sum_curves(answers)


class SearchedMeasure:
    """A measure over a dataset, to be searched along lines."""

    def __init__(self, measure: DatasetMeasure) -> None:
        self.measure, self.data, self._parts = measure, measure.data, measure.parts.with_memo()
        self._search = Search(measure.measure, repr(measure.measure), measure.adjust, measure.weigh, thread_count(measure.threads))
        self._counted: dict[bool, list[CountedAndPeak]] = {}
        self._scales: dict[bool, Scale | None] = {}

    def reweigh(self, weigh: Weigh | None) -> "SearchedMeasure":
        """Return the same measure with other weights of queries; which queries count is not asked again."""
        reweighed = SearchedMeasure(replace(self.measure, weigh=weigh))
        reweighed._counted = self._counted
        return reweighed

    @property
    def has_shares(self) -> bool:
        """True if several parts know their shares of the functions."""
        return self._scale(False) is not None

    def values(self, course: Course, lines: Sequence[Line] = ()) -> tuple[float, list[list[Outline]]]:
        """Return the value at the position of the course, and for each of ``lines`` the outlines of several parts."""
        return self._parts.ask(ValueAndOutlines(self._along(course), tuple(lines)))

    def best(self, course: Course, lines: Sequence[Line], outlines: Sequence[Sequence[Outline]] = ()) -> list[Interval]:
        """Return the interval of each of ``lines`` in which the measure is largest; ``outlines`` are those of `values`, if known."""
        search, all_lines = self._along(course), tuple(lines)
        if search.scale is None:
            return self._parts.ask(BestIntervals(search, all_lines))
        shares = outlines or self.values(course, lines)[1]
        line_outlines = [LineOutlines(share, low, high) for (_, low, high), share in zip(lines, shares, strict=True)]

        def ask(requests: Sequence[EventRequest]) -> Sequence[Sequence[NearbyEvents]]:
            return self._parts.ask(RequestedEvents(search, all_lines, tuple(requests)))

        return best_intervals(line_outlines, ask, search.scale)

    def profile(self, course: Course, direction: Direction, low: float = -math.inf, high: float = math.inf) -> StepFunction:
        """Return the whole function along ``direction``, between ``low`` and ``high``."""
        return self._parts.ask(WholeFunction(self._along(course, general=True), (direction, low, high)))

    def likeliest(self, course: Course, direction: Direction, interval: Interval, start: float, point: Point = "likelihood") -> float:
        """Return the point of ``interval`` at which the ideal ranking is likeliest."""
        search = self._along(course)
        as_published = point == "plackett-luce"
        return likeliest(lambda alpha: self._parts.ask(LikelihoodCurves(search, direction, alpha, as_published)), interval, start)

    def unit(self, course: Course, direction: Direction) -> float:
        """Return the alpha after which scores have moved by their own standard deviation, for intervals without an end."""
        question, documents = SpreadSums(self._along(course), direction), self.data.n_documents
        score_sum, slope_sum = self._parts.ask(question)
        squares = self._parts.ask(replace(question, means=(score_sum / documents, slope_sum / documents)))
        scores, slopes = (math.sqrt(total / documents) for total in squares)
        return scores / slopes if scores > 0 and slopes > 0 else 1.0

    def _along(self, course: Course, general: bool = False) -> Search:
        return replace(self._search, course=course, general=general, scale=self._scale(general))

    def _scale(self, general: bool) -> Scale | None:
        """Return the scale of all parts together; None if there is only one part."""
        if general not in self._scales:
            if general not in self._counted:
                self._counted[general] = self._parts.ask(CountedQueries(replace(self._search, general=general)))
            counted = self._counted[general]
            self._scales[general] = Scale.of(self._search.name, counted, self.measure.weights) if counted else None
        return self._scales[general]
