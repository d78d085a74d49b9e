"""ListNet: cross entropy between the top-one probabilities of the scores and of the grades (Cao et al. 2007).

The loss is that of `exactrank.learning.objectives.losses`; it is convex in the scores, so a linear model has one optimum.
"""

from typing import Literal

from exactrank._support.settings import setting
from exactrank.learning.objectives import losses
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import Measure
from exactrank.rankers.gradient import GradientRanker


class ListNet(GradientRanker):
    """A linear model or a network by ListNet's cross entropy of top-one probabilities (Cao et al. 2007).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> ListNet(measure="RR").fit(data).score(data)
    1.0
    """

    name = "listnet"
    target: Literal["softmax", "gain"] = setting(
        default="softmax",
        help="Target probabilities: the softmax of the grades, as published, or proportional to the gain 2^grade - 1.",
        search=("softmax", "gain"),
    )
    l2: float = 0.001

    def _objective(self, measure: Measure) -> Objective:
        return losses.ListNetLoss(self.target)
