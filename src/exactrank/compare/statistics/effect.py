"""How large a difference is, which no p-value says.

    d_z = mean(d) / sd(d)                        Cohen's d of paired differences              (Cohen 1988)  (1)
    r = (R+ - R-) / (R+ + R-)                    matched-pairs rank-biserial correlation      (Kerby 2014)  (2)

R+ and R- are the sums of the ranks of the differences above and below 0, as Wilcoxon's test has them. r is 1 if every difference is
above 0, -1 if every one is below, and 0 if they balance. d_z = 0.2, 0.5 and 0.8 are often called small, medium and large, after Cohen.
"""

import math

import numpy as np

from exactrank.arrays import PerQuery
from exactrank.compare.statistics.differences import counted, signed_ranks
from exactrank.compare.statistics.paired import spread


def cohens_d(d: PerQuery) -> float:
    """(1); 0 if all differences are 0, NaN if they are all the same otherwise, or fewer than 2."""
    d = counted(d)
    if len(d) < 2:
        return math.nan
    if not d.any():
        return 0.0
    deviation = spread(d)
    return float(d.mean()) / deviation if deviation else math.nan


def rank_biserial(d: PerQuery) -> float:
    """(2); 0 if all differences are 0, NaN without any.

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
