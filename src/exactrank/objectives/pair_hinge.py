"""The hinge loss of pairs: RankSVM (Herbrich, Graepel & Obermayer 2000; Joachims 2002).

A pair of documents of one query, i of a better grade than j, is to be told apart by a margin of 1:

    loss_q = 1/P_q sum_{i, j: y_i > y_j} h(1 - (s_i - s_j)),    h(z) = max(0, z) or max(0, z)^2                 (1)

The square comes without a factor of 1/2, as in Chapelle & Keerthi (2010) and Lee & Lin (2014). Both are convex. The plain hinge
has kinks: where a pair is at the margin to the bit it counts as told apart, which gives one of the possible slopes.

P_q is the number of the query's pairs, so that queries count alike, or the (weighted) mean number of pairs over all queries, so that
pairs do, as in the papers above: then the mean loss of all queries is the mean over all pairs. A query of one grade contributes nothing.

No list of pairs is made: the time is O(n log n) for n documents and the memory O(n), whatever the number of different grades.
"""

from dataclasses import dataclass
from typing import Literal

from exactrank import _core
from exactrank.data.ranking_data import RankingData
from exactrank.errors import SettingError

Loss = Literal["hinge", "squared-hinge"]
Normalise = Literal["query", "pairs"]


@dataclass(frozen=True)
class PairHinge:
    """(1) negated; ``normalise`` says what counts alike."""

    loss: Loss = "squared-hinge"
    normalise: Normalise = "query"

    def __post_init__(self) -> None:
        if self.loss not in ("hinge", "squared-hinge"):
            raise SettingError(f'loss={self.loss!r} is not one of "hinge", "squared-hinge"')
        if self.normalise not in ("query", "pairs"):
            raise SettingError(f'normalise={self.normalise!r} is not one of "query", "pairs"')

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""
        weight = data.weights / data.weights.mean()
        return _core.pair_hinge(data.y, data.indptr, weight, self.loss == "squared-hinge", self.normalise == "query")
