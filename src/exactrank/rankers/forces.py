"""What a tree follows: the forces of an objective on the documents of the queries that were drawn for it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.rankers.forest import Bins, Trees

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


def forces(bound: _core.Objective, scores: PerDocument, data: RankingData, seen: PerQuery, bins: Bins) -> tuple[PerDocument, PerDocument]:
    """Slope and curvature that a tree follows, of each document."""
    _, slope, curvature = _core.answers(bound, scores, data.indptr, seen, True, True, bins.threads, with_value=False)
    if bins.largest(curvature) == [0.0]:
        curvature = np.repeat(seen, data.sizes)
    share = data.sample_weight
    return (slope, curvature) if share is None else (slope * share, curvature * share)
