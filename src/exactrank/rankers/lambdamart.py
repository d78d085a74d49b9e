"""LambdaMART: regression trees along the forces of any measure (Wu, Burges, Svore & Gao 2010; Burges 2010).

The forces and their curvatures are LambdaRank's (`exactrank.learning.objectives.lambdas`), those of a lambda function that a user writes,
or of any other objective of scores; each leaf takes a Newton step. LightGBM offers this for nDCG alone.
"""

from dataclasses import replace

from exactrank.rankers.boosted import BoostedRanker
from exactrank.rankers.lambda_function import LambdaFunction


class LambdaMART(LambdaFunction, BoostedRanker):
    """Regression trees along forces between documents, as strong as the measure's change (Burges 2010).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> LambdaMART(measure="RR", min_documents=1, trees=5).fit(data).score(data)
    1.0
    """

    name = "lambdamart"
    takes = replace(BoostedRanker.takes, pairs=True)

    near: float = 0.01
