"""What a tree follows: the forces of an objective on the documents of the queries that were drawn for it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.objectives.bounded_gain import gentle
from exactrank.objectives.line_search import LineSearch
from exactrank.objectives.score_space import Objective, Sampled
from exactrank.objectives.step_function import Interval
from exactrank.rankers.forest import Bins, Trees, narrowed
from exactrank.rankers.lightgbm_library import Forces
from exactrank.training.judge import Task, severe


class Search(Protocol):
    """An exact line search of a measure."""

    def start(self, scores: PerDocument) -> float:
        """Take the scores at alpha = 0."""

    def best(self, slopes: PerDocument, low: float, high: float) -> Interval:
        """The interval between ``low`` and ``high`` where the measure is largest."""


Searches = Callable[[PerQuery], Search]  #: by the weights of the queries
Weigher = Callable[[Trees, PerDocument, PerQuery], float]  #: of a tree after others, by its outputs and the weights of the queries it saw


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


def line_searches(task: Task) -> Searches:
    """Of the measure on the data of ``task``, as it selects; bound when the first is made."""
    bound = cache(lambda: gentle(severe(task.measure).on(task.data, threads=task.threads)))
    return lambda weights: LineSearch(replace(bound(), weights=weights))


def forces(bound: _core.Objective, scores: PerDocument, data: RankingData, seen: PerQuery, bins: Bins) -> tuple[Forces, Forces]:
    """Slope and curvature that a tree follows, of each document; rounded so that their sums are exact."""
    _, slope, curvature = _core.answers(bound, scores, data.indptr, seen, True, True, bins.threads, with_value=False)
    if bins.largest(curvature) == [0.0]:
        curvature = np.repeat(seen, data.sizes)
    if data.sample_weight is not None:
        slope *= data.sample_weight
        curvature *= data.sample_weight
    largest = bins.largest(slope, curvature)
    narrow = narrowed(slope, largest[0], bins.documents)
    del slope  # before there is more
    return narrow, narrowed(curvature, largest[1], bins.documents)
