"""Ridge regression of the grades on the features, within queries: the baseline that every ranker should beat.

The weights are those of `exactrank.objectives.ridge`, in closed form; the measure is only reported.
"""

from typing import ClassVar

import numpy as np

from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.linear_value import LinearValue
from exactrank.objectives.ridge import ridge_weights
from exactrank.optimizers.solved import Solved
from exactrank.rankers.base import Ranker
from exactrank.rankers.search_space import Range, Space
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import Missing
from exactrank.training import Listener, Trained, train


class Ridge(Ranker):
    """A linear model by ridge regression on the grades.

    Args:
        ridge: The penalty on a feature's weight, relative to the feature's variance.

    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> Ridge(measure="RR").fit(data).score(data)
    1.0
    """

    name = "ridge"
    space: ClassVar[Space] = {"ridge": Range(1e-6, 10.0, log=True)}

    def __init__(
        self,
        measure: str | Measure = "nDCG@10",
        ridge: float = 1e-3,
        seed: int = 0,
        threads: int | None = None,
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.ridge = ridge
        self.seed = seed
        self.threads = threads
        self.missing = missing

    def _fit(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        if not 0 < self.ridge < np.inf:
            raise DataError(f"ridge must be a number above 0, got {self.ridge}")
        measure = parse_measure(self.measure)
        theta = ridge_weights(data, self.ridge)
        chosen_by = None if valid is None else LinearValue(measure.on(valid, threads=self.threads)).value
        value, rng = LinearValue(measure.on(data, threads=self.threads)), np.random.default_rng(self.seed)
        trained = train(Solved(), value, theta, rng=rng, max_steps=0, valid=chosen_by, listener=listener)
        return self._scorer(data, theta), trained
