"""Ridge regression on the grades, with every query's mean taken off and the features in units of their own deviation.

    least over v of  sum_i w_i (y_i - z_i'v)^2 + ridge |v|^2,    z_ij = x_ij / S_j,    S_j^2 = sum_i w_i x_ij^2          (1)
    v = (Z'WZ + ridge I)^-1 Z'Wy  =  B'(BB' + ridge I)^-1 W^1/2 y,    B = W^1/2 Z                                      (2)

with x and y centred within queries and w_i the weight of document i times that of its query; the means of queries count documents by their
weights too. So a document of weight 2 is two documents. The weights of the features are v_j / S_j, so their units do not
matter. (2) has a system of as many equations as there are features, or as documents: the smaller is solved.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from exactrank.data.ranking_data import RankingData
from exactrank.objectives.within_query import centred

#: About how many documents are centred at a time.
DOCUMENTS_PER_BLOCK = 1 << 14
Floats = npt.NDArray[np.float64]


def ridge_weights(data: RankingData, ridge: float = 1e-3) -> Floats:
    """The weights (1), one for each feature; ``ridge`` is relative to each feature's variance."""
    blocks, d = _blocks(data), data.n_features
    if data.n_documents >= d:
        moments, target = np.zeros((d, d)), np.zeros(d)
        for X, y in blocks:
            moments += X.T @ X
            target += X.T @ y
        unit = np.sqrt(np.diag(moments))
        unit = np.where(unit > 0, unit, np.inf)  # a constant feature gets no weight
        return np.asarray(np.linalg.solve(moments / unit / unit[:, None] + ridge * np.eye(d), target / unit) / unit)
    X, y = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    unit = np.sqrt(np.sum(X**2, axis=0))
    unit = np.where(unit > 0, unit, np.inf)
    X /= unit
    return np.asarray(X.T @ np.linalg.solve(X @ X.T + ridge * np.eye(len(X)), y) / unit)


def _blocks(data: RankingData) -> Iterator[tuple[Floats, Floats]]:
    """Features and grades of some queries after the other, centred and times the root of the weight."""
    edges = np.unique(np.searchsorted(data.indptr, np.arange(0, data.n_documents, DOCUMENTS_PER_BLOCK)))
    for first, last in zip(edges, [*edges[1:], data.n_queries], strict=True):
        if first == last:
            continue
        rows, indptr = slice(data.indptr[first], data.indptr[last]), data.indptr[first : last + 1] - data.indptr[first]
        share = None if data.sample_weight is None else data.sample_weight[rows]
        root = np.sqrt(np.repeat(data.weights[first:last], data.sizes[first:last]) * (1.0 if share is None else share))
        yield centred(data.X[rows], indptr, share) * root[:, None], centred(data.y[rows], indptr, share) * root
