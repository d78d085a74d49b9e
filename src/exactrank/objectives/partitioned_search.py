"""A measure along lines of scores, for data in partitions: what is asked of each part, and what its answers add up to.

The scores of a part's documents are made where they lie, by a `Course` that any worker can follow. A part keeps what it needs for the next
question about the same search; who has lost it, or never had it, makes it anew, to the same bits.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.folds import drawn_counts
from exactrank.data.ranking_data import RankingData
from exactrank.engine.engine import Part, Partitioned
from exactrank.measures.bound import BoundMeasure
from exactrank.objectives.ideal_likelihood import Curves, IdealLikelihood, likeliest, summed
from exactrank.objectives.step_function import Interval, StepFunction
from exactrank.objectives.summed_steps import Close, Jumps, Outline, Scale, Sought, Wanted, best_intervals, whole_function
from exactrank.objectives.within_query import spread_by_block
from exactrank.threads import thread_count

#: Other weights of some queries, from the number of the first and their own weights; can be compared and pickled.
Weigh = Callable[[int, PerQuery], PerQuery]
Bind = Callable[[RankingData, int], BoundMeasure]  #: makes the measure on a part; picklable
What = Literal["facts", "value", "events", "jumps", "spreads", "curves"]
Along = tuple[Any, float, float]  #: a direction, as a course takes it, and how far to look along it: low <= 0 and high >= 0
#: How many searches a part keeps: two of a bag, one per constraint.
KEPT = 6
#: Events of any number are kept by a part.
ALL_EVENTS = 1 << 62


@dataclass(frozen=True)
class Drawn:
    """The weights of a bootstrap sample of ``queries``, or of those that it left out; each part makes them from the ``seed``."""

    seed: tuple[int, ...]
    queries: int
    left_out: bool = False

    def __call__(self, first: int, own: PerQuery) -> PerQuery:
        """Each query's own weight, as often as it was drawn."""
        drawn = drawn_counts(self.queries, np.random.default_rng(self.seed))[first : first + len(own)]
        return own * (drawn == 0 if self.left_out else drawn)


class Course(Protocol):
    """How the documents of a part are scored along a line; picklable."""

    @property
    def key(self) -> Hashable:
        """What tells it from others that a part cannot reach it from."""

    def go(self, state: "State", threads: int) -> None:
        """Bring ``state`` to where the search stands."""

    def slopes(self, state: "State", direction: Any, threads: int) -> npt.NDArray[Any]:  # noqa: ANN401 - what the course takes
        """How fast each score changes along ``direction``."""


class State:
    """A measure on the queries of a part, and its step functions from the scores of where the search stands."""

    def __init__(self, part: Part, bound: BoundMeasure, native: _core.LineSearch | _core.StepSearch) -> None:
        self.part, self.bound, self.native = part, bound, native
        self.stands: object = None  #: as the course has it
        self.scores: PerDocument = np.zeros(0)
        self.value = 0
        self._outlines: dict[object, _core.Outline] = {}

    @cached_property
    def likelihood(self) -> IdealLikelihood:
        """Of the ideal ranking."""
        return IdealLikelihood(self.bound)

    def stand(self, where: object, scores: PerDocument, threads: int) -> None:
        """Take these scores for alpha = 0."""
        self.stands, self.scores, self._outlines = where, scores, {}
        self.value = self.native.rank_part(scores, threads)

    def outlines(self, lines: Sequence[Along], slopes: Callable[[Any], npt.NDArray[Any]], threads: int) -> list[_core.Outline]:
        """Of the function along ``lines``; these are kept, and no others, since their events are asked for next."""
        keys = [(one.tobytes() if isinstance(one, np.ndarray) else one, low, high) for one, low, high in lines]
        before, self._outlines = self._outlines, {}
        for key, (direction, low, high) in zip(keys, lines, strict=True):
            if key in before:
                self._outlines[key] = before[key]
            else:
                self._outlines[key] = self.native.outline(self._taken(slopes(direction)), low, high, threads)
        return [self._outlines[key] for key in keys]

    def _taken(self, slopes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """As the search takes them."""
        return slopes if isinstance(self.native, _core.LineSearch) else np.ascontiguousarray(slopes, np.float64)


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of a part. A search of the ``whole`` function takes measures of any kind; else positional ones have a faster one."""

    bind: Bind
    name: str  #: of the measure, as it is bound
    threads: int
    weigh: Weigh | None = None
    whole: bool = False
    scale: Scale | None = None  #: of all parts together
    course: Course | None = None
    what: What = "facts"
    lines: tuple[Along, ...] = ()
    wanted: tuple[Wanted, ...] = ()
    means: tuple[float | None, float | None] = (None, None)
    alpha: float = 0.0

    def __call__(self, part: Part) -> object:
        if self.what == "facts":
            native = self._search(self._bound(part))
            return native.counted(), native.peak()
        assert self.course is not None
        key = self.name, self.weigh, self.whole, self.scale, self.course.key
        state: State = part.lately("search", key, KEPT, lambda: State(part, bound := self._bound(part), self._search(bound)))
        self.course.go(state, self.threads)
        return self._answer(state, self.course)

    def _bound(self, part: Part) -> BoundMeasure:
        bound = part.once(("bound", self.name), lambda: self.bind(part.data, self.threads))
        return bound if self.weigh is None else replace(bound, weights=self.weigh(part.first, part.data.weights))

    def _search(self, bound: BoundMeasure) -> _core.LineSearch | _core.StepSearch:
        total, peak = (None, None) if self.scale is None else (self.scale.total, self.scale.peak)
        if self.whole or not _core.LineSearch.serves(bound.native):
            return _core.StepSearch(bound.native, total, peak)
        return _core.LineSearch(bound.native, events=ALL_EVENTS, total=total, peak=peak)

    def _answer(self, state: State, course: Course) -> object:
        native, threads = state.native, self.threads

        def slopes(direction: Any) -> npt.NDArray[Any]:  # noqa: ANN401 - what the course takes
            return course.slopes(state, direction, threads)

        if self.what in ("value", "events"):
            outlines = state.outlines(self.lines, slopes, threads)
            if self.what == "events":
                return [one.of(outlines[one.line], threads) for one in self.wanted]
            return state.value, [Outline.of(outline) for outline in outlines]
        ((direction, low, high),) = self.lines
        along = slopes(direction)
        if self.what == "spreads":
            values = zip((state.scores, np.asarray(along)), self.means, strict=True)
            return [spread_by_block(each, state.bound.data.indptr, mean) for each, mean in values]
        doubles = np.ascontiguousarray(along, np.float64)
        if self.what == "curves":
            return state.likelihood.curves(state.scores, doubles, self.alpha)
        assert isinstance(native, _core.StepSearch)
        return native.jumps(doubles, low, high, threads)


class PartitionedSearch:
    """A measure on data in partitions: asks about it along lines, and adds the answers up."""

    def __init__(self, bound: BoundMeasure, data: Partitioned, question: Question) -> None:
        self.data, self.weights, self._question = data, bound.weights, question
        self._facts: dict[bool, list[Any]] = {}
        self._scales: dict[bool, Scale] = {}

    @classmethod
    def of(
        cls, bound: BoundMeasure, data: Partitioned, weigh: Weigh | None = None, bind: Bind | None = None, name: str = ""
    ) -> "PartitionedSearch":
        """Of the measure as it is bound, or as each part does it by ``bind``, which has a ``name``."""
        question = Question(bind or _OnPart(bound.measure), name or repr(bound.measure), thread_count(bound.threads), weigh)
        return cls(bound, data, question)

    def weighted(self, bound: BoundMeasure, weigh: Weigh | None) -> "PartitionedSearch":
        """The same measure of queries that weigh otherwise; which of them count, and what none exceeds, is known."""
        other = PartitionedSearch(bound, self.data, replace(self._question, weigh=weigh))
        other._facts = self._facts
        return other

    def ask(self, course: Course, what: What, *, whole: bool = False, **more: Any) -> list[Any]:  # noqa: ANN401
        """What each partition says."""
        return self.data.ask(replace(self._question, course=course, what=what, whole=whole, scale=self.scale(whole), **more))

    def values(self, course: Course, lines: Sequence[Along] = ()) -> tuple[float, list[list[Outline]]]:
        """The value where the course stands; and of each of ``lines`` what the parts know of it."""
        answers = self.ask(course, "value", lines=tuple(lines))
        outlines = [list(of_parts) for of_parts in zip(*(outlines for _, outlines in answers), strict=True)]
        return self.scale().value([value for value, _ in answers]), outlines

    def best(self, course: Course, lines: Sequence[Along], outlines: Sequence[Sequence[Outline]]) -> list[Interval]:
        """The interval of each of ``lines`` where the measure is largest, from what the parts know of it."""

        def ask(wanted: Sequence[Wanted]) -> list[list[Close]]:
            return self.ask(course, "events", lines=tuple(lines), wanted=tuple(wanted))

        sought = [Sought(own, low, high) for (_, low, high), own in zip(lines, outlines, strict=True)]
        return best_intervals(sought, ask, self.scale())

    def scale(self, whole: bool = False) -> Scale:
        """Of all parts together."""
        if whole not in self._scales:
            if whole not in self._facts:
                self._facts[whole] = self.data.ask(replace(self._question, whole=whole))
            self._scales[whole] = Scale.of(self._question.name, self._facts[whole], self.weights)
        return self._scales[whole]


@dataclass(frozen=True, eq=False)
class _OnPart:
    measure: Any  #: a Measure

    def __call__(self, data: RankingData, threads: int) -> BoundMeasure:
        bound: BoundMeasure = self.measure.on(data, threads=threads)
        return bound


@dataclass(frozen=True, eq=False)
class PartitionedLine:
    """A line on a ``course``, along a ``direction`` that it takes, between ``low`` and ``high``."""

    search: PartitionedSearch
    course: Course
    direction: Any
    low: float = -math.inf
    high: float = math.inf

    def ask(self, what: What, **more: Any) -> list[Any]:  # noqa: ANN401
        """What each partition says along it."""
        return self.search.ask(self.course, what, lines=(self.along,), **more)

    @property
    def along(self) -> Along:
        """Where it leads, and how far."""
        return self.direction, self.low, self.high

    def best(self) -> Interval:
        """The interval where the measure is largest."""
        _, outlines = self.search.values(self.course, [self.along])
        return self.search.best(self.course, [self.along], outlines)[0]

    def whole(self) -> StepFunction:
        """The whole function."""
        jumps: list[Jumps] = self.ask("jumps", whole=True)
        return whole_function(jumps, self.search.scale(True))

    def likeliest(self, interval: Interval, start: float) -> float:
        """Where in ``interval`` the ideal ranking is likeliest."""

        def slope_at(alpha: float) -> tuple[float, float]:
            found: list[Curves] = self.ask("curves", alpha=alpha)
            return summed(found)

        return likeliest(slope_at, interval, start)

    def spreads(self) -> tuple[float, float]:
        """How far the scores deviate, and how far their slopes do."""
        means = self._means_by_block((None, None))
        own, along = np.sqrt(self._means_by_block((float(means[0]), float(means[1]))))
        return float(own), float(along)

    def _means_by_block(self, means: tuple[float | None, float | None]) -> list[float]:
        answers = self.ask("spreads", means=means)
        return [np.sum([block for answer in answers for block in answer[i]]) / self.search.data.n_documents for i in range(2)]
