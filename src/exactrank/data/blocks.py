"""Blocks of queries, and sums of features over them.

    a block ends with the query that brings it to 4,096 documents; four of them are a wide block                 (1)

Blocks are counted from the first query. Data that begins where a wide block begins has the same blocks as the whole that it was cut from,
so sums by blocks do not depend on the cut.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Boundaries, Floats, Matrix, PerDocument

DOCUMENTS_PER_BLOCK = 4096
BLOCKS_PER_WIDE = 4
ROWS_PER_BLOCK = 1 << 14  #: of matrices without queries
#: NumPy adds wide rows one after the other, so matrices of at least WIDE columns are summed in chunks of this size.
WIDE, CELLS_AT_ONCE = 64, 1 << 17

Moments = tuple[Floats, Floats]  #: mean and standard deviation of each feature


def wide_blocks(indptr: Boundaries) -> npt.NDArray[np.int64]:
    """Return the queries at which the wide blocks (1) begin, and the number of queries.

    >>> wide_blocks(np.arange(0, 100_001, 1000)).tolist()
    [0, 20, 40, 60, 80, 100]
    """
    ends, queries = [0], len(indptr) - 1
    while ends[-1] < queries:
        ends.append(min(int(np.searchsorted(indptr, indptr[ends[-1]] + DOCUMENTS_PER_BLOCK)), queries))
    return np.array([*ends[:-1:BLOCKS_PER_WIDE], queries])


def moments(X: Matrix) -> Moments:
    """Return the mean and the standard deviation of each column, 0 where single precision cannot distinguish it from a constant.

    >>> moments(np.array([[1.0, 5.0], [3.0, 5.0]], np.float32))
    (array([2., 5.]), array([1., 0.]))
    """
    ends = np.array([*range(0, len(X), ROWS_PER_BLOCK), len(X)])
    mean = np.sum(sums_by_block(X, None, ends), axis=0) / len(X)
    return moments_of(mean, np.sum(sums_by_block(X, None, ends, mean), axis=0) / len(X))


def moments_of(mean: Floats, variance: Floats) -> Moments:
    """Return the mean and the standard deviation, 0 where single precision cannot distinguish a column from a constant."""
    deviation = np.sqrt(variance)
    return np.asarray(mean), np.where(deviation <= 1e-7 * np.abs(mean), 0.0, deviation)


def sums_by_block(X: Matrix, share: PerDocument | None, ends: Boundaries, mean: Floats | None = None) -> list[Floats]:
    """Return the column sums of each block of rows, or of the squared differences from ``mean``; ``share`` weights the rows."""
    return [_column_sums(X, share, slice(first, last), mean) for first, last in pairwise(ends.tolist())]


def _column_sums(X: Matrix, share: PerDocument | None, rows: slice, mean: Floats | None) -> Floats:
    width = X.shape[1]
    step = rows.stop - rows.start if width < WIDE else max(1, CELLS_AT_ONCE // width)
    total: Floats = np.empty((0, width))
    for first in range(rows.start, rows.stop, step):
        chunk = slice(first, min(first + step, rows.stop))
        weight = 1.0 if share is None else share[chunk, np.newaxis]
        terms = np.asarray(weight * X[chunk] if mean is None else weight * (X[chunk] - mean) ** 2)
        total = (np.concatenate([total, terms]) if len(total) else terms).sum(axis=0, dtype=np.float64)[np.newaxis]
    return np.asarray(total[0])
