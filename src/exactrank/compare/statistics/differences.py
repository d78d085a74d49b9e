"""Differences of two rankers, one a query: those that count, and their signed ranks.

    R_q = sign(d_q) * rank of |d_q| among the differences that are not 0                  (Wilcoxon 1945)  (1)

Equal sizes share the mean of their ranks. Sizes are equal if they differ by less than about 1e-12 of the largest: 0.3 - 0.2 and
0.2 - 0.1 are the same difference, which rounding keeps apart.
"""

import numpy as np
from scipy.stats import rankdata

from exactrank.arrays import PerQuery
from exactrank.errors import DataError

#: Decimals, in units of the largest difference, to which sizes are compared.
DECIMALS = 12


def counted(d: PerQuery) -> PerQuery:
    """``d`` without the queries that were skipped, which are NaN."""
    d = np.asarray(d, np.float64)
    if d.ndim != 1:
        raise DataError(f"differences have the shape {d.shape}; expected one number a query")
    if np.isinf(d).any():
        raise DataError(
            f"the difference of query {int(np.isinf(d).argmax())} (from 0) is infinite; expected finite values, or NaN to skip it"
        )
    return d[~np.isnan(d)]


def signed_ranks(d: PerQuery) -> PerQuery:
    """(1), of the differences that are not 0.

    >>> signed_ranks(np.array([0.3, -0.1, 0.0, 0.1]))
    array([ 3. , -1.5,  1.5])
    """
    d = d[d != 0]
    if not len(d):
        return d
    size = np.abs(d) / np.abs(d).max()
    ranks: PerQuery = np.sign(d) * rankdata(np.round(size, DECIMALS))
    return ranks
