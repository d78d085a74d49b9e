"""Squared error on the grades, for trees.

    value = -1/2 sum_i r_i^2,    r_i = y_i - mean - s_i,    mean that of all grades                              (1)
    r_i <- r_i - (mean of r over the query of i)                                                               (2)

A constant added to all scores changes no ranking; the mean of the grades is taken off so that scores may start at 0. Nor does a
constant added to the scores of one query: (2) leaves it free, so that no tree is spent on telling queries apart.

Both means count documents and queries by their weights. The weight of a document in (1) itself is given to it by who follows the slope
(`exactrank.rankers.boosting`), as for all objectives; so a document of weight 2 is two documents.
"""

from dataclasses import dataclass

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.objectives.within_query import document_weights, query_sums


@dataclass(frozen=True)
class SquaredError:
    """(1), or ``within`` queries (2); its curvature is 1."""

    within: bool = False

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""
        unweighted = data.sample_weight is None and data.query_weight is None
        mean = data.y.mean() if unweighted else np.average(data.y, weights=document_weights(data))
        return _core.squared_error(np.ascontiguousarray(data.y - mean), _parts(data) if self.within else None)


def _parts(data: RankingData) -> PerDocument:
    """Of each document how many such as it would weigh as much as its query."""
    share = np.ones(data.n_documents) if data.sample_weight is None else data.sample_weight
    whole = np.repeat(query_sums(share, data.indptr), data.sizes)
    return np.asarray(np.divide(whole, share, out=np.full(data.n_documents, np.inf), where=share > 0))
