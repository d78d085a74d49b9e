"""Ridge regression on the grades, with every query's mean taken off.

w = (sum_q w_q Xq' Xq + ridge tr/d I)^-1  sum_q w_q Xq' yq,    Xq, yq centred, tr the trace of the first sum      (1)
"""

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.objectives.within_query import centred, spread_to_documents

#: About how many documents are centred at a time.
DOCUMENTS_PER_BLOCK = 1 << 14


def ridge_weights(data: RankingData, weight: PerQuery, ridge: float = 1e-3) -> npt.NDArray[np.float64]:
    """The weights (1); ``weight`` is one a query, ``ridge`` relative to the features' mean variance."""
    d = data.n_features
    moments, target = np.zeros((d, d)), np.zeros(d)
    edges = np.unique(np.searchsorted(data.indptr, np.arange(0, data.n_documents, DOCUMENTS_PER_BLOCK)))
    for first, last in zip(edges, [*edges[1:], data.n_queries], strict=True):
        rows, indptr = slice(data.indptr[first], data.indptr[last]), data.indptr[first : last + 1] - data.indptr[first]
        if first == last:
            continue
        X, y = centred(data.X[rows], indptr), centred(data.y[rows], indptr)
        weighted = X * spread_to_documents(weight[first:last], indptr)[:, None]
        moments += weighted.T @ X
        target += weighted.T @ y
    penalty = ridge * max(np.trace(moments) / d, np.finfo(float).tiny)
    return np.linalg.solve(moments + penalty * np.eye(d), target)
