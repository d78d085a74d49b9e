"""The exponential loss over pairs of documents of different grades, and thresholds that lower it (Freund, Iyer, Schapire & Singer 2003).

    loss(H) = sum_q w_q sum_{i, j: y_i < y_j} e^{H_i - H_j} / sum_q w_q (number of pairs of q)                  (1)

Pairs that the data has beside its grades (`exactrank.data.preferences`) are added to both sums, each times its weight.

H are scores and w the weights of queries. Each pair has a weight, what it adds to (1), as a share of all. The edge of a step

    h(x) = [x_f > t],    r = sum over pairs of weight_ij (h(x_j) - h(x_i)),    i the worse, j the better         (2)

says how much better than chance h orders pairs, -1 to 1. The edges of all thresholds of all features take one pass over the
documents, without looking at a pair of grades (``rank_boost.hpp``).
"""

from dataclasses import dataclass

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.scorers.architecture import Theta
from exactrank.scorers.thresholds import Thresholds
from exactrank.stored import storable
from exactrank.threads import thread_count

#: More thresholds than this are as good as one between every two values.
MOST_THRESHOLDS = 65_535


@storable
@dataclass(frozen=True)
class Edge:
    """The step with the largest |r| of (2), and the loss (1) before it is taken."""

    loss: float
    edge: float
    feature: int
    number: int  #: of the threshold among those of the feature; -1: no step has an edge
    threshold: float

    @property
    def place(self) -> tuple[float, float]:
        """What theta says of the step besides how far it goes."""
        return float(self.feature), self.threshold


class PairExponential:
    """(1) over ``data``, without missing values, and (2) for at most ``limit`` thresholds per feature; None: between any two values.

    About equally many documents lie between neighbouring thresholds. Theta has three numbers per step: feature, threshold, jump.
    """

    def __init__(self, data: RankingData, limit: int | None = None, threads: int | None = None) -> None:
        self._data = data
        self._threads = thread_count(threads)
        given = None if data.preferences is None else data.preferences.native(data.indptr)
        self._native = _core.RankBoost(data.X, data.y, data.indptr, data.weights, limit or 0, self._threads, given)

    def scores(self, theta: Theta) -> PerDocument:
        """The score of each document by the steps of ``theta``."""
        return Thresholds.merged(theta, self._data.n_features).score(self._data.X, self._threads)

    def best(self, scores: PerDocument) -> Edge:
        """(1), and the step with the largest edge."""
        loss, edge, feature, number = self._native.best(scores, self._threads)
        if np.isnan(loss) and not np.any(scores):
            raise DataError(
                "no query with documents of different grades has a weight above 0, nor one with pairs; give such a query a weight"
            )
        return Edge(loss, edge, feature, number, float(self._native.thresholds(feature)[number]) if number >= 0 else np.nan)

    def moved(self, scores: PerDocument, step: Edge, alpha: float) -> PerDocument:
        """The scores after a jump of ``alpha`` at the threshold of ``step``."""
        return self._native.moved(scores, step.feature, step.number, alpha)
