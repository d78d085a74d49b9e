"""Differences d_q of two rankers on the same n queries: how large they are, and whether their mean could be chance.

    R_q = sign(d_q) * rank of |d_q| among the differences that are not 0                                 (Wilcoxon 1945)  (1)
    d_z = mean(d) / sd(d)                        Cohen's d of paired differences                            (Cohen 1988)  (2)
    r = (R+ - R-) / (R+ + R-)                    matched-pairs rank-biserial correlation                    (Kerby 2014)  (3)

In (1) equal sizes share the mean of their ranks. Sizes are equal if they differ by less than about 1e-12 of the largest: 0.3 - 0.2 and
0.2 - 0.1 are the same difference, which rounding keeps apart. R+ and R- are the sums of the ranks above and below 0: r is 1 if every
difference is above 0, -1 if every one is below, and 0 if they balance. d_z = 0.2, 0.5 and 0.8 are often called small, medium and large.

A p-value does not say how large differences are. Those here are two-sided:

    t            t = mean(d) / (sd(d) / sqrt(n)), against Student's distribution with n - 1 degrees       (Student 1908)  (4)
    Wilcoxon     W = sum_q R_q, the signed ranks (1), against W with signs at random                     (Wilcoxon 1945)  (5)
    randomization    p = P(|sum_q s_q d_q| >= |sum_q d_q|),   s_q = +-1 evenly                             (Fisher 1935)  (6)

If it made no difference which ranker answers a query, both signs of d_q would be equally likely: (6) assumes no more than that, and its
statistic is the mean that is reported. Smucker, Allan & Carterette (2007) find that (4) and (6) agree on real runs and that (5) may not,
since it tests another statistic; they recommend (6).

All tests agree on the ends. Queries that were skipped (NaN) are left out. With fewer than 2 queries there is nothing to test: NaN. If all
differences are 0, p = 1.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from exactrank._support.arrays import PerQuery
from exactrank._support.distributions import two_sided_normal, two_sided_t
from exactrank.errors import DataError

#: Sizes are compared in units of the largest difference divided by this.
FINENESS = 1e12
#: Up to this many untied differences (5) is exact by its table.
TABLED = 50
#: All signs of this many differences are held at a time.
ENUMERATED = 16
#: Draws that share a generator. Part of the definition of (6): another number would draw other signs.
BLOCK = 1 << 14
#: Sums that differ by less than this part of sum |d_q| are equal except for rounding.
ROUNDING = 1e-12


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
    _, place, counts = np.unique(np.rint(size * FINENESS), return_inverse=True, return_counts=True)
    ranks: PerQuery = np.sign(d) * (np.cumsum(counts) - (counts - 1) / 2)[place]
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


def paired_t(d: PerQuery) -> float:
    """(4). NaN where all differences are the same but not 0: without spread there is no t."""
    d = counted(d)
    if len(d) < 2:
        return math.nan
    if not d.any():
        return 1.0
    deviation = spread(d)
    return two_sided_t(float(d.mean()) / (deviation / math.sqrt(len(d))), len(d) - 1) if deviation else math.nan


def wilcoxon(d: PerQuery) -> float:
    """(5). Differences of 0 are left out before ranking, as Wilcoxon did; equal sizes share a rank.

    Pratt (1959) would rank the zeros too and then drop their ranks. Leaving them out is the default of scipy and R and so what
    published tables have, and it treats a query on which the rankers agree as (6) does: it says nothing about which is better.

    Exact up to 50 differences that are all of different size, and with equal sizes up to 16; beyond that the normal distribution,
    with the variance of tied ranks and without a correction for continuity.
    """
    d = counted(d)
    if len(d) < 2:
        return math.nan
    ranks = signed_ranks(d)
    tied = len(np.unique(np.abs(ranks))) < len(ranks)
    if len(ranks) <= ENUMERATED and (tied or not len(ranks)):
        return _enumerated(np.abs(ranks), abs(float(ranks.sum())))
    total = abs(float(ranks.sum()))
    if tied or len(ranks) > TABLED:
        return two_sided_normal(total / math.sqrt(float(np.sum(ranks**2))))  # signs at random give W this variance
    return _tabled(len(ranks), int(total))


def randomization(d: PerQuery, *, seed: int = 0, draws: int = 100_000) -> float:
    """(6): over all signs where they are at most ``draws``, else (1 + hits) / (1 + draws) of signs drawn at random.

    Counting the signs that were observed as one of the draws keeps the test valid (Phipson & Smyth 2010), so p is never 0. Differences of
    0 are not flipped. The draws go by the size of the differences, so that neither the order of the queries nor swapping the rankers
    changes p.
    """
    if draws < 1:
        raise DataError(f"randomization(draws={draws}): expected at least 1")
    d = counted(d)
    if len(d) < 2:
        return math.nan
    size = np.sort(np.abs(d[d != 0]))
    least = abs(math.fsum(d)) - ROUNDING * math.fsum(size)
    if 2 ** len(size) <= draws:
        return _enumerated(size, least)
    hits = 0
    for block, first in enumerate(range(0, draws, BLOCK)):
        sums = _random_sums(size, np.random.default_rng([seed, block]), min(BLOCK, draws - first))
        hits += int(np.count_nonzero(np.abs(sums) >= least))
    return (1 + hits) / (1 + draws)


#: The tests by name.
TESTS: Mapping[str, Callable[[PerQuery], float]] = MappingProxyType({"wilcoxon": wilcoxon, "t": paired_t, "randomization": randomization})


def _tabled(n: int, total: int) -> float:
    """The share of all signs of the ranks 1 to ``n`` whose sum is ``total`` or more to either side."""
    ways = np.ones(1, np.int64)  # in which the ranks above 0 have each sum
    for rank in range(1, n + 1):
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    return min(1.0, 2 * int(ways[: (len(ways) - 1 - total) // 2 + 1].sum()) / (1 << n))


def _enumerated(size: PerQuery, least: float) -> float:
    """The share of all signs whose sum is ``least`` or more to either side."""
    held, rest = _all_sums(size[:ENUMERATED]), _all_sums(size[ENUMERATED:])
    hits = sum(int(np.count_nonzero(np.abs(held + other) >= least)) for other in rest)
    return hits / (len(held) * len(rest))


def _all_sums(size: PerQuery) -> PerQuery:
    """The sums of ``size`` with all signs."""
    sums = np.zeros(1)
    for each in size:
        sums = np.concatenate([sums - each, sums + each])
    return sums


def _random_sums(size: PerQuery, rng: np.random.Generator, draws: int) -> PerQuery:
    """Sums of ``size`` with random signs: a random byte is the signs of eight differences, whose 256 sums are looked up."""
    sums = np.zeros(draws)
    for eight in np.pad(size, (0, -len(size) % 8)).reshape(-1, 8):
        sums += _all_sums(eight).take(np.frombuffer(rng.bytes(draws), np.uint8))
    return sums
