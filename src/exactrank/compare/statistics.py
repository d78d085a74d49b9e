"""Statistics of comparisons: whether a difference of means could be chance, how large it is, and every method against every other.

**Two methods.** With d_q the differences of two rankers on the same n queries,

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

In all tests queries that were skipped (NaN) are left out. With fewer than 2 queries there is nothing to test: NaN. If all differences
are 0, p = 1.

**Several methods.** With a and b the values of two methods and w the weights of the queries,

    d_q = n w_q (a_q - b_q) / sum w,     whose mean is the difference of the weighted means                            (7)

Tests and effects use (7), so that they concern the difference that is reported; with equal weights it is a_q - b_q. A query counts
if both methods have a value and its weight is above 0. Values that differ only by rounding are equal. The bootstrap draws the same
queries for all pairs. P-values p_(1) <= ... <= p_(m) of one test are adjusted over all pairs, so that the probability of even one false
finding is at most the level (Holm 1979):

    adjusted_(i) = max over j <= i of min(1, (m - j + 1) p_(j))                                                        (8)

It is never larger than Bonferroni's m p, and like it assumes nothing about how the tests depend on each other.

**Clusters.** Queries of one user or session, or reformulations of one need, are not independent. With C clusters, tests and effects use one
observation for each, and the bootstrap draws clusters:

    d_c = C / n sum_{q in c} d_q,     whose mean is that of (7)                                                        (9)
"""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import partial
from string import ascii_lowercase
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerQuery
from exactrank._support.clusters import cluster_numbers, cluster_sums
from exactrank._support.distributions import two_sided_normal, two_sided_t
from exactrank.errors import DataError
from exactrank.measures.bootstrap import bootstrap_intervals

#: The test whose adjusted p-values decide the marks of tables.
MARKING_TEST = "randomization"
LEVEL = 0.05
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
#: Values of two methods that differ by less than this part of the larger are equal except for rounding.
SAME = 1e-12


def drop_missing(d: PerQuery) -> PerQuery:
    """Return ``d`` without the queries that were skipped, which are NaN."""
    d = np.asarray(d, np.float64)
    if d.ndim != 1:
        raise DataError(f"differences have the shape {d.shape}; expected one number per query")
    if np.isinf(d).any():
        raise DataError(
            f"the difference of query {int(np.isinf(d).argmax())} (from 0) is infinite; expected finite values, or NaN to skip it"
        )
    return d[~np.isnan(d)]


def observations(d: npt.ArrayLike, weight: PerQuery | None = None, clusters: Iterable[object] | None = None) -> PerQuery:
    """Return what tests are made of: (7) of the differences ``d`` per query that count, or (9) with ``clusters``."""
    differences = np.asarray(d, np.float64)
    drop_missing(differences)  # which checks them
    weights = checked_weights(weight, len(differences))
    counts = ~np.isnan(differences) & (weights > 0)
    shares = weights[counts]
    weighted = differences[counts] * (shares * (len(shares) / shares.sum())) if len(shares) else differences[counts]
    if clusters is None:
        return weighted
    number = cluster_numbers(clusters, len(differences))[counts]
    totals = cluster_sums(weighted, number)[np.unique(number)]
    return totals * (len(totals) / max(1, len(weighted)))


def checked_weights(weight: PerQuery | None, queries: int) -> PerQuery:
    """Return the weights of the queries, by default ones."""
    weights = np.ones(queries) if weight is None else np.asarray(weight, np.float64)
    if weights.shape != (queries,):
        raise DataError(f"weights have the shape {weights.shape}; expected one number for each of {queries} queries")
    wrong = ~((weights >= 0) & np.isfinite(weights))
    if wrong.any():
        raise DataError(f"the weight of query {int(wrong.argmax())} (from 0) is {weights[wrong][0]}; expected 0 or more")
    return weights


def signed_ranks(d: PerQuery) -> PerQuery:
    """Return (1) of the differences that are not 0.

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
    """Return sd(d), or 0 where it is no more than the rounding of the mean."""
    deviation = float(d.std(ddof=1))
    return deviation if deviation > 10 * np.finfo(np.float64).eps * abs(float(d.mean())) else 0.0


def cohens_d(d: PerQuery) -> float:
    """Return (2): 0 if all differences are 0; NaN if they are all equal otherwise, or fewer than 2."""
    d = drop_missing(d)
    if len(d) < 2:
        return math.nan
    if not d.any():
        return 0.0
    deviation = spread(d)
    return float(d.mean()) / deviation if deviation else math.nan


def rank_biserial(d: PerQuery) -> float:
    """Return (3): 0 if all differences are 0, NaN without any.

    >>> rank_biserial(np.array([0.3, -0.1, 0.0, 0.2]))
    0.6666666666666666
    """
    d = drop_missing(d)
    if not len(d):
        return math.nan
    ranks = signed_ranks(d)
    return float(ranks.sum() / np.abs(ranks).sum()) if len(ranks) else 0.0


def wins_ties_losses(d: PerQuery) -> tuple[int, int, int]:
    """Return the numbers of differences above 0, equal to 0, and below 0."""
    d = drop_missing(d)
    return int(np.count_nonzero(d > 0)), int(np.count_nonzero(d == 0)), int(np.count_nonzero(d < 0))


def paired_t(d: PerQuery) -> float:
    """Return the p-value of (4): NaN where all differences are equal but not 0, since without spread there is no t."""
    d = drop_missing(d)
    if len(d) < 2:
        return math.nan
    if not d.any():
        return 1.0
    deviation = spread(d)
    return two_sided_t(float(d.mean()) / (deviation / math.sqrt(len(d))), len(d) - 1) if deviation else math.nan


def wilcoxon(d: PerQuery) -> float:
    """Return the p-value of (5). Differences of 0 are left out before ranking, as Wilcoxon did; equal sizes share a rank.

    Pratt (1959) would rank the zeros too and then drop their ranks. Leaving them out is the default of scipy and R and so what
    published tables have, and it treats a query on which the rankers agree as (6) does: it says nothing about which is better.

    Exact up to 50 differences that are all of different size, and with equal sizes up to 16; beyond that the normal distribution,
    with the variance of tied ranks and without a correction for continuity.
    """
    d = drop_missing(d)
    if len(d) < 2:
        return math.nan
    ranks = signed_ranks(d)
    tied = len(np.unique(np.abs(ranks))) < len(ranks)
    if len(ranks) <= ENUMERATED and (tied or not len(ranks)):
        return _share_of_signs(np.abs(ranks), abs(float(ranks.sum())))
    total = abs(float(ranks.sum()))
    if tied or len(ranks) > TABLED:
        return two_sided_normal(total / math.sqrt(float(np.sum(ranks**2))))  # signs at random give W this variance
    ways = np.ones(1, np.int64)  # in which the ranks above 0 have each sum
    for rank in range(1, len(ranks) + 1):
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    return min(1.0, 2 * int(ways[: (len(ways) - 1 - int(total)) // 2 + 1].sum()) / (1 << len(ranks)))


def randomization(d: PerQuery, *, seed: int = 0, draws: int = 100_000) -> float:
    """Return the p-value of (6): over all signs if they are at most ``draws``, otherwise (1 + hits) / (1 + draws) of random signs.

    Counting the signs that were observed as one of the draws keeps the test valid (Phipson & Smyth 2010), so p is never 0. Differences of
    0 are not flipped. Signs are drawn for the differences by size, so neither the order of the queries nor swapping the rankers
    changes p.
    """
    if draws < 1:
        raise DataError(f"randomization(draws={draws}): expected at least 1")
    d = drop_missing(d)
    if len(d) < 2:
        return math.nan
    size = np.sort(np.abs(d[d != 0]))
    least = abs(math.fsum(d)) - ROUNDING * math.fsum(size)
    if 2 ** len(size) <= draws:
        return _share_of_signs(size, least)
    hits = 0
    for block, first in enumerate(range(0, draws, BLOCK)):
        sums = _random_sums(size, np.random.default_rng([seed, block]), min(BLOCK, draws - first))
        hits += int(np.count_nonzero(np.abs(sums) >= least))
    return (1 + hits) / (1 + draws)


#: The tests by name.
TESTS: Mapping[str, Callable[[PerQuery], float]] = MappingProxyType({"wilcoxon": wilcoxon, "t": paired_t, "randomization": randomization})


def _share_of_signs(size: PerQuery, least: float) -> float:
    """Return the share of all signs for which the sum of ``size`` is ``least`` or more to either side."""
    sums = _all_sums(size[:ENUMERATED])
    rest = _all_sums(size[ENUMERATED:])
    return sum(int(np.count_nonzero(np.abs(sums + offset) >= least)) for offset in rest) / (len(sums) * len(rest))


def _all_sums(size: PerQuery) -> PerQuery:
    sums = np.zeros(1)
    for value in size:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def _random_sums(size: PerQuery, rng: np.random.Generator, draws: int) -> PerQuery:
    """Return sums of ``size`` with random signs: a random byte is the signs of eight differences, whose 256 sums are looked up."""
    sums = np.zeros(draws)
    for eight in np.pad(size, (0, -len(size) % 8)).reshape(-1, 8):
        sums += _all_sums(eight).take(np.frombuffer(rng.bytes(draws), np.uint8))
    return sums


@dataclass(frozen=True)
class Pair:
    """The comparison of ``first`` with ``second`` by one measure; above 0 is better for ``first``."""

    first: str
    second: str
    queries: int  #: that count, also where clusters are compared
    difference: float  #: of the means
    interval: tuple[float, float]  #: bootstrap 95% interval of the difference
    p: Mapping[str, float]  #: by the name of the test
    adjusted: Mapping[str, float]  #: by Holm, over all pairs
    effect: float  #: Cohen's d of the differences
    rank_biserial: float
    wins: int
    ties: int
    losses: int
    worth: float | None = None  #: number of human-graded queries as good as all grades; None without a machine's

    @property
    def marking_test(self) -> str:
        """The test that decides the marks of tables: the only one that there is of corrected differences, or the usual one."""
        return MARKING_TEST if MARKING_TEST in self.adjusted else next(iter(self.adjusted))

    @property
    def is_clear(self) -> bool:
        """True if the difference is significant by that test, adjusted by Holm."""
        return self.adjusted[self.marking_test] < LEVEL

    @property
    def opposite(self) -> "Pair":
        """The comparison of ``second`` with ``first``; tests are two-sided, so p stays."""
        low, high = self.interval
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=-self.difference,
            interval=(-high, -low),
            effect=-self.effect,
            rank_biserial=-self.rank_biserial,
            wins=self.losses,
            losses=self.wins,
        )


def all_pairs(
    values: Mapping[str, PerQuery], *, weight: PerQuery | None = None, clusters: Iterable[object] | None = None, seed: int = 0
) -> tuple[Pair, ...]:
    """Compare every method with those after it; ``values`` are one number per query, NaN for a skipped query.

    ``clusters`` has the cluster of each query, such as its user; intervals, tests, effects and wins are then those of clusters, (9).
    """
    if len(values) < 2:
        return ()
    _check_lengths(values, "queries", "measure all on the same data")
    table = np.stack([np.asarray(row, np.float64) for row in values.values()])
    if table.ndim != 2:
        raise DataError(f"values have the shape {table.shape[1:]}; expected one number per query")
    queries = table.shape[1]
    if not queries:
        raise DataError(f"{', '.join(values)} have values for no query; expected at least one")
    weights = checked_weights(weight, queries)
    members = None if clusters is None else cluster_numbers(clusters, queries)
    names = list(itertools.combinations(values, 2))
    first, second = (table[list(rows)] for rows in zip(*itertools.combinations(range(len(table)), 2), strict=True))
    raw = differences_beyond_rounding(first, second)
    intervals = bootstrap_intervals(raw, weights, clusters=members, seed=seed).tolist()
    differences = [observations(d, weights, members) for d in raw]
    tests: Mapping[str, Callable[[PerQuery], float]] = {**TESTS, "randomization": partial(randomization, seed=seed)}
    p = {name: [test(d) for d in differences] for name, test in tests.items()}
    adjusted = {name: holm(by_pair).tolist() for name, by_pair in p.items()}
    return tuple(
        Pair(
            *names[k],
            int(np.count_nonzero(~np.isnan(raw[k]) & (weights > 0))),
            float(d.mean()) if len(d) else math.nan,
            tuple(intervals[k]),
            {name: by_pair[k] for name, by_pair in p.items()},
            {name: by_pair[k] for name, by_pair in adjusted.items()},
            cohens_d(d),
            rank_biserial(d),
            *wins_ties_losses(d),
        )
        for k, d in enumerate(differences)
    )


def differences_beyond_rounding(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return ``first - second``, 0 where they differ by rounding alone."""
    difference = first - second
    difference[np.abs(difference) <= SAME * np.maximum(np.abs(first), np.abs(second))] = 0.0
    return difference


def _check_lengths(values: Mapping[str, Sized], units: str, remedy: str) -> None:
    lengths = {name: len(row) for name, row in values.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"methods have values for different numbers of {units}: {lengths}; {remedy}")


def letters(names: Collection[str], pairs: Sequence[Pair], *, test: str = MARKING_TEST, level: float = LEVEL) -> dict[str, str]:
    """Return, for each method, the letters of the methods that it significantly beats, as in tables of papers.

    Methods are a, b, c, ... in the order of ``names`` (see `letter`). Better is: the mean difference is above 0 and the adjusted p below
    ``level``. Beyond z letters have a space between them.
    """
    if test not in TESTS:
        raise DataError(f"there is no test {test!r}; there are {', '.join(TESTS)}")
    better = {(p.first, p.second) if p.difference > 0 else (p.second, p.first) for p in pairs if p.adjusted[test] < level and p.difference}
    between = " " if len(names) > len(ascii_lowercase) else ""
    return {name: between.join(letter(k) for k, other in enumerate(names) if (name, other) in better) for name in names}


def letter(place: int) -> str:
    """Return the letter of the method at ``place``, from 0: a to z, then aa, ab, ...

    >>> [letter(place) for place in (0, 25, 26, 27, 52, 702)]
    ['a', 'z', 'aa', 'ab', 'ba', 'aaa']
    """
    prefix, last = divmod(place, len(ascii_lowercase))
    return (letter(prefix - 1) if prefix else "") + ascii_lowercase[last]


def holm(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return (8) in the order of ``p``. A test without an answer (NaN) stays so, and is not counted in m.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    adjusted = np.array(p, np.float64)
    if adjusted.ndim != 1:
        raise DataError(f"p-values have the shape {adjusted.shape}; expected one number per test")
    wrong = (adjusted < 0) | (adjusted > 1)
    if wrong.any():
        raise DataError(f"p-value {adjusted[wrong][0]} of test {int(wrong.argmax())} (from 0) is not between 0 and 1")
    order = np.argsort(adjusted)[: np.count_nonzero(~np.isnan(adjusted))]  # NaN sorts last
    stepped = adjusted[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(stepped))
    return adjusted


def winning_numbers(values: Mapping[str, Sequence[float]]) -> dict[str, int]:
    """Count how often a method beats another, over several data sets: S_i = sum_j sum_k [M_i(j) > M_k(j)] (Liu 2011, section 11.2).

    ``values`` are M_i(j), by method, one for each data set in the same order; NaN, a set without the method, neither wins nor is beaten.
    For n sets and m methods without ties all S_i add up to n m (m - 1) / 2; each tie takes one away. A narrow win counts
    like any other, so the number orders methods and tests nothing.

    >>> winning_numbers({"ListNet": [0.348, 0.444], "RankSVM": [0.346, 0.444], "FRank": [0.269, float("nan")]})
    {'ListNet': 2, 'RankSVM': 1, 'FRank': 0}
    """
    _check_lengths(values, "data sets", "put NaN where one is missing")
    table = np.array(list(values.values()), np.float64)
    return {name: int(np.count_nonzero(means > table)) for name, means in zip(values, table, strict=True)}
