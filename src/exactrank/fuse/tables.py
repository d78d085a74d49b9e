"""Ragged lists side by side in tables, which are sorted row by row: some times faster than one sort of all lists.

Lists of like length share a table, so that little of it is padding.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Boundaries, PerDocument, PerQuery, Rows

ROOM = 1 << 17  #: cells of a table

#: Numbers of lists, the row of each cell's document, and which cells are not padding.
Table = tuple[Rows, Rows, npt.NDArray[np.bool_]]


def side_by_side(starts: Rows, sizes: Rows) -> Iterator[Table]:
    """All lists that are not empty, the longest first."""
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
        order = np.argsort(table, axis=1)
        order += np.arange(len(table))[:, None] * table.shape[1]
        ranks[at.ravel()[order][real]] = _shared(table.ravel()[order])[real]  # padding is last there too
    return ranks


def _shared(ordered: npt.NDArray[np.floating]) -> PerDocument:
    """Ranks along sorted rows; equal values share the mean of theirs."""
    ranks = np.tile(np.arange(1.0, ordered.shape[1] + 1), (len(ordered), 1))
    new = np.ones(ordered.shape, bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
    tied = ~new.all(axis=1)
    first = np.flatnonzero(new[tied])  # of each group of equals
    sizes = np.diff(np.append(first, new[tied].size))
    ranks[tied] = (np.repeat(first % ordered.shape[1] + (sizes + 1) / 2, sizes)).reshape(-1, ordered.shape[1])
    return ranks
