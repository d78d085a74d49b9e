"""Exact line searches of a measure along the outputs of the tree that has just grown, wherever its documents lie."""

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerQuery
from exactrank.data.blocks import wide_blocks
from exactrank.data.immutable import seal
from exactrank.data.ranking_data import RankingData
from exactrank.learning.objectives.bounded_gain import bounded_gain, for_selection
from exactrank.learning.objectives.line_search import LineSearch
from exactrank.learning.objectives.searched_measure import Direction, LineState, SearchedMeasure
from exactrank.learning.objectives.step_function import Interval
from exactrank.learning.training.judge import Task
from exactrank.learning.trees.forest import Forest
from exactrank.learning.trees.growth import Draws, PerLeaf
from exactrank.learning.trees.part import Outputs, TreeQuestion
from exactrank.measures.bound import BoundMeasure
from exactrank.measures.ties import worst_tie_order

Selection = slice | npt.NDArray[np.bool_]
#: The best step between two lengths along the outputs of the tree that has just grown; on the queries that it did not see, or on all.
Steps = Callable[[Forest, PerLeaf, bool, float, float], float]


def exact_steps(task: Task) -> Steps:
    """Return the line search of the measure by which ``task`` selects, on its data."""
    return LocalSteps(task) if task.data.is_local else DistantSteps(task)


class LocalSteps:
    """Steps on documents of this process."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def __call__(self, forest: Forest, outputs: PerLeaf, unseen: bool, low: float, high: float) -> float:
        search, documents = self._search(_search_weights(forest, unseen))
        slopes = Outputs(outputs, forest.part.leaf)[documents]
        origin = low if math.isfinite(low) else 0.0
        begin = origin * slopes
        begin += forest.part.scores[documents]
        search.start(begin)
        return origin + search.best(slopes, low - origin, high - origin).middle()

    def _search(self, weights: PerQuery) -> tuple[LineSearch, Selection]:
        """Return a search in which queries have these ``weights``, and the documents that it is about."""
        bound = replace(self._bound, weights=weights)
        if weights.all() or not _core.LineSearch.serves(bound.native):
            return LineSearch(bound), slice(None)
        documents = np.repeat(weights > 0, bound.data.sizes)
        return LineSearch(
            _on_some(bound, weights > 0, documents), self._peak
        ), documents  # in memory for the documents of these queries alone

    @cached_property
    def _bound(self) -> BoundMeasure:
        return bounded_gain(worst_tie_order(self._task.measure).on(self._task.data.gather(), threads=self._task.threads))

    @cached_property
    def _peak(self) -> float:
        return max(LineSearch(part).peak for part in _by_block(self._bound))


class DistantSteps:
    """Steps on documents that lie elsewhere."""

    def __init__(self, task: Task) -> None:
        self._search = SearchedMeasure(for_selection(worst_tie_order(task.measure).over(task.data, threads=task.threads)))

    def __call__(self, forest: Forest, outputs: PerLeaf, unseen: bool, low: float, high: float) -> float:
        weights = _search_weights(forest, unseen)
        is_all, origin = weights is forest.plan.weights, low if math.isfinite(low) else 0.0
        search = self._search.reweigh(None if is_all else Unseen(forest.plan.draws, forest.count, len(weights)))

        def best(question: TreeQuestion) -> Interval:
            return search.best(TreeCourse(question, origin), [(outputs, low - origin, high - origin)])[0]

        return origin + forest.search_tree(best).middle()


@dataclass(frozen=True)
class Unseen:
    """The weights of queries that a tree did not see, and 0 for all others."""

    draws: Draws
    number: int  #: of the tree
    queries: int

    def __call__(self, first: int, weights: PerQuery) -> PerQuery:
        return np.where(self.draws.draw_queries(self.number, self.queries)[first : first + len(weights)], 0.0, weights)


@dataclass(frozen=True, eq=False)
class TreeCourse:
    """Scores along the outputs of a tree that has just grown, from ``origin`` times its outputs on."""

    question: TreeQuestion  #: that settles the tree in its part
    origin: float

    @property
    def key(self) -> Hashable:
        return self.question.forest

    def follow(self, state: LineState, threads: int) -> None:
        where = self.question.count, self.origin
        if state.position != where:
            outputs = self.slopes(state, self.question.outputs, threads)
            state.start(where, self.origin * outputs + self.question.settle(state.part).scores, threads)

    def slopes(self, state: LineState, direction: Direction, threads: int) -> npt.NDArray[np.float64]:
        return Outputs(np.asarray(direction, np.float64), self.question.settle(state.part).leaf)[:]


def _search_weights(forest: Forest, unseen: bool) -> PerQuery:
    """Return the weights of the queries on which the step of the next tree is searched."""
    weights = forest.plan.weights
    unseen_weights = Unseen(forest.plan.draws, forest.count, len(weights))(0, weights) if unseen else weights
    return unseen_weights if unseen_weights.any() else weights


def _on_some(bound: BoundMeasure, queries: Selection, documents: Selection) -> BoundMeasure:
    """Return the measure on some ``queries`` and their ``documents``, without features."""
    grades, ends = seal(bound.grades[documents]), np.concatenate([[0], np.cumsum(bound.data.sizes[queries])])
    tie_key = grades if bound.tie_key is bound.grades else None if bound.tie_key is None else bound.tie_key[documents]
    data = RankingData(seal(np.empty((len(grades), 0), np.float32)), grades, seal(ends), np.arange(len(ends) - 1), ())
    return replace(bound, data=data, weights=bound.weights[queries], grades=grades, tie_key=tie_key)


def _by_block(bound: BoundMeasure) -> Iterator[BoundMeasure]:
    """Yield the measure on some of the queries at a time."""
    indptr = bound.data.indptr
    for first, last in pairwise(wide_blocks(indptr)):
        yield _on_some(bound, slice(first, last), slice(indptr[first], indptr[last]))
