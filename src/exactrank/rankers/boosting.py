"""Boosting as a problem: the next tree of a forest follows the slope of an objective of the scores.

    tree_t fits  slope(s) / curvature(s)  in each leaf (a Newton step),    s <- s + weight_t * tree_t            (1)

An objective without curvature counts as one of curvature 1. The weight of a document multiplies its slope and its curvature: its share in
the loss of squared errors, and the force on it where there are forces between documents.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.objectives.score_space import Objective, Sampled
from exactrank.rankers.forest import Bins, Tree, Trees

Weigher = Callable[[Trees, Tree, PerQuery], float]  #: what a tree weighs after others, by the weights of the queries that it saw


@dataclass(frozen=True)
class Draws:
    """What is drawn at random for each tree, by its number: so training that is resumed draws the same."""

    seed: int
    first: int  #: number of the first tree among those of all forests
    query_fraction: float
    seeds: tuple[str, ...]  #: LightGBM's names for those that it needs

    def place(self, number: int) -> int:
        """Of a tree among all."""
        return self.first + number

    def queries(self, number: int, weight: PerQuery) -> PerQuery:
        """``weight``, 0 for the queries that the tree of that number does not see."""
        if self.query_fraction == 1:
            return weight
        rng = np.random.default_rng([self.seed, self.place(number)])
        return np.where(rng.random(len(weight)) < self.query_fraction, weight, 0.0)

    def for_lightgbm(self, number: int) -> dict[str, int]:
        """The seeds of the tree of that number."""
        rng = np.random.default_rng([self.seed, self.place(number), 1])
        return {name: int(rng.integers(2**31)) for name in self.seeds}


@dataclass(frozen=True, eq=False)
class Boosting:
    """(1) on ``data``: what `exactrank.optimizers.growth` asks for the next tree."""

    barren: ClassVar[str] = (
        "no split is possible: the features are constant, or leaves would be too small; lower min_documents or min_curvature"
    )

    data: RankingData
    bins: Bins
    objective: Objective
    weigh: Weigher
    draws: Draws

    def grown(self, iterate: Trees) -> Trees:
        """``iterate`` with one tree more, or as it is where no split is possible."""
        trees = iterate.rooted(self.bins)
        seen = self.draws.queries(trees.count, self.data.weights)
        tree = trees.grow(*self._forces(trees, seen), self.draws.for_lightgbm(trees.count))
        return trees if tree is None else trees.plus(tree, self.weigh(trees, tree, seen))

    @cached_property
    def _bound(self) -> _core.Objective:
        return self.objective.on(self.data)

    def _forces(self, trees: Trees, seen: PerQuery) -> tuple[PerDocument, PerDocument]:
        """The slope and the curvature at the scores."""
        drawn = self.objective.drawn(self.draws.place(trees.count)) if isinstance(self.objective, Sampled) else None
        bound = self._bound if drawn is None else drawn.on(self.data)
        _, slope, curvature = _core.answers(bound, trees.kept[0], self.data.indptr, seen, True, True, self.bins.threads)
        if not curvature.any():
            curvature = np.repeat(seen, self.data.sizes)
        share = self.data.sample_weight
        return (slope, curvature) if share is None else (slope * share, curvature * share)
