"""Ridge regression on the grades, centred within queries, with the features in units of their own deviation.

    least over v of  sum_i w_i (y_i - z_i'v)^2 + ridge |v|^2,    z_ij = x_ij / S_j,    S_j^2 = sum_i w_i x_ij^2          (1)
    v = (Z'WZ + ridge I)^-1 Z'Wy  =  B'(BB' + ridge I)^-1 W^1/2 y,    B = W^1/2 Z                                      (2)

with x and y centred within queries and w_i the weight of document i times that of its query; the means of queries count documents by their
weights too. So a document of weight 2 is two documents. The weights of the features are v_j / S_j, so their units do not
matter. (2) has a system of as many equations as there are features, or as documents: the smaller is solved.

Many strengths at once come from one eigendecomposition, also without some queries P, whose part is subtracted from the sums:

    v = sum_k a_k (a_k't) / (m_k + ridge),    (m_k, a_k) those of Z'WZ less Z_P'W_P Z_P,    t = Z'Wy less Z_P'W_P y_P    (3)

with S that of all queries. Where features outnumber documents, z is replaced by its coordinates in the space that the documents span,
which holds every solution.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from exactrank.data.blocks import wide_blocks
from exactrank.data.ranking_data import RankingData
from exactrank.engine.engine import Part, fold
from exactrank.objectives.within_query import centred

Floats = npt.NDArray[np.float64]


def ridge_weights(data: RankingData, ridge: float = 1e-3) -> Floats:
    """The weights (1), one for each feature; ``ridge`` is relative to each feature's variance."""
    if data.n_documents >= data.n_features:
        moments, target = _moments(data)
        unit = _unit(np.diag(moments))
        return np.asarray(np.linalg.solve(moments / unit / unit[:, None] + ridge * np.eye(len(unit)), target / unit) / unit)
    X, y, unit = _rows(data)
    return np.asarray(X.T @ np.linalg.solve(X @ X.T + ridge * np.eye(len(X)), y) / unit)


def ridge_paths(data: RankingData, ridges: Floats, fold: npt.NDArray[np.int64] | None = None) -> Iterator[Floats]:
    """The weights (3) at each of ``ridges``, one row each: of all queries or, in turn, of all but those of each ``fold``."""
    axes = None if data.n_documents >= data.n_features else _axes(data)
    parts = [data] if fold is None else (data.take_queries(fold == part) for part in range(fold.max() + 1))
    each = [_moments(part, axes) for part in parts]
    moments, target = (np.sum(sums, axis=0) for sums in zip(*each, strict=True))
    unit = _unit(np.diag(moments)) if axes is None else np.ones(len(moments))
    for less, off in each:
        seen, known = (moments, target) if fold is None else (moments - less, target - off)
        size, axis = np.linalg.eigh(seen / unit / unit[:, None])
        along = axis.T @ (known / unit) / (np.maximum(size, 0.0) + ridges[:, None])
        found = along @ axis.T / unit
        yield found if axes is None else found @ axes.T


def _moments(data: RankingData, axes: Floats | None = None) -> tuple[Floats, Floats]:
    """X'WX and X'Wy, of the features or of their coordinates along ``axes``."""
    d = data.n_features if axes is None else axes.shape[1]
    moments, target = np.zeros((d, d)), np.zeros(d)
    for answer in fold(data, partial(_moments_by_block, axes=axes)):
        for own, towards in answer:
            moments += own
            target += towards
    return moments, target


def _moments_by_block(part: Part, axes: Floats | None) -> list[tuple[Floats, Floats]]:
    rows = ((X if axes is None else X @ axes, y) for X, y in _blocks(part.data))
    return [(Z.T @ Z, Z.T @ y) for Z, y in rows]


def _axes(data: RankingData) -> Floats:
    """Directions, one column each, that span the documents: orthonormal ones of the features in their units, over those units."""
    X, _, unit = _rows(data)
    size, axis = np.linalg.eigh(X @ X.T)
    some = size > size[-1] * len(X) * np.finfo(np.float64).eps
    return np.asarray(X.T @ (axis[:, some] / np.sqrt(size[some])) / unit[:, None])


def _rows(data: RankingData) -> tuple[Floats, Floats, Floats]:
    """B of (2), the grades beside it, and the features' units."""
    X, y = (np.concatenate(parts) for parts in zip(*_blocks(data), strict=True))
    unit = _unit(np.sum(X**2, axis=0))
    return X / unit, y, unit


def _unit(squares: Floats) -> Floats:
    """The features' units; a constant feature gets no weight."""
    return np.where(squares > 0, np.sqrt(squares), np.inf)


def _blocks(data: RankingData) -> Iterator[tuple[Floats, Floats]]:
    """Features and grades of some queries after the other, centred and times the root of the weight."""
    for first, last in pairwise(wide_blocks(data.indptr).tolist()):
        rows, indptr = slice(data.indptr[first], data.indptr[last]), data.indptr[first : last + 1] - data.indptr[first]
        share = None if data.sample_weight is None else data.sample_weight[rows]
        root = np.sqrt(np.repeat(data.weights[first:last], data.sizes[first:last]) * (1.0 if share is None else share))
        X = centred(data.X[rows], indptr, share)
        X *= root[:, None]
        yield X, centred(data.y[rows], indptr, share) * root
