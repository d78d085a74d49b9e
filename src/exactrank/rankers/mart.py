"""MART: gradient boosted regression trees on the grades (Friedman 2001).

Every tree is fitted by least squares to the residuals of the ones before; the measure is reported and, on validation
data, says how many trees to keep.
"""

from exactrank._support.settings import setting
from exactrank.learning.objectives.losses import SquaredError
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import Measure
from exactrank.rankers.boosted import BoostedRanker


class MART(BoostedRanker):
    """Regression trees on the grades (Friedman 2001).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> MART(measure="RR", min_documents=1, trees=5).fit(data).score(data)
    1.0
    """

    name = "mart"

    within: bool = setting(
        default=False,
        help="Fit the grades up to a constant per query, which does not affect the ranking (like CatBoost's QueryRMSE).",
        search=(False, True),
    )

    def _objective(self, measure: Measure) -> Objective:
        return SquaredError(self.within)
