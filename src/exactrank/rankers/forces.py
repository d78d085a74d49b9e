"""What a tree follows: the forces of an objective on the documents of the queries that were drawn for it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.blocks import wide_blocks
from exactrank.data.immutable import sealed
from exactrank.data.ranking_data import RankingData
from exactrank.measures.bound import BoundMeasure
from exactrank.objectives.bounded_gain import gentle
from exactrank.objectives.line_search import LineSearch
from exactrank.objectives.score_space import Objective, Sampled
from exactrank.objectives.step_function import Interval
from exactrank.rankers.forest import Bins, Outputs, Trees, narrowed
from exactrank.rankers.lightgbm_library import Forces
from exactrank.training.judge import Task, severe


class Search(Protocol):
    """An exact line search of a measure."""

    def start(self, scores: PerDocument) -> float:
        """Take the scores at alpha = 0."""

    def best(self, slopes: PerDocument, low: float, high: float) -> Interval:
        """The interval between ``low`` and ``high`` where the measure is largest."""


Some = slice | npt.NDArray[np.bool_]
#: The best step from scores along the outputs of a tree, between two lengths.
Steps = Callable[[PerDocument, Outputs, float, float], float]
Searches = Callable[[PerQuery], Steps]  #: by the weights of the queries
Weigher = Callable[[Trees, Outputs, PerQuery], float]  #: of a tree after others, by its outputs and the weights of the queries it saw


@dataclass(frozen=True)
class Draws:
    """All that is drawn at random for the trees of a forest: for each by its number, so that training that is resumed draws the same."""

    seed: int
    first: int  #: the number of the forest's first tree, among those of all forests
    query_fraction: float
    features: bool  #: does each tree get some of the features?
    thresholds: bool

    def place(self, number: int) -> int:
        """Where the tree of that number stands among those of all forests."""
        return self.first + number

    def seen(self, number: int, weights: PerQuery) -> PerQuery:
        """The ``weights`` of the queries that the tree is fitted to; 0 for others."""
        if self.query_fraction == 1:
            return weights
        drawn = np.random.default_rng([self.seed, self.place(number)]).random(len(weights))
        return np.where(drawn < self.query_fraction, weights, 0.0)

    def seeds(self, number: int) -> dict[str, int]:
        """LightGBM's, for the tree of that number."""
        rng = np.random.default_rng([self.seed, self.place(number), 1])
        drawn = {"feature_fraction_seed": self.features, "extra_seed": self.thresholds}
        return {name: int(rng.integers(2**31)) for name, is_drawn in drawn.items() if is_drawn}


def bound_by_tree(objective: Objective, data: RankingData) -> Callable[[int], _core.Objective]:
    """The objective for the tree of a number; whether it is drawn anew is asked once, since a protocol answers slowly."""
    if isinstance(objective, Sampled):
        return lambda place: objective.drawn(place).on(data)
    bound = objective.on(data)
    return lambda place: bound


def step_by(search: Search, some: Some, scores: PerDocument, output: Outputs, low: float, high: float) -> float:
    """The middle of the best interval of ``search``, on ``some`` documents, from ``scores`` along ``output``, in [``low``, ``high``]."""
    slopes = output[some]
    begin = low * slopes
    begin += scores[some]
    search.start(begin)
    return low + search.best(slopes, 0.0, high - low).middle()


def line_searches(task: Task) -> Searches:
    """Of the measure on the data of ``task``, as it selects; bound when the first is made."""
    bound = cache(lambda: gentle(severe(task.measure).on(task.data, threads=task.threads)))
    peak = cache(lambda: max(LineSearch(part).peak for part in _parts(bound())))

    def searches(weights: PerQuery) -> Steps:
        whole = replace(bound(), weights=weights)
        if weights.all() or not _core.LineSearch.serves(whole.native):
            return partial(step_by, LineSearch(whole), slice(None))
        some = np.repeat(weights > 0, whole.data.sizes)
        search = LineSearch(_on_some(whole, weights > 0, some), peak())  # in memory for the documents of these queries alone
        return partial(step_by, search, some)

    return searches


def _on_some(bound: BoundMeasure, chosen: Some, documents: Some) -> BoundMeasure:
    """The same on the queries that are ``chosen``, and their ``documents``, without features."""
    grades, ends = sealed(bound.grades[documents]), np.concatenate([[0], np.cumsum(bound.data.sizes[chosen])])
    tie_key = grades if bound.tie_key is bound.grades else None if bound.tie_key is None else bound.tie_key[documents]
    data = RankingData(sealed(np.empty((len(grades), 0), np.float32)), grades, sealed(ends), np.arange(len(ends) - 1), ())
    return replace(bound, data=data, weights=bound.weights[chosen], grades=grades, tie_key=tie_key)


def _parts(bound: BoundMeasure) -> Iterator[BoundMeasure]:
    """On some of the queries at a time."""
    indptr = bound.data.indptr
    for first, last in pairwise(wide_blocks(indptr)):
        yield _on_some(bound, slice(first, last), slice(indptr[first], indptr[last]))


def forces(bound: _core.Objective, scores: PerDocument, data: RankingData, seen: PerQuery, bins: Bins) -> tuple[Forces, Forces]:
    """Slope and curvature that a tree follows, of each document; rounded so that their sums are exact."""
    _, slope, curvature = _core.answers(bound, scores, data.indptr, seen, True, True, bins.threads, with_value=False)
    if bins.largest(curvature) == [0.0]:
        curvature = np.repeat(seen, data.sizes)
    if data.sample_weight is not None:
        slope *= data.sample_weight
        curvature *= data.sample_weight
    return narrowed(slope, curvature, bins.largest(slope, curvature), bins.documents)
