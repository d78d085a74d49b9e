"""RankCosine: the angle between a query's scores and its grades (Qin, Zhang, Tsai, Wang, Liu & Li 2008).

The loss is that of `exactrank.learning.objectives.losses`, or its variant that is consistent with NDCG (Ravikumar, Tewari & Yang
2011). It does not change when all scores of a query are scaled: opposite scores are where it is flat too, so a linear model
starts from ridge regression; a penalty on the size of its weights (``l2``) only shrinks them, while it does smooth a network.
"""

from typing import ClassVar

from exactrank._support.settings import setting
from exactrank.learning.objectives import losses
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import Measure
from exactrank.rankers.gradient import GradientRanker


class RankCosine(GradientRanker):
    """A linear model or a network by the cosine between scores and grades (Qin et al. 2008).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> RankCosine(measure="RR").fit(data).score(data)
    1.0
    """

    name = "rankcosine"
    rugged: ClassVar[bool] = True

    consistent: bool = setting(
        default=False,
        help="Use gains divided by the ideal DCG instead of grades: consistent with NDCG (Ravikumar, Tewari & Yang 2011).",
        search=(False, True),
    )
    l2: float = 0.001

    def _objective(self, measure: Measure) -> Objective:
        return losses.RankCosineLoss(self.consistent)
