"""ListMLE: the likelihood of the ideal ranking (Xia, Liu, Wang, Zhang & Li 2008).

The loss is that of `exactrank.objectives.listmle`; it is convex in the scores, so a linear model has one best.
"""

from dataclasses import dataclass
from typing import ClassVar

from exactrank.measures.base import Measure
from exactrank.objectives import listmle
from exactrank.objectives.score_space import Objective
from exactrank.rankers.gradient import GradientRanker
from exactrank.rankers.search_space import Space


@dataclass(eq=False, repr=False)
class ListMLE(GradientRanker):
    """A linear model or a network by the likelihood of the ideal ranking (Xia et al. 2008).

    Args:
        top: Only the first so many ranks of the ideal ranking count; by default all do.

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> ListMLE(measure="RR").fit(data).score(data)
    1.0
    """

    name = "listmle"
    space: ClassVar[Space] = {**GradientRanker.space, "top": (None, 5, 10, 30)}

    top: int | None = None

    def _objective(self, measure: Measure) -> Objective:
        return listmle.ListMLE(self.top, self.seed)
