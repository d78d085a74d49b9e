"""RankNet: pairs in the right order, by logistic regression on differences of scores (Burges et al. 2005).

    cost = sum over pairs with y_i > y_j of  log(1 + e^(s_j - s_i))                                             (1)

The slope is summed over a query's pairs in score space before it goes back through the scorer (V2 of Burges, Ragno & Le
2006, section 5), so the cost of a query is that of its documents and not of its pairs.
"""

from dataclasses import replace

from exactrank.learning.objectives.lambdas import Lambdas
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import Measure
from exactrank.rankers.gradient import GradientRanker


class RankNet(GradientRanker):
    """A linear model or a network by logistic regression on pairs (Burges et al. 2005).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> RankNet(measure="RR").fit(data).score(data)
    1.0
    """

    name = "ranknet"
    takes = replace(GradientRanker.takes, pairs=True)

    def _objective(self, measure: Measure) -> Objective:
        return Lambdas()
