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

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from exactrank.data.blocks import wide_blocks
from exactrank.data.folds import Dealt
from exactrank.data.ranking_data import RankingData
from exactrank.data.room import room_for
from exactrank.engine.engine import Part, fold
from exactrank.objectives.within_query import centred
from exactrank.threads import one_blas_thread

Floats = npt.NDArray[np.float64]
QUERIES_AT_ONCE = 32  #: are centred


def ridge_weights(data: RankingData, ridge: float = 1e-3) -> Floats:
    """The weights (1), one for each feature; ``ridge`` is relative to each feature's variance."""
    if data.n_documents >= data.n_features:
        ((moments, target),) = _moments(data)
        unit = _unit(np.diag(moments))
        return np.asarray(np.linalg.solve(moments / unit / unit[:, None] + ridge * np.eye(len(unit)), target / unit) / unit)
    X, y, unit = _rows(data)
    return np.asarray(X.T @ np.linalg.solve(X @ X.T + ridge * np.eye(len(X)), y) / unit)


def ridge_paths(data: RankingData, ridges: Floats, folds: Dealt | None = None) -> Iterator[Floats]:
    """The weights (3) at each of ``ridges``, one row each: of all queries or, in turn, of all but those of each of ``folds``."""
    axes = None if data.n_documents >= data.n_features else _axes(data)
    each = _moments(data, axes, folds)
    moments, target = (np.sum(sums, axis=0) for sums in zip(*each, strict=True))
    unit = _unit(np.diag(moments)) if axes is None else np.ones(len(moments))
    for less, off in each:
        seen, known = (moments, target) if folds is None else (moments - less, target - off)
        size, axis = np.linalg.eigh(seen / unit / unit[:, None])
        along = axis.T @ (known / unit) / (np.maximum(size, 0.0) + ridges[:, None])
        found = along @ axis.T / unit
        yield found if axes is None else found @ axes.T


def _moments(data: RankingData, axes: Floats | None = None, folds: Dealt | None = None) -> list[tuple[Floats, Floats]]:
    """X'WX and X'Wy, of the features or of their coordinates along ``axes``: of all queries, or of those of each of ``folds``."""
    d = data.n_features if axes is None else axes.shape[1]
    found = [(np.zeros((d, d)), np.zeros(d)) for _ in range(1 if folds is None else folds.folds)]
    for answer in fold(data, partial(_moments_by_block, axes=axes, folds=folds)):
        for block in answer:
            for sums, own in zip(found, block, strict=True):
                for total, some in zip(sums, own, strict=True):
                    np.add(total, some, out=total)
    return found


def _moments_by_block(part: Part, axes: Floats | None, folds: Dealt | None) -> Iterable[list[tuple[Floats, Floats]]]:
    """The moments of each wide block, all or by fold: one after the other, or at once where they have to travel."""
    found = _each_block(part, axes, folds)
    return found if part.whole else list(found)


def _each_block(part: Part, axes: Floats | None, folds: Dealt | None) -> Iterator[list[tuple[Floats, Floats]]]:
    data, start = part.data, 0
    dealt = np.zeros(0, np.int64) if folds is None else np.repeat(folds.of(part.first, data.n_queries), data.sizes)
    for X, y in _blocks(data):
        Z = X if axes is None else X @ axes
        kept = room_for(Z.shape if folds else (0, 0), np.float64, data.X)
        rows = [None] if folds is None else [np.flatnonzero(dealt[start : start + len(y)] == fold) for fold in range(folds.folds)]
        with one_blas_thread():  # which adds up in the order of one
            yield [_products(Z, y) if some is None else _products(np.take(Z, some, 0, kept[: len(some)], "clip"), y[some]) for some in rows]
        start += len(y)


def _products(Z: Floats, y: Floats) -> tuple[Floats, Floats]:
    return Z.T @ Z, Z.T @ y


def _axes(data: RankingData) -> Floats:
    """Directions, one column each, that span the documents: orthonormal ones of the features in their units, over those units."""
    X, _, unit = _rows(data)
    size, axis = np.linalg.eigh(X @ X.T)
    some = size > size[-1] * len(X) * np.finfo(np.float64).eps
    return np.asarray(X.T @ (axis[:, some] / np.sqrt(size[some])) / unit[:, None])


def _rows(data: RankingData) -> tuple[Floats, Floats, Floats]:
    """B of (2), the grades beside it, and the features' units."""
    X, y = (np.concatenate(parts) for parts in zip(*(block for answer in fold(data, _rows_by_block) for block in answer), strict=True))
    unit = _unit(np.sum(X**2, axis=0))
    return X / unit, y, unit


def _rows_by_block(part: Part) -> list[tuple[Floats, Floats]]:
    return [(X.copy(), y) for X, y in _blocks(part.data)]


def _unit(squares: Floats) -> Floats:
    """The features' units; a constant feature gets no weight."""
    return np.where(squares > 0, np.sqrt(squares), np.inf)


def _blocks(data: RankingData) -> Iterator[tuple[Floats, Floats]]:
    """Features and grades of some queries after the other, centred and times the root of the weight; all in the same room."""
    blocks = wide_blocks(data.indptr)
    kept = room_for((int(np.diff(data.indptr[blocks]).max()), data.n_features), np.float64, data.X)
    for first, last in pairwise(blocks.tolist()):
        start, y = data.indptr[first], np.empty(data.indptr[last] - data.indptr[first])
        for a in range(first, last, QUERIES_AT_ONCE):
            b = min(a + QUERIES_AT_ONCE, last)
            rows, indptr = slice(data.indptr[a], data.indptr[b]), data.indptr[a : b + 1] - data.indptr[a]
            share = None if data.sample_weight is None else data.sample_weight[rows]
            root = np.sqrt(np.repeat(data.weights[a:b], data.sizes[a:b]) * (1.0 if share is None else share))
            own = slice(rows.start - start, rows.stop - start)
            np.multiply(centred(data.X[rows], indptr, share), root[:, None], out=kept[own])
            y[own] = centred(data.y[rows], indptr, share) * root
        yield kept[: len(y)], y
