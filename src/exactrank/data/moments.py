"""Means and deviations of features, a block of rows at a time."""

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix

ROWS_PER_BLOCK = 1 << 14
Moments = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


def moments(X: Matrix) -> Moments:
    """The mean and the standard deviation of each column, 0 where single precision cannot tell a column from a constant one.

    >>> moments(np.array([[1.0, 5.0], [3.0, 5.0]], np.float32))
    (array([2., 5.]), array([1., 0.]))
    """
    blocks = [X[start : start + ROWS_PER_BLOCK] for start in range(0, len(X), ROWS_PER_BLOCK)]
    mean = np.sum([block.sum(axis=0, dtype=np.float64) for block in blocks], axis=0) / len(X)
    spread = np.sqrt(np.sum([((block - mean) ** 2).sum(axis=0) for block in blocks], axis=0) / len(X))
    return np.asarray(mean), np.where(spread <= 1e-7 * np.abs(mean), 0.0, spread)
