"""ApproxNDCG: NDCG with ranks counted softly (Qin, Liu & Li 2010).

The objective is that of `exactrank.objectives.approx_ndcg`. It is not concave: a linear model starts from ridge regression.
"""

from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import Measure
from exactrank.measures.dcg import NDCG
from exactrank.objectives import approx_ndcg
from exactrank.objectives.score_space import Objective
from exactrank.optimizers.base import Theta
from exactrank.rankers.gradient import GradientRanker, Method, regression_start
from exactrank.scorers.architecture import Architecture
from exactrank.scorers.missing import Missing


class ApproxNDCG(GradientRanker):
    """A linear model or a network by NDCG with soft ranks (Qin, Liu & Li 2010).

    Args:
        alpha: How steeply one document counts as above another; the larger, the closer to NDCG and the harder to climb.

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> ApproxNDCG(measure="RR").fit(data).score(data)
    1.0
    """

    name = "approxndcg"

    def __init__(
        self,
        measure: str | Measure = "nDCG@10",
        hidden: int | None = None,
        alpha: float = 10.0,
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
        self.alpha = alpha

    def _objective(self, measure: Measure) -> Objective:
        ndcg = measure if isinstance(measure, NDCG) else NDCG()
        return approx_ndcg.ApproxNDCG(ndcg, self.alpha)

    def _start(self, data: RankingData, architecture: Architecture) -> Theta:
        return regression_start(data, architecture) if self.hidden is None else super()._start(data, architecture)
