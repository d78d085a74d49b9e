"""AdaRank: single features, boosted on the measure (Xu & Li 2007).

Each round adds the feature that does best on the queries that the model so far does badly on; the model is linear
(`exactrank.optimizers.ada_rank`, `exactrank.objectives.query_performance`). As published a feature may be taken again at once, and
often the first one is, for ever (``rest=0``); by default it may be once all others were, which does better on every set that we tried.
Features are divided by their standard deviation, so that the alphas of (2) there weigh them alike.

In training ties count pessimistically unless the measure has ``ties='expected'``: a feature that is 0 almost everywhere must not look
good by a lucky order of the documents that it ties.
"""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.measured import Measured
from exactrank.objectives.query_performance import QueryPerformance
from exactrank.optimizers import ada_rank
from exactrank.optimizers.base import Theta
from exactrank.rankers.base import Ranker
from exactrank.rankers.search_space import Space
from exactrank.scorers.architecture import Architecture, LinearModel
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import Missing
from exactrank.training import Listener, Trained, train


class AdaRank(Ranker):
    """A linear model by boosting single features on the measure (Xu & Li 2007).

    Args:
        rounds: At most so many rounds, each of which takes a feature.
        rest: A feature that was taken may not be for so many rounds; 0 as published; by default until all others were.
        nonnegative: Allow no weight below 0, as published; else features are taken upside down where that ranks better.
        standardise: Divide features by their standard deviation first; published is to take them as they are.
        patience: Stop when the measure has not improved for so many rounds, on validation data where there is some.

    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> AdaRank(measure="RR").fit(data).score(data)
    1.0
    """

    name = "adarank"
    space: ClassVar[Space] = {"rest": (None, 0, 1, 5), "nonnegative": (False, True), "standardise": (False, True)}

    def __init__(
        self,
        measure: str | Measure = "nDCG@10",
        rounds: int = 500,
        rest: int | None = None,
        nonnegative: bool = False,
        standardise: bool = True,
        patience: int | None = 100,
        seed: int = 0,
        threads: int | None = None,
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.rounds = rounds
        self.rest = rest
        self.nonnegative = nonnegative
        self.standardise = standardise
        self.patience = patience
        self.seed = seed
        self.threads = threads
        self.missing = missing

    def _scorer(self, data: RankingData, theta: Theta) -> Scorer:
        return self._architecture(data).at(theta)

    def _fit(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        for name in ("rounds", "patience"):
            given = getattr(self, name)
            if given is not None and given < 1:
                raise DataError(f"{name} must be at least 1, got {given}")
        measure, architecture = parse_measure(self.measure), self._architecture(data)
        if measure.ties != "expected":
            measure = replace(measure, ties="pessimistic")
        trained = train(
            ada_rank.AdaRank(self.rest),
            QueryPerformance(Measured(measure.on(data, threads=self.threads), architecture), turned=not self.nonnegative),
            np.zeros(data.n_features),
            rng=np.random.default_rng(self.seed),
            max_steps=self.rounds,
            valid=None if valid is None else Measured(measure.on(valid, threads=self.threads), architecture).value,
            patience=self.patience,
            listener=listener,
        )
        return architecture.at(trained.theta), trained

    def _architecture(self, data: RankingData) -> Architecture:
        return LinearModel(self.standardise).on(data)
