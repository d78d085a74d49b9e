"""RankBoost: thresholds of single features, boosted on pairs (Freund, Iyer, Schapire & Singer 2003).

Each round adds the step [x_f > t] that orders the pairs of documents of different grades best, where pairs that are still in the
wrong order weigh most (`exactrank.objectives.pair_exponential`, `exactrank.optimizers.rank_boost`). The measure is reported, and
with validation data it chooses how many rounds to keep; without, all are kept, as published.

A model of few steps leaves many documents tied. With ``ties='input'`` the choice of the rounds ranks them in the order that their
content says (`exactrank.rankers.content_order`), which is a draw; with ``ties='pessimistic'`` no draw counts.
"""

from typing import ClassVar

import numpy as np

from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.pair_exponential import MOST_THRESHOLDS, PairExponential
from exactrank.objectives.threshold_value import ThresholdValue
from exactrank.optimizers import rank_boost
from exactrank.optimizers.base import Theta
from exactrank.rankers.base import Ranker
from exactrank.rankers.search_space import Range, Space
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import Missing
from exactrank.scorers.thresholds import Thresholds
from exactrank.training import Listener, Trained, train


class RankBoost(Ranker):
    """A sum of steps of single features by boosting on pairs (Freund, Iyer, Schapire & Singer 2003).

    Args:
        rounds: At most so many steps.
        thresholds: Where a feature may step: at so many places at most, with about as many documents between one and the next; 0: between
            any two of its values.
        patience: With validation data: stop when it has not improved for so many rounds; by default all are made.

    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> RankBoost(measure="RR").fit(data).score(data)
    1.0
    """

    name = "rankboost"
    space: ClassVar[Space] = {"rounds": Range(100, 1000, log=True), "thresholds": Range(8, 255, log=True)}

    def __init__(
        self,
        measure: str | Measure = "nDCG@10",
        rounds: int = 300,
        thresholds: int | None = 30,
        patience: int | None = None,
        seed: int = 0,
        threads: int | None = None,
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.rounds = rounds
        self.thresholds = thresholds
        self.patience = patience
        self.seed = seed
        self.threads = threads
        self.missing = missing

    def _scorer(self, data: RankingData, theta: Theta) -> Scorer:
        return Thresholds.merged(theta, data.n_features, data.feature_names)

    def _fit(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        self._check()
        measure = parse_measure(self.measure)
        trained = train(
            rank_boost.RankBoost(),
            PairExponential(data, self.thresholds, self.threads),
            np.empty(0),
            rng=np.random.default_rng(self.seed),
            max_steps=self.rounds,
            reported=ThresholdValue(measure.on(data, threads=self.threads)).value,
            valid=None if valid is None else ThresholdValue(measure.on(valid, threads=self.threads)).value,
            by_objective=True,
            patience=None if valid is None else self.patience,
            listener=listener,
        )
        return self._scorer(data, trained.theta), trained

    def _check(self) -> None:
        for name in ("rounds", "patience"):
            given = getattr(self, name)
            if given is not None and given < 1:
                raise DataError(f"{name} must be at least 1, got {given}")
        if self.thresholds is not None and not 0 <= self.thresholds <= MOST_THRESHOLDS:
            raise DataError(
                f"thresholds must be a number from 1 to {MOST_THRESHOLDS:,}, or 0 for one between any two values; got {self.thresholds}"
            )
