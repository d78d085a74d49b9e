"""ApproxNDCG: NDCG with ranks counted softly (Qin, Liu & Li 2010).

The objective is that of `exactrank.learning.objectives.losses`. It is not concave: a linear model starts from ridge regression.
"""

from typing import ClassVar

from exactrank._support.settings import Range, setting
from exactrank.learning.objectives import losses
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import Measure
from exactrank.measures.graded import NDCG
from exactrank.rankers.gradient import GradientRanker


class ApproxNDCG(GradientRanker):
    """A linear model or a network by NDCG with soft ranks (Qin, Liu & Li 2010).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> ApproxNDCG(measure="RR").fit(data).score(data)
    1.0
    """

    name = "approxndcg"
    rugged: ClassVar[bool] = True

    alpha: float = setting(
        default=10.0,
        help="Steepness of the soft ranks; the larger, the closer to NDCG and the harder to optimize.",
        above=0,
        search=Range(1.0, 100.0, log=True),
    )
    l2: float = 0.001

    def _objective(self, measure: Measure) -> Objective:
        ndcg = measure if isinstance(measure, NDCG) else NDCG()
        return losses.ApproxNDCGLoss(ndcg, self.alpha)
