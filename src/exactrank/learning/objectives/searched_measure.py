"""A measure over a dataset along lines of scores: the questions to its parts, and what their answers add up to.

The scores of a part's documents are computed where they lie, along a `Course` that any worker can follow. A part keeps what it needs for
the next question about the same search; a part that has lost it, or never had it, computes it anew, to the same bits. A part that is all
there is knows the best interval itself; several parts know their shares of it (`exactrank.learning.objectives.summed_steps`).
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Part, Weigh
from exactrank.learning.objectives.ideal_likelihood import Curves, IdealLikelihood, likeliest, summed
from exactrank.learning.objectives.line_search import ALL_EVENTS, LineSearch, check_pairs
from exactrank.learning.objectives.step_function import Interval, StepFunction
from exactrank.learning.objectives.summed_steps import Close, Jumps, Outline, Scale, Sought, Wanted, best_intervals, whole_function
from exactrank.learning.objectives.within_query import spread_by_block
from exactrank.measures.base import Measure
from exactrank.measures.bound import Adjust, BoundMeasure, DatasetMeasure, bound_on

Along = tuple[Any, float, float]  #: a direction, as a course takes it, and how far to look along it: low <= 0 and high >= 0
Facts = tuple[npt.NDArray[np.uint8], float]  #: which queries count, and what none exceeds
Slopes = npt.NDArray[Any]  #: how fast each score changes
#: Which point of an interval to take: its middle, or where `IdealLikelihood` is largest.
Point: TypeAlias = Literal["middle", "likelihood"]
#: How many searches a part keeps: two of a bag, one per constraint.
KEPT = 6
DirectionT = TypeVar("DirectionT")
DirectionT_contra = TypeVar("DirectionT_contra", contravariant=True)


class Course(Protocol[DirectionT_contra]):
    """How the documents of a part are scored along a line; picklable."""

    @property
    def key(self) -> Hashable:
        """What tells it from others that a part cannot reach it from."""

    def go(self, state: "LineState", threads: int) -> None:
        """Bring ``state`` to where the search stands."""

    def slopes(self, state: "LineState", direction: DirectionT_contra, threads: int) -> Slopes:
        """How fast each score changes along ``direction``."""


class LineState:
    """A measure on the queries of a part, at the scores where a search stands."""

    def __init__(self, part: Part, bound: BoundMeasure) -> None:
        self.part, self.bound = part, bound
        self.position: object = None  #: as the course has it
        self.scores: PerDocument = np.zeros(0)

    @cached_property
    def likelihood(self) -> IdealLikelihood:
        """Of the ideal ranking."""
        return IdealLikelihood(self.bound)

    def stand(self, position: object, scores: PerDocument, threads: int) -> None:
        """Take these scores for alpha = 0."""
        self.position, self.scores = position, scores

    def fetch(self, numbers: npt.NDArray[np.generic]) -> PerDocument:
        """Return scores or slopes as numbers in double precision of this process."""
        return np.ascontiguousarray(numbers, np.float64)


class WholeState(LineState):
    """The state of a part that is all there is."""

    def __init__(self, part: Part, bound: BoundMeasure) -> None:
        super().__init__(part, bound)
        self.search = part.kernel(LineSearch)(bound)
        self.value = math.nan

    def stand(self, position: object, scores: PerDocument, threads: int) -> None:
        """Take these scores for alpha = 0."""
        super().stand(position, scores, threads)
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

    def stand(self, position: object, scores: PerDocument, threads: int) -> None:
        """Take these scores for alpha = 0."""
        super().stand(position, scores, threads)
        self._outlines, self.value = {}, self.native.rank_part(scores, threads)

    def outlines(self, lines: Sequence[Along], slopes: Callable[[Any], Slopes], threads: int) -> list[_core.Outline]:
        """Return the outlines of the function along ``lines``; these are kept, and no others, since their events are asked for next."""
        keys = [(way.tobytes() if isinstance(way, np.ndarray) else way, low, high) for way, low, high in lines]
        before, self._outlines = self._outlines, {}
        for key, (direction, low, high) in zip(keys, lines, strict=True):
            if key in before:
                self._outlines[key] = before[key]
            else:
                self._outlines[key] = self.native.outline(self._as_taken(slopes(direction)), low, high, threads)
        return [self._outlines[key] for key in keys]

    def _as_taken(self, slopes: Slopes) -> npt.NDArray[Any]:
        return slopes if isinstance(self.native, _core.LineSearch) else np.ascontiguousarray(slopes, np.float64)


@dataclass(frozen=True, eq=False)
class Search:
    """What is searched: a measure along a course; for whole functions by the kernel that serves ``every`` measure."""

    measure: Measure
    name: str  #: of the measure
    adjust: Adjust | None
    weigh: Weigh | None
    threads: int
    every: bool = False
    scale: Scale | None = None  #: of all parts together; None for a part that is all there is
    course: Course[Any] | None = None

    def bound(self, part: Part) -> BoundMeasure:
        """Return the measure on the queries of ``part``, with their weights."""
        bound = bound_on(part, self.measure, self.adjust, self.threads)
        weights = bound.weights if self.weigh is None else self.weigh(part.first, part.data.weights)
        return replace(bound, weights=weights, threads=self.threads)

    def native(self, bound: BoundMeasure) -> _core.LineSearch | _core.StepSearch:
        """Return the kernel for one of several parts."""
        total, peak = (None, None) if self.scale is None else (self.scale.total, self.scale.peak)
        if self.every or not _core.LineSearch.serves(bound.native):
            check_pairs(bound)
            return _core.StepSearch(bound.native, total, peak)
        return _core.LineSearch(bound.native, events=ALL_EVENTS, total=total, peak=peak)

    def share(self, part: Part) -> ShareState:
        """Return the state of one of several parts, where the search stands."""
        key = self.name, self.adjust, self.weigh, self.every, self.scale, self._course.key
        state = part.recent("search", key, KEPT, lambda: ShareState(part, bound := self.bound(part), self.native(bound)))
        self._course.go(state, self.threads)
        return state

    def alone(self, part: Part) -> WholeState:
        """Return the state of a part that is all there is, where the search stands."""
        key = self.name, self.adjust, self.weigh, self._course.key
        state = part.recent("search", key, KEPT, lambda: WholeState(part, self.bound(part)))
        self._course.go(state, self.threads)
        return state

    def state(self, part: Part) -> LineState:
        """Return the state of any part."""
        return self.alone(part) if part.is_complete else self.share(part)

    def slopes(self, state: LineState, direction: object) -> Slopes:
        """How fast each score changes along ``direction``."""
        return self._course.slopes(state, direction, self.threads)

    @property
    def _course(self) -> Course[Any]:
        assert self.course is not None
        return self.course


@dataclass(frozen=True, eq=False)
class CountedQueries:
    """Which queries count, and what none exceeds, of each of several parts; a part that is all there is need not say."""

    search: Search

    def ask(self, part: Part) -> Facts | None:
        """Answer for ``part``."""
        if part.is_complete:
            return None
        native = self.search.native(self.search.bound(part))
        return native.counted(), native.peak()

    def combine(self, answers: Sequence[Facts | None]) -> list[Facts]:
        """Return the result for the dataset."""
        return [facts for facts in answers if facts is not None]


@dataclass(frozen=True, eq=False)
class ValueThere:
    """The value where the search stands, and the shares of each of several parts of the functions along ``lines``."""

    search: Search
    lines: tuple[Along, ...] = ()

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
    """The interval of each of ``lines`` where the measure is largest, which a part that is all there is knows."""

    search: Search
    lines: tuple[Along, ...]

    def ask(self, part: Part) -> list[Interval]:
        """Answer for ``part``."""
        state = self.search.alone(part)
        return [state.search.best(self.search.slopes(state, direction), low, high) for direction, low, high in self.lines]

    def combine(self, answers: Sequence[list[Interval]]) -> list[Interval]:
        """Return the result for the dataset."""
        return answers[0]


@dataclass(frozen=True, eq=False)
class EventsNear:
    """The events that are ``wanted`` of ``lines``, of each of several parts."""

    search: Search
    lines: tuple[Along, ...]
    wanted: tuple[Wanted, ...]

    def ask(self, part: Part) -> list[Close]:
        """Answer for ``part``."""
        search, state = self.search, self.search.share(part)
        outlines = state.outlines(self.lines, lambda direction: search.slopes(state, direction), search.threads)
        return [one.of(outlines[one.line], search.threads) for one in self.wanted]

    def combine(self, answers: Sequence[list[Close]]) -> Sequence[list[Close]]:
        """Return the result for the dataset."""
        return answers


@dataclass(frozen=True, eq=False)
class WholeFunction:
    """The function along a line, with all its breakpoints."""

    search: Search
    line: Along

    def ask(self, part: Part) -> StepFunction | Jumps:
        """Answer for ``part``."""
        search, (direction, low, high) = self.search, self.line
        if part.is_complete:
            alone = search.alone(part)
            return alone.search.profile(search.slopes(alone, direction), low, high)
        state = search.share(part)
        assert isinstance(state.native, _core.StepSearch)
        return state.native.jumps(np.ascontiguousarray(search.slopes(state, direction), np.float64), low, high, search.threads)

    def combine(self, answers: Sequence[StepFunction | Jumps]) -> StepFunction:
        """Return the result for the dataset."""
        if isinstance(answers[0], StepFunction):
            return answers[0]
        assert self.search.scale is not None
        return whole_function([jumps for jumps in answers if not isinstance(jumps, StepFunction)], self.search.scale)


@dataclass(frozen=True, eq=False)
class SpreadSums:
    """The sums of scores and slopes over wide blocks or, if their ``means`` are given, of the squares of what they differ from these."""

    search: Search
    direction: object
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
    direction: object
    alpha: float

    def ask(self, part: Part) -> Curves:
        """Answer for ``part``."""
        state = self.search.state(part)
        slopes = state.fetch(self.search.slopes(state, self.direction))
        return state.likelihood.curves(state.fetch(state.scores), slopes, self.alpha)

    def combine(self, answers: Sequence[Curves]) -> tuple[float, float]:
        """Return the result for the dataset."""
        return summed(list(answers))


class SearchedMeasure:
    """A measure over a dataset, which is asked about along lines."""

    def __init__(self, measure: DatasetMeasure) -> None:
        self.measure, self.data, self._parts = measure, measure.data, measure.parts.with_memo()
        self._search = Search(measure.measure, repr(measure.measure), measure.adjust, measure.weigh, thread_count(measure.threads))
        self._facts: dict[bool, list[Facts]] = {}
        self._scales: dict[bool, Scale | None] = {}

    def reweigh(self, weigh: Weigh | None) -> "SearchedMeasure":
        """Return the same measure of queries with other weights; which of them count, and what none exceeds, is known."""
        other = SearchedMeasure(replace(self.measure, weigh=weigh))
        other._facts = self._facts
        return other

    @property
    def has_shares(self) -> bool:
        """Do several parts know their shares of the functions?"""
        return self._scale(False) is not None

    def values(self, course: Course[Any], lines: Sequence[Along] = ()) -> tuple[float, list[list[Outline]]]:
        """Return the value where the course stands; and of each of ``lines`` what several parts know of it."""
        return self._parts.ask(ValueThere(self._along(course), tuple(lines)))

    def best(self, course: Course[Any], lines: Sequence[Along], outlines: Sequence[Sequence[Outline]] = ()) -> list[Interval]:
        """Return the interval of each of ``lines`` where the measure is largest, by what parts know of it, if they were asked before."""
        search, asked = self._along(course), tuple(lines)
        if search.scale is None:
            return self._parts.ask(BestIntervals(search, asked))
        shares = outlines or self.values(course, lines)[1]
        sought = [Sought(share, low, high) for (_, low, high), share in zip(lines, shares, strict=True)]
        return best_intervals(sought, lambda wanted: self._parts.ask(EventsNear(search, asked, tuple(wanted))), search.scale)

    def profile(self, course: Course[DirectionT], direction: DirectionT, low: float = -math.inf, high: float = math.inf) -> StepFunction:
        """Return the whole function along ``direction``, between ``low`` and ``high``."""
        return self._parts.ask(WholeFunction(self._along(course, every=True), (direction, low, high)))

    def likeliest(self, course: Course[DirectionT], direction: DirectionT, interval: Interval, start: float) -> float:
        """Return the point of ``interval`` where the ideal ranking is likeliest."""
        search = self._along(course)
        return likeliest(lambda alpha: self._parts.ask(LikelihoodCurves(search, direction, alpha)), interval, start)

    def unit(self, course: Course[DirectionT], direction: DirectionT) -> float:
        """How far to go where an interval has no end: until the scores have moved by their own deviation."""
        question, documents = SpreadSums(self._along(course), direction), self.data.n_documents
        of_scores, of_slopes = self._parts.ask(question)
        squares = self._parts.ask(replace(question, means=(of_scores / documents, of_slopes / documents)))
        scores, slopes = (math.sqrt(total / documents) for total in squares)
        return scores / slopes if scores > 0 and slopes > 0 else 1.0

    def _along(self, course: Course[Any], every: bool = False) -> Search:
        return replace(self._search, course=course, every=every, scale=self._scale(every))

    def _scale(self, every: bool) -> Scale | None:
        """Of all parts together; None if there is one part, which is all there is."""
        if every not in self._scales:
            if every not in self._facts:
                self._facts[every] = self._parts.ask(CountedQueries(replace(self._search, every=every)))
            facts = self._facts[every]
            self._scales[every] = Scale.of(self._search.name, facts, self.measure.weights) if facts else None
        return self._scales[every]
