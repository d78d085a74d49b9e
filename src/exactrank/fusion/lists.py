"""The lists that systems retrieved, many at once: their extremes, means and ranks.

Lists lie one after the other in flat arrays. A query's list of one system is never empty here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Boundaries, PerDocument, PerQuery, Rows

TABLE_CELLS = 1 << 17
Single = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ScoreLists:
    """The scores of several lists, which begin at ``starts`` and have ``sizes`` documents."""

    scores: PerDocument
    starts: Rows
    sizes: Rows

    @cached_property
    def single(self) -> "ScoreLists":
        """The lists in single precision, in which most engines hold scores."""
        return ScoreLists(self.scores.astype(np.float32), self.starts, self.sizes)

    @cached_property
    def low(self) -> PerQuery:
        """The least score of each list."""
        return np.minimum.reduceat(self.scores, self.starts)

    @cached_property
    def high(self) -> PerQuery:
        """The largest score of each list."""
        return np.maximum.reduceat(self.scores, self.starts)

    def repeat(self, values: npt.ArrayLike) -> PerDocument:
        """Return each list's value once per document."""
        return np.repeat(values, self.sizes)

    def mean(self, values: PerDocument) -> PerQuery:
        """Return the mean of each list's ``values``."""
        return np.asarray(np.add.reduceat(values, self.starts) / self.sizes)

    def ranks(self) -> PerDocument:
        """Return ranks from 1; equal scores share the mean of their ranks."""
        return mean_ranks(self.single.scores, self.starts, self.sizes)  # the precision of the input, and half as much to sort

    def places(self) -> PerDocument:
        """Return ranks from 1; of equal scores the earlier row comes first."""
        return ordinal_ranks(self.single.scores, self.starts, self.sizes)


def side_by_side(starts: Rows, sizes: Rows) -> Iterator[tuple[Rows, Rows, npt.NDArray[np.bool_]]]:
    """Yield tables of all lists that are not empty, those of similar length together for little padding, the longest first.

    A table can be sorted row by row, which is several times faster than one sort of all lists. A table consists of the numbers of its
    lists, the row of each cell's document, and a mask of the cells that are not padding.
    """
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    while len(order):
        longest = int(sizes[order[-1]])
        number = max(1, TABLE_CELLS // longest)
        lists, order = order[-number:], order[:-number]
        column, size = np.arange(longest), sizes[lists, None]
        yield lists, starts[lists, None] + np.minimum(column, size - 1), column < size


def kth_largest(values: PerDocument, indptr: Boundaries, k: int) -> PerQuery:
    """Return each query's k-th largest value, -inf if it has fewer.

    >>> kth_largest(np.array([3.0, 1.0, 2.0, 5.0]), np.array([0, 3, 4]), 2).tolist()
    [2.0, -inf]
    """
    sizes = np.diff(indptr)
    largest = np.full(len(sizes), -np.inf)
    for lists, rows, is_real in side_by_side(indptr[:-1], np.where(sizes < k, 0, sizes)):
        place = rows.shape[1] - k
        largest[lists] = np.partition(np.where(is_real, values[rows], -np.inf), place, axis=1)[:, place]
    return largest


def mean_ranks(scores: PerDocument | npt.NDArray[np.float32], starts: Rows, sizes: Rows) -> PerDocument:
    """Return ranks from 1 within each list; equal scores share the mean of their ranks.

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


def ordinal_ranks(scores: PerDocument | Single, starts: Rows, sizes: Rows) -> PerDocument:
    """Return ranks from 1 within each list; of equal scores the earlier row comes first.

    >>> ordinal_ranks(np.array([0.5, 2.0, 0.5, 7.0]), np.array([0, 3]), np.array([3, 1])).tolist()
    [2.0, 1.0, 3.0, 1.0]
    """
    ranks = np.empty(len(scores))
    for _, at, real in side_by_side(starts, sizes):
        order = np.argsort(np.where(real, -scores[at], np.nan), axis=1, kind="stable")  # padding comes last
        ranks[np.take_along_axis(at, order, axis=1)[real]] = np.broadcast_to(np.arange(1.0, at.shape[1] + 1), at.shape)[real]
    return ranks
