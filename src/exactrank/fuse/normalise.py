"""Scores of several systems made comparable, query by query.

With s the scores that one system gave the documents it retrieved for a query, n of them, and r their ranks (from 1, equal
scores sharing their mean rank):

    none              s                                                                                         (1)
    min-max           (s - min s) / (max s - min s),  1 where all are equal                                     (2)
    z-score           (s - mean s) / std s,           0 where all are equal                                     (3)
    rank              1 - (r - 1) / n                                                                           (4)
    reciprocal-rank   1 / (60 + r)                                          (Cormack, Clarke & Buettcher 2009)  (5)

A document that a system did not retrieve has no s. What stands in its place is said by ``absent``:

    worst   the lowest value that the system gave in that query: at best the document would have come last
    zero    0: nothing is added; with min-max the same as worst (but where all are equal), with z-score an average document
    drop    the document is not ranked at all: only documents that every system retrieved are

A document that no system retrieved is never ranked. A system that retrieved nothing for a query gives 0 to all its documents.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Boundaries, Matrix, PerDocument, PerQuery, Rows
from exactrank.data.precision import Offset

SystemScores = npt.NDArray[np.float64]  #: systems x documents
Retrieved = npt.NDArray[np.bool_]  #: one a document
RRF_K = 60
NORMALISATIONS = ("none", "min-max", "z-score", "rank", "reciprocal-rank")
ABSENT = ("worst", "zero", "drop")
ROOM = 1 << 17  #: cells of a table


def normalised(X: Matrix, indptr: Boundaries, how: str, absent: str, offset: Offset | None = None) -> tuple[SystemScores, Retrieved]:
    """The systems' comparable scores, and which documents are ranked; a column of ``X`` is a system, NaN not retrieved.

    Scores are ``X`` plus ``offset``, of which (2) to (5) do not depend.

    >>> X = np.array([[4, 1], [2, np.nan], [3, 5], [np.nan, np.nan]], np.float32)
    >>> values, ranked = normalised(X, np.array([0, 4]), "min-max", "worst")
    >>> values.tolist(), ranked.tolist()
    ([[1.0, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0]], [True, True, True, False])
    """
    columns = np.ascontiguousarray(X.T)
    present = ~np.isnan(columns)
    values = np.zeros(columns.shape)
    added = np.zeros(len(columns)) if offset is None or how != "none" else offset
    for scores, there, filled, constant in zip(columns, present, values, added, strict=True):
        sizes = np.add.reduceat(there, indptr[:-1], dtype=np.int64)
        queries = np.flatnonzero(sizes)  # that have something
        starts = (np.cumsum(sizes) - sizes)[queries]
        rows = np.arange(len(scores)) if there.all() else np.flatnonzero(there)
        found = _comparable(scores[rows].astype(np.float64), starts, sizes[queries], how)
        found = found + constant if constant else found
        if absent == "worst" and len(rows) < len(X):
            lowest = np.zeros(len(indptr) - 1)
            lowest[queries] = np.minimum.reduceat(found, starts)
            filled[:] = np.repeat(lowest, np.diff(indptr))
        filled[rows] = found
    return values, np.asarray(present.all(axis=0) if absent == "drop" else present.any(axis=0))


def _comparable(s: PerDocument, starts: Rows, sizes: Rows, how: str) -> PerDocument:
    """(1) to (5) of the lists that one system retrieved, none of which is empty."""
    if how == "none":
        return s
    if how in ("rank", "reciprocal-rank"):
        ranks = mean_ranks(s.astype(np.float32), starts, sizes)  # what was read, and half as much to sort
        return 1 - (ranks - 1) / np.repeat(sizes.astype(np.float64), sizes) if how == "rank" else 1 / (RRF_K + ranks)
    low, high = np.minimum.reduceat(s, starts), np.maximum.reduceat(s, starts)
    varied = high > low
    if how == "min-max":
        return np.asarray((s - np.repeat(np.where(varied, low, low - 1), sizes)) / np.repeat(np.where(varied, high - low, 1.0), sizes))
    centred = s - np.repeat(np.add.reduceat(s, starts) / sizes, sizes)
    spread = np.sqrt(np.add.reduceat(centred**2, starts) / sizes)
    return np.asarray(np.where(np.repeat(varied, sizes), centred, 0.0) / np.repeat(np.where(varied, spread, 1.0), sizes))


def side_by_side(starts: Rows, sizes: Rows) -> Iterator[tuple[Rows, Rows, npt.NDArray[np.bool_]]]:
    """All lists that are not empty in tables, those of like length together, so that little is padding; the longest first.

    A table can be sorted row by row, which is some times faster than one sort of all lists. Each comes as the numbers of its
    lists, the row of each cell's document, and which cells are not padding.
    """
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    while len(order):
        longest = int(sizes[order[-1]])
        many = max(1, ROOM // longest)
        some, order = order[-many:], order[:-many]
        column, size = np.arange(longest), sizes[some, None]
        yield some, starts[some, None] + np.minimum(column, size - 1), column < size


def kth_largest(values: PerDocument, indptr: Boundaries, k: int) -> PerQuery:
    """Each query's k-th largest value, -inf where it has fewer.

    >>> kth_largest(np.array([3.0, 1.0, 2.0, 5.0]), np.array([0, 3, 4]), 2).tolist()
    [2.0, -inf]
    """
    sizes = np.diff(indptr)
    found = np.full(len(sizes), -np.inf)
    for some, at, real in side_by_side(indptr[:-1], np.where(sizes < k, 0, sizes)):
        place = at.shape[1] - k
        found[some] = np.partition(np.where(real, values[at], -np.inf), place, axis=1)[:, place]
    return found


def mean_ranks(scores: PerDocument | npt.NDArray[np.float32], starts: Rows, sizes: Rows) -> PerDocument:
    """Ranks from 1 within each list; equal scores share the mean of theirs.

    >>> mean_ranks(np.array([0.5, 2.0, 0.5, 7.0]), np.array([0, 3]), np.array([3, 1])).tolist()
    [2.5, 1.0, 2.5, 1.0]
    """
    ranks = np.empty(len(scores))
    for _, at, real in side_by_side(starts, sizes):
        table = np.where(real, -scores[at], np.nan)  # NaN comes last and equals nothing
        width = table.shape[1]
        order = np.argsort(table, axis=1)
        order += np.arange(len(table))[:, None] * width
        ordered, ranked = table.ravel()[order], np.tile(np.arange(1.0, width + 1), (len(table), 1))
        new = np.ones(table.shape, bool)
        np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
        tied = ~new.all(axis=1)
        first = np.flatnonzero(new[tied])  # of each group of equals
        equal = np.diff(np.append(first, new[tied].size))
        ranked[tied] = np.repeat(first % width + (equal + 1) / 2, equal).reshape(-1, width)
        ranks[at.ravel()[order][real]] = ranked[real]  # padding is last there too
    return ranks
