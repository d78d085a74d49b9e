"""SVM-MAP: the structured bound on average precision (Yue, Finley, Radlinski & Joachims 2007).

The ranker is `exactrank.rankers.structuredrank`'s; the joint features are sums over pairs of a relevant and an irrelevant
document. With ``measure="RR"`` it is SVM-MRR (Chakrabarti, Khanna, Sawant & Bhattacharyya 2008).
"""

from exactrank.measures.base import Measure
from exactrank.rankers.structuredrank import StructuredRanker


class SVMMAP(StructuredRanker):
    """A linear model by a large-margin bound on average precision (Yue, Finley, Radlinski & Joachims 2007).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> SVMMAP().fit(data).score(data)
    1.0
    """

    name = "svmmap"

    measure: str | Measure = "AP"
