"""Means and deviations of features, a block of rows at a time."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix, PerDocument

ROWS_PER_BLOCK = 1 << 14
Moments = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def moments(X: Matrix, weight: PerDocument | None = None) -> Moments:
    """The mean and the standard deviation of each column, 0 where single precision cannot tell a column from a constant one.

    A row may have a ``weight``: that of 2 counts as two rows.

    >>> moments(np.array([[1.0, 5.0], [3.0, 5.0]], np.float32))
    (array([2., 5.]), array([1., 0.]))
    >>> moments(np.array([[1.0, 5.0], [4.0, 5.0]], np.float32), np.array([2.0, 1.0]))
    (array([2., 5.]), array([1.41421356, 0.        ]))
    """
    starts = range(0, len(X), ROWS_PER_BLOCK)
    blocks = [X[start : start + ROWS_PER_BLOCK] for start in starts]
    shares = None if weight is None else [weight[start : start + ROWS_PER_BLOCK, np.newaxis] / weight.mean() for start in starts]
    mean = np.sum([block.sum(axis=0, dtype=np.float64) for block in _weighed(blocks, shares)], axis=0) / len(X)
    squares = _weighed(((block - mean) ** 2 for block in blocks), shares)
    spread = np.sqrt(np.sum([block.sum(axis=0) for block in squares], axis=0) / len(X))
    return np.asarray(mean), np.where(spread <= 1e-7 * np.abs(mean), 0.0, spread)


def _weighed(blocks: Iterable[npt.NDArray[Any]], shares: Sequence[npt.NDArray[np.float64]] | None) -> Iterable[npt.NDArray[Any]]:
    return blocks if shares is None else (share * block for share, block in zip(shares, blocks, strict=True))
