"""ListMLE: the likelihood of the ideal ranking (Xia, Liu, Wang, Zhang & Li 2008).

The loss is that of `exactrank.learning.objectives.losses`; it is convex in the scores, so a linear model has one optimum.
"""

from exactrank._support.settings import setting
from exactrank.learning.objectives import losses
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import NO_CUTOFF, Measure
from exactrank.rankers.gradient import GradientRanker


class ListMLE(GradientRanker):
    """A linear model or a network by the likelihood of the ideal ranking (Xia et al. 2008).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> ListMLE(measure="RR").fit(data).score(data)
    1.0
    """

    name = "listmle"
    top: int | None = setting(
        default=None,
        help="Only this many top ranks of the ideal ranking count; by default all do.",
        at_least=1,
        below=NO_CUTOFF,
        search=(None, 5, 10, 30),
    )

    def _objective(self, measure: Measure) -> Objective:
        return losses.ListMLELoss(self.top, self.seed)
