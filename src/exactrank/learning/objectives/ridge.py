"""Ridge regression on the grades, centered within queries, with the features in units of their own deviation.

    minimize over v  sum_i w_i (y_i - z_i'v)^2 + ridge |v|^2,    z_ij = x_ij / S_j,    S_j^2 = sum_i w_i x_ij^2          (1)
    v = (Z'WZ + ridge I)^-1 Z'Wy  =  B'(BB' + ridge I)^-1 W^1/2 y,    B = W^1/2 Z                                      (2)

with x and y centered within queries and w_i the weight of document i times that of its query; the means of queries count documents by their
weights too. So a document of weight 2 is two documents. The weights of the features are v_j / S_j, so their units do not
matter. The two forms of (2) are systems with one equation per feature, or per document: the smaller is solved.

One eigendecomposition serves many strengths, also without some queries P, whose part is subtracted from the sums:

    v = sum_k a_k (a_k't) / (m_k + ridge),    (m_k, a_k) those of Z'WZ less Z_P'W_P Z_P,    t = Z'Wy less Z_P'W_P y_P    (3)

with S that of all queries. If features outnumber documents, BB' is decomposed without the rows and columns of P.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from exactrank._support.arrays import Floats
from exactrank._support.numerics import eigh, gram, matmul, solve
from exactrank.data.blocks import wide_blocks
from exactrank.data.dataset import Dataset, EachBlock, Part
from exactrank.data.folds import FoldNumbers
from exactrank.data.ranking_data import RankingData
from exactrank.data.scratch_arrays import empty_array
from exactrank.learning.objectives.within_query import center

QUERIES_AT_ONCE = 32  #: the number of queries that are centered at a time


def ridge_weights(data: Dataset, ridge: float = 1e-3) -> Floats:
    """Return the weights (1), one per feature; ``ridge`` is relative to each feature's variance."""
    if data.n_documents >= data.n_features:
        ((moments, target),) = _moments(data)
        unit = _unit(np.diag(moments))
        return solve(moments / unit / unit[:, None] + ridge * np.eye(len(unit)), target / unit) / unit
    B, y, unit = _rows(data)
    return matmul(solve(gram(B.T) + ridge * np.eye(len(B)), y), B) / unit


def ridge_paths(data: Dataset, ridges: Floats, folds: FoldNumbers | None = None) -> Iterator[Floats]:
    """Yield the weights (3), one row for each of ``ridges``: of all queries or, in turn, of all except those of each fold."""
    if data.n_documents < data.n_features:
        yield from _paths_by_documents(data, ridges, folds)
        return
    parts = _moments(data, folds)
    moments, target = (np.sum(sums, axis=0) for sums in zip(*parts, strict=True))
    unit = _unit(np.diag(moments))
    for fold_moments, fold_target in parts:
        rest, rest_target = (moments, target) if folds is None else (moments - fold_moments, target - fold_target)
        yield _path(rest / unit / unit[:, None], rest_target / unit, ridges) / unit


def _paths_by_documents(data: Dataset, ridges: Floats, folds: FoldNumbers | None) -> Iterator[Floats]:
    """Yield the weights (3) by the second form of (2)."""
    B, y, unit = _rows(data)
    products = gram(B.T)
    dealt = np.repeat(np.zeros(data.n_queries, np.int64) - 1 if folds is None else folds.of(0, data.n_queries), data.sizes)
    for fold_number in range(1 if folds is None else folds.folds):
        rows = np.flatnonzero(dealt != fold_number)
        yield matmul(_path(products[np.ix_(rows, rows)], y[rows], ridges), B[rows]) / unit


def _path(moments: Floats, target: Floats, ridges: Floats) -> Floats:
    """Return (moments + ridge I)^-1 target, one row for each of ``ridges``."""
    size, axes = eigh(moments)
    return matmul(matmul(axes, target) / (np.maximum(size, 0.0) + ridges[:, None]), axes)


def _moments(data: Dataset, folds: FoldNumbers | None = None) -> list[tuple[Floats, Floats]]:
    """Return X'WX and X'Wy of all queries, or of those of each of ``folds``."""
    return data.ask(_Moments(data.n_features, folds))


@dataclass(frozen=True)
class _Moments:
    """The moments of all queries, or of those of each of ``folds``: sums over wide blocks, in their order."""

    features: int
    folds: FoldNumbers | None

    def ask(self, part: Part) -> Iterable[Iterable[tuple[Floats, Floats]]]:
        """Return the moments of each wide block: one after the other, or at once if they are sent."""
        blocks = _each_block(part, self.folds)
        return blocks if part.is_complete else [list(products) for products in blocks]

    def combine(self, answers: Sequence[Iterable[Iterable[tuple[Floats, Floats]]]]) -> list[tuple[Floats, Floats]]:
        """Return the sums."""
        d = self.features
        totals = [(np.zeros((d, d)), np.zeros(d)) for _ in range(1 if self.folds is None else self.folds.folds)]
        for block in (block for blocks in answers for block in blocks):
            for total, terms in zip(totals, block, strict=True):
                for array, term in zip(total, terms, strict=True):
                    np.add(array, term, out=array)
        return totals


def _each_block(part: Part, folds: FoldNumbers | None) -> Iterator[Iterable[tuple[Floats, Floats]]]:
    """Yield the moments of each block, one fold after the other: only those of one fold are in memory."""
    data, start = part.data, 0
    dealt = np.zeros(0, np.int64) if folds is None else np.repeat(folds.of(part.first, data.n_queries), data.sizes)
    for X, y in _blocks(data):
        scratch = empty_array(X.shape if folds else (0, 0), np.float64, data.X)
        rows = [None] if folds is None else [np.flatnonzero(dealt[start : start + len(y)] == fold) for fold in range(folds.folds)]
        yield (_products(X, y) if fold is None else _products(np.take(X, fold, 0, scratch[: len(fold)], "clip"), y[fold]) for fold in rows)
        start += len(y)


def _products(X: Floats, y: Floats) -> tuple[Floats, Floats]:
    return gram(X), matmul(y, X)


def _rows(data: Dataset) -> tuple[Floats, Floats, Floats]:
    """Return B of (2), the grades for its rows, and the features' units."""
    X, y = (np.concatenate(parts) for parts in zip(*data.ask(EachBlock(_rows_by_block)), strict=True))
    unit = _unit(np.sum(X**2, axis=0))
    return X / unit, y, unit


def _rows_by_block(part: Part) -> list[tuple[Floats, Floats]]:
    return [(X.copy(), y) for X, y in _blocks(part.data)]


def _unit(squares: Floats) -> Floats:
    """Return the features' units; infinity for a constant feature, which gets no weight."""
    return np.where(squares > 0, np.sqrt(squares), np.inf)


def _blocks(data: RankingData) -> Iterator[tuple[Floats, Floats]]:
    """Yield features and grades of wide blocks, centered and times the root of the weight, all in the same array."""
    blocks = wide_blocks(data.indptr)
    scratch = empty_array((int(np.diff(data.indptr[blocks]).max()), data.n_features), np.float64, data.X)
    for first, last in pairwise(blocks.tolist()):
        start, y = data.indptr[first], np.empty(data.indptr[last] - data.indptr[first])
        for a in range(first, last, QUERIES_AT_ONCE):
            b = min(a + QUERIES_AT_ONCE, last)
            rows, indptr = slice(data.indptr[a], data.indptr[b]), data.indptr[a : b + 1] - data.indptr[a]
            share = None if data.sample_weight is None else data.sample_weight[rows]
            root = np.sqrt(np.repeat(data.weights[a:b], data.sizes[a:b]) * (1.0 if share is None else share))
            place = slice(rows.start - start, rows.stop - start)
            np.multiply(center(data.X[rows], indptr, share), root[:, None], out=scratch[place])
            y[place] = center(data.y[rows], indptr, share) * root
        yield scratch[: len(y)], y
