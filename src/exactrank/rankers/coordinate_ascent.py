"""Coordinate ascent of Metzler & Croft (2007), "Linear feature-based models for information retrieval", as RankLib made it known.

A linear model, whose weights are changed one at a time by trying steps of many sizes
(`exactrank.optimizers.step_search`) on the measure itself (`exactrank.objectives.linear_value`). The first start has equal
weights, the others random ones: of features in units of their standard deviation, so that it does not matter in which units they
come. Published is to take them as they are.
"""

from typing import ClassVar

import numpy as np

from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.linear_value import LinearValue
from exactrank.optimizers.base import Theta
from exactrank.optimizers.step_search import StepSearch
from exactrank.rankers.base import Ranker
from exactrank.rankers.restarts import best_of
from exactrank.rankers.search_space import Range, Space
from exactrank.scorers.architecture import LinearModel
from exactrank.scorers.base import Scorer
from exactrank.scorers.linear import Linear
from exactrank.scorers.missing import Missing, PerFeature
from exactrank.training import Listener, Trained, train


class CoordinateAscent(Ranker):
    """A linear model by step search on the measure, one weight at a time (Metzler & Croft 2007).

    Args:
        restarts: How often to start; the best model of all is kept.
        max_rounds: At most so many rounds over all weights from each start.
        step: The smallest step, as a share of the weight.
        growth: How much longer each step is than the one before.
        tries: How many steps to try in each direction.
        tolerance: Stop when a round gains less than this.
        standardise: Divide features by their standard deviation first; published is to take them as they are.

    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> ranker = CoordinateAscent(measure="RR").fit(data)
    >>> ranker.score(data)
    1.0
    """

    name = "coordinate-ascent"
    space: ClassVar[Space] = {"restarts": Range(2, 10), "step": Range(0.01, 0.2, log=True), "tolerance": Range(1e-4, 1e-2, log=True)}

    def __init__(
        self,
        measure: str | Measure = "nDCG@10",
        restarts: int = 5,
        max_rounds: int = 25,
        step: float = 0.05,
        growth: float = 2.0,
        tries: int = 25,
        tolerance: float = 0.001,
        standardise: bool = True,
        seed: int = 0,
        threads: int | None = None,
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.restarts = restarts
        self.max_rounds = max_rounds
        self.step = step
        self.growth = growth
        self.tries = tries
        self.tolerance = tolerance
        self.standardise = standardise
        self.seed = seed
        self.threads = threads
        self.missing = missing

    def _scorer(self, data: RankingData, theta: Theta) -> Scorer:
        return Linear(theta / self._scale(data), data.feature_names)

    def _scale(self, data: RankingData) -> PerFeature:
        return LinearModel(self.standardise).on(data).scale

    def _fit(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        for name in ("restarts", "max_rounds"):
            if getattr(self, name) < 1:
                raise DataError(f"{name} must be at least 1, got {getattr(self, name)}")
        measure = parse_measure(self.measure)
        search = StepSearch(self.step, self.growth, self.tries, self.tolerance)
        scale = self._scale(data)
        problem = LinearValue(measure.on(data, threads=self.threads), scale)
        chosen_by = None if valid is None else LinearValue(measure.on(valid, threads=self.threads), scale).value

        def run(start: int, listener: Listener) -> Trained:
            rng = np.random.default_rng([self.seed, start])
            theta = _start(start, data.n_features, rng)
            return train(search, problem, theta, rng=rng, max_steps=self.max_rounds * data.n_features, valid=chosen_by, listener=listener)

        trained = best_of(self.restarts, run, listener)
        return self._scorer(data, trained.theta), trained


def _start(start: int, features: int, rng: np.random.Generator) -> Theta:
    return np.ones(features) if start == 0 else rng.standard_normal(features)
