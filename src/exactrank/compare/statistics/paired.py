"""Could the mean difference of two rankers be chance? Two-sided p-values from the differences d_q of the same n queries.

    t            t = mean(d) / (sd(d) / sqrt(n)), against Student's distribution with n - 1 degrees    (Student 1908)  (1)
    Wilcoxon     W = sum_q R_q, the signed ranks of ``differences``, against W with signs at random   (Wilcoxon 1945)  (2)
    randomisation    p = P(|sum_q s_q d_q| >= |sum_q d_q|),   s_q = +-1 evenly                          (Fisher 1935)  (3)

If it made no difference which ranker answers a query, both signs of d_q would be equally likely: (3) asks no more than that, and its
statistic is the mean that is reported. Smucker, Allan & Carterette (2007) find that (1) and (3) agree on real runs and that (2) may not,
since it tests another statistic; they recommend (3).

All tests agree on the ends. Queries that were skipped (NaN) are left out. With fewer than 2 queries there is nothing to test: NaN. If all
differences are 0, p = 1.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from scipy import stats

from exactrank.arrays import PerQuery
from exactrank.compare.statistics.differences import counted, signed_ranks, spread
from exactrank.errors import DataError

#: Up to this many untied differences (2) is exact by its table.
TABLED = 50
#: All signs of this many differences are held at a time.
ENUMERATED = 16
#: Draws that share a generator. Part of the definition of (3): another number would draw other signs.
BLOCK = 1 << 14
#: Sums that differ by less than this part of sum |d_q| are equal but for rounding.
ROUNDING = 1e-12


def paired_t(d: PerQuery) -> float:
    """(1). NaN where all differences are the same but not 0: without spread there is no t."""
    d = counted(d)
    if len(d) < 2:
        return math.nan
    if not d.any():
        return 1.0
    if not spread(d):
        return math.nan
    return float(stats.ttest_1samp(d, 0.0).pvalue)


def wilcoxon(d: PerQuery) -> float:
    """(2). Differences of 0 are left out before ranking, as Wilcoxon did; equal sizes share a rank.

    Pratt (1959) would rank the zeros too and then drop their ranks. Leaving them out is the default of scipy and R and so what
    published tables have, and it treats a query on which the rankers agree as (3) does: it says nothing about which is better.

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
    return float(stats.wilcoxon(ranks, method="approx" if tied or len(ranks) > TABLED else "exact").pvalue)


def randomisation(d: PerQuery, *, seed: int = 0, draws: int = 100_000) -> float:
    """(3): over all signs where they are at most ``draws``, else (1 + hits) / (1 + draws) of signs drawn at random.

    Counting the signs that were observed as one of the draws keeps the test valid (Phipson & Smyth 2010), so p is never 0. Differences of
    0 are not flipped. The draws go by the size of the differences, so that neither the order of the queries nor exchanging the rankers
    changes p.
    """
    if draws < 1:
        raise DataError(f"randomisation(draws={draws}): expected at least 1")
    d = counted(d)
    if len(d) < 2:
        return math.nan
    size = np.sort(np.abs(d[d != 0]))
    least = abs(math.fsum(d)) - ROUNDING * math.fsum(size)
    if 2 ** len(size) <= draws:
        return _enumerated(size, least)
    return (1 + _hits(size, least, seed, draws)) / (1 + draws)


#: The tests by name.
TESTS: Mapping[str, Callable[[PerQuery], float]] = MappingProxyType({"wilcoxon": wilcoxon, "t": paired_t, "randomisation": randomisation})


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


def _hits(size: PerQuery, least: float, seed: int, draws: int) -> int:
    """How many of ``draws`` random signs have a sum of ``least`` or more to either side, a block at a time."""
    hits = 0
    for block, first in enumerate(range(0, draws, BLOCK)):
        sums = _random_sums(size, np.random.default_rng([seed, block]), min(BLOCK, draws - first))
        hits += int(np.count_nonzero(np.abs(sums) >= least))
    return hits


def _random_sums(size: PerQuery, rng: np.random.Generator, draws: int) -> PerQuery:
    """Sums of ``size`` with random signs: a random byte is the signs of eight differences, whose 256 sums are looked up."""
    sums = np.zeros(draws)
    for eight in np.pad(size, (0, -len(size) % 8)).reshape(-1, 8):
        sums += _all_sums(eight).take(np.frombuffer(rng.bytes(draws), np.uint8))
    return sums
