"""Every method against every other by one measure: difference, interval, tests, effect.

With a and b the values of two methods, w the weights of the queries and n the number of those that count,

    d_q = n w_q (a_q - b_q) / sum w,     whose mean is the difference of the weighted means                            (1)

Tests and effects use (1), so that they concern the difference that is reported; with equal weights it is a_q - b_q. A query counts
if both methods have a value and its weight is above 0. Values that differ only by rounding are equal. The bootstrap draws the same
queries for all pairs. P-values p_(1) <= ... <= p_(m) of one test are adjusted over all pairs, so that the probability of even one false
finding is at most the level (Holm 1979):

    adjusted_(i) = max over j <= i of min(1, (m - j + 1) p_(j))                                                        (2)

It is never larger than Bonferroni's m p, and like it assumes nothing about how the tests depend on each other.
"""

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from string import ascii_lowercase

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerQuery
from exactrank.compare.statistics.paired import TESTS, cohens_d, randomization, rank_biserial, wins_ties_losses
from exactrank.errors import DataError
from exactrank.measures.evaluate import bootstrap_intervals

#: Values that differ by less than this part of the larger are equal except for rounding.
SAME = 1e-12


@dataclass(frozen=True)
class Pair:
    """``first`` against ``second``, by one measure; above 0 is better for ``first``."""

    first: str
    second: str
    queries: int  #: how many count
    difference: float  #: of the means
    interval: tuple[float, float]  #: its bootstrap 95% interval
    p: Mapping[str, float]  #: by the name of the test
    adjusted: Mapping[str, float]  #: by Holm, over all pairs
    effect: float  #: Cohen's d of the differences
    rank_biserial: float
    wins: int
    ties: int
    losses: int

    @property
    def reversed(self) -> "Pair":
        """The same as ``second`` against ``first``; tests are two-sided, so p stays."""
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


def all_pairs(values: Mapping[str, PerQuery], *, weight: PerQuery | None = None, seed: int = 0) -> tuple[Pair, ...]:
    """Every method against those after it, in the order of ``values``, which are one number per query; NaN is a skipped query."""
    if len(values) < 2:
        return ()
    table, weights = _checked(values, weight)
    raw = np.stack([a - b for a, b in itertools.combinations(table, 2)])
    larger = np.stack([np.maximum(np.abs(a), np.abs(b)) for a, b in itertools.combinations(table, 2)])
    raw[np.abs(raw) <= SAME * larger] = 0.0  # rounding alone keeps them apart
    intervals = bootstrap_intervals(raw, weights, seed=seed).tolist()
    weighted = []  # (1), of the queries that count
    for d in raw:
        counts = ~np.isnan(d) & (weights > 0)
        own = weights[counts]
        weighted.append(d[counts] * (own * (len(own) / own.sum())) if len(own) else d[counts])
    tests: Mapping[str, Callable[[PerQuery], float]] = {**TESTS, "randomization": partial(randomization, seed=seed)}
    p = {name: [test(d) for d in weighted] for name, test in tests.items()}
    adjusted = {name: holm(own).tolist() for name, own in p.items()}
    pairs = []
    for k, (both, d) in enumerate(zip(itertools.combinations(values, 2), weighted, strict=True)):
        own, own_adjusted = ({name: by[k] for name, by in each.items()} for each in (p, adjusted))
        mean, (low, high) = float(d.mean()) if len(d) else math.nan, intervals[k]
        pairs.append(Pair(*both, len(d), mean, (low, high), own, own_adjusted, cohens_d(d), rank_biserial(d), *wins_ties_losses(d)))
    return tuple(pairs)


def letters(names: Collection[str], pairs: Sequence[Pair], *, test: str = "randomization", level: float = 0.05) -> dict[str, str]:
    """For each method the letters of the methods that it significantly beats, as in tables of papers.

    Methods are a, b, c, ... in the order of ``names`` (see `letter`). Better is: the mean difference is above 0 and the adjusted p below
    ``level``. Beyond z letters have a space between them.
    """
    if test not in TESTS:
        raise DataError(f"there is no test {test!r}; there are {', '.join(TESTS)}")
    better = {(p.first, p.second) if p.difference > 0 else (p.second, p.first) for p in pairs if p.adjusted[test] < level and p.difference}
    between = " " if len(names) > len(ascii_lowercase) else ""
    return {name: between.join(letter(k) for k, other in enumerate(names) if (name, other) in better) for name in names}


def letter(place: int) -> str:
    """The letter of the method at ``place``, from 0: a to z, then aa, ab, ...

    >>> [letter(place) for place in (0, 25, 26, 27, 52, 702)]
    ['a', 'z', 'aa', 'ab', 'ba', 'aaa']
    """
    before, own = divmod(place, len(ascii_lowercase))
    return (letter(before - 1) if before else "") + ascii_lowercase[own]


def _checked(values: Mapping[str, PerQuery], weight: PerQuery | None) -> tuple[npt.NDArray[np.float64], PerQuery]:
    """Values, methods x queries, and the weights of the queries."""
    lengths = {name: len(own) for name, own in values.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"methods have values for different numbers of queries: {lengths}; measure all on the same data")
    queries = max(lengths.values())
    if not queries:
        raise DataError(f"{', '.join(lengths)} have values for no query; expected at least one")
    table = np.stack([np.asarray(own, np.float64) for own in values.values()])
    if table.ndim != 2:
        raise DataError(f"values have the shape {table.shape[1:]}; expected one number per query")
    weights = np.ones(queries) if weight is None else np.asarray(weight, np.float64)
    if weights.shape != (queries,):
        raise DataError(f"weights have the shape {weights.shape}; expected one number for each of {queries} queries")
    wrong = ~((weights >= 0) & np.isfinite(weights))
    if wrong.any():
        raise DataError(f"the weight of query {int(wrong.argmax())} (from 0) is {weights[wrong][0]}; expected 0 or more")
    return table, weights


def holm(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """(2), in the order of ``p``. A test without an answer (NaN) stays so, and is not counted in m.

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
    """How often a method beats another, over several data sets: S_i = sum_j sum_k [M_i(j) > M_k(j)] (Liu 2011, section 11.2).

    ``values`` are M_i(j), by method, one for each data set in the same order; NaN, a set without the method, neither wins nor is beaten.
    For n sets and m methods without ties all S_i add up to n m (m - 1) / 2; each tie takes one away. A narrow win counts
    like any other, so the number orders methods and tests nothing.

    >>> winning_numbers({"ListNet": [0.348, 0.444], "RankSVM": [0.346, 0.444], "FRank": [0.269, float("nan")]})
    {'ListNet': 2, 'RankSVM': 1, 'FRank': 0}
    """
    lengths = {name: len(own) for name, own in values.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"methods have values for different numbers of data sets: {lengths}; put NaN where one is missing")
    table = np.array(list(values.values()), np.float64)
    return {name: int(np.count_nonzero(own > table)) for name, own in zip(values, table, strict=True)}
