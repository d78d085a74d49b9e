"""Differences of two rankers, one per query: those that count, their signed ranks, and how large they are, which no p-value says.

    R_q = sign(d_q) * rank of |d_q| among the differences that are not 0                  (Wilcoxon 1945)  (1)
    d_z = mean(d) / sd(d)                        Cohen's d of paired differences              (Cohen 1988)  (2)
    r = (R+ - R-) / (R+ + R-)                    matched-pairs rank-biserial correlation      (Kerby 2014)  (3)

In (1) equal sizes share the mean of their ranks. Sizes are equal if they differ by less than about 1e-12 of the largest: 0.3 - 0.2 and
0.2 - 0.1 are the same difference, which rounding keeps apart. R+ and R- are the sums of the ranks above and below 0: r is 1 if every
difference is above 0, -1 if every one is below, and 0 if they balance. d_z = 0.2, 0.5 and 0.8 are often called small, medium and large.
"""

import math

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
        raise DataError(f"differences have the shape {d.shape}; expected one number per query")
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


def spread(d: PerQuery) -> float:
    """sd(d); 0 where it is no more than the rounding of the mean."""
    deviation = float(d.std(ddof=1))
    return deviation if deviation > 10 * np.finfo(np.float64).eps * abs(float(d.mean())) else 0.0


def cohens_d(d: PerQuery) -> float:
    """(2); 0 if all differences are 0, NaN if they are all the same otherwise, or fewer than 2."""
    d = counted(d)
    if len(d) < 2:
        return math.nan
    if not d.any():
        return 0.0
    deviation = spread(d)
    return float(d.mean()) / deviation if deviation else math.nan


def rank_biserial(d: PerQuery) -> float:
    """(3); 0 if all differences are 0, NaN without any.

    >>> rank_biserial(np.array([0.3, -0.1, 0.0, 0.2]))
    0.6666666666666666
    """
    d = counted(d)
    if not len(d):
        return math.nan
    ranks = signed_ranks(d)
    return float(ranks.sum() / np.abs(ranks).sum()) if len(ranks) else 0.0


def wins_ties_losses(d: PerQuery) -> tuple[int, int, int]:
    """How many differences are above 0, 0, and below."""
    d = counted(d)
    return int(np.count_nonzero(d > 0)), int(np.count_nonzero(d == 0)), int(np.count_nonzero(d < 0))
