"""RankCosine: the angle between a query's scores and its grades (Qin, Zhang, Tsai, Wang, Liu & Li 2008).

The loss is that of `exactrank.objectives.rank_cosine`, or its variant that is consistent with NDCG (Ravikumar, Tewari & Yang
2011). It does not change when all scores of a query are scaled: opposite scores are where it is flat too, so a linear model
starts from ridge regression; a penalty on the size of its weights (``l2``) only shrinks them, while it does smooth a network.
"""

from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import Measure
from exactrank.objectives import rank_cosine
from exactrank.objectives.score_space import Objective
from exactrank.optimizers.base import Theta
from exactrank.rankers.gradient import GradientRanker, Method, regression_start
from exactrank.scorers.architecture import Architecture
from exactrank.scorers.missing import Missing


class RankCosine(GradientRanker):
    """A linear model or a network by the cosine between scores and grades (Qin et al. 2008).

    Args:
        consistent: Take gains over the ideal DCG in place of grades: consistent with NDCG (Ravikumar, Tewari & Yang 2011).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> RankCosine(measure="RR").fit(data).score(data)
    1.0
    """

    name = "rankcosine"

    def __init__(
        self,
        measure: str | Measure = "nDCG@10",
        hidden: int | None = None,
        consistent: bool = False,
        optimizer: Method = "auto",
        rate: float | None = None,
        epochs: int = 300,
        trial_epochs: int = 10,
        patience: int = 50,
        batch: int = 32,
        l2: float = 0.001,
        seed: int = 0,
        threads: int | None = None,
        missing: Missing = "error",
    ) -> None:
        super().__init__(measure, hidden, optimizer, rate, epochs, trial_epochs, patience, batch, l2, seed, threads, missing)
        self.consistent = consistent

    def _objective(self, measure: Measure) -> Objective:
        return rank_cosine.RankCosine(self.consistent)

    def _start(self, data: RankingData, architecture: Architecture) -> Theta:
        return regression_start(data, architecture) if self.hidden is None else super()._start(data, architecture)
