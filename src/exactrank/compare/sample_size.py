"""Sizes of test sets: the power of the paired t-test, from the differences so far.

Of two rankers, let s be the standard deviation of the differences per query. If the true mean difference is d, the t-test of n queries
(`exactrank.compare.statistics`, 4) finds it at the level a with the probability

    power(n) = P(|T| > t_{1-a/2, n-1}),   T from the noncentral t distribution with n - 1 degrees, noncentrality c = d sqrt(n) / s (1)
    P(|T| <= t) = sum_j e^-u u^j / j! I_x(j + 1/2, v/2),   u = c^2 / 2,  x = t^2 / (v + t^2),  v degrees                         (2)

where I is the incomplete beta function (Johnson, Kotz & Balakrishnan 1995, chapter 31). The randomization test has nearly the same power.
The number of queries that a difference needs is the smallest n for which power(n) suffices; half the difference takes four times as many.

**d is the difference that would matter, not the one that was observed.** The power of the observed difference says nothing that its p-value
does not (Hoenig & Heisey 2001). What the differences so far contribute is s. That is an estimate too: from 30 queries it is known to about
a quarter, and the number of queries to about a half.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import check_count, check_number
from exactrank._support.arrays import PerQuery
from exactrank._support.distributions import incomplete_beta, t_quantile
from exactrank._support.numerics import exp, log
from exactrank.compare.statistics import observations, spread
from exactrank.errors import DataError, SettingError

POWER = 0.8
LEVEL = 0.05
MOST_QUERIES = 10**12
PRECISION = 1e-9  #: relative, of a difference
CERTAIN = 2000.0  #: u of (2) from which the power is 1
NEGLIGIBLE = 1e-18  #: weight of a term of (2)


@dataclass(frozen=True)
class _Test:
    """The test of a mean difference with the standard deviation ``deviation`` of an observation."""

    deviation: float
    level: float

    def power(self, queries: int, difference: float) -> float:
        """Return (1)."""
        degrees, shift = queries - 1, difference * math.sqrt(queries) / self.deviation
        critical = t_quantile(1 - self.level / 2, degrees)
        square = critical * critical
        x, y = square / (degrees + square), degrees / (degrees + square)
        mean = shift * shift / 2
        if mean > CERTAIN:
            return 1.0
        j = np.arange(math.ceil(mean + 10 * math.sqrt(mean)) + 30)
        weights = exp(j * float(log(mean)) - mean - np.cumsum(log(np.maximum(j, 1)))) if mean else 1.0 * (j == 0)
        terms = [weight * incomplete_beta(k + 0.5, degrees / 2, x, y) for k, weight in enumerate(weights.tolist()) if weight > NEGLIGIBLE]
        return 1 - math.fsum(terms)


def power(
    differences: npt.ArrayLike,
    difference: float,
    queries: int | None = None,
    *,
    level: float = LEVEL,
    weight: PerQuery | None = None,
    clusters: Iterable[object] | None = None,
) -> float:
    """Return the probability that a test of ``queries`` queries finds a true mean ``difference``, (1).

    ``differences`` are those of two rankers so far, one per query, from which the spread is taken; ``queries`` is by default their number.
    ``weight`` has the weights of the queries. ``clusters`` has the cluster of each query, such as its user; clusters are then counted in
    place of queries.

    >>> round(power([0.1, -0.2, 0.3, 0.0, 0.1] * 10, 0.05), 3)
    0.56
    """
    check_number("difference", difference)
    test, count = _test(differences, level, weight, clusters)
    if queries is not None:
        check_count("queries", queries, 2, MOST_QUERIES)
    return test.power(count if queries is None else queries, float(difference))


def sample_size(
    differences: npt.ArrayLike,
    difference: float,
    power: float = POWER,
    *,
    level: float = LEVEL,
    weight: PerQuery | None = None,
    clusters: Iterable[object] | None = None,
) -> int:
    """Return the smallest number of queries of which a test finds a true mean ``difference`` with the probability ``power``.

    The other arguments are those of `power`.

    >>> sample_size([0.1, -0.2, 0.3, 0.0, 0.1] * 10, 0.05)
    87
    """
    check_number("difference", difference, above=True)
    (test, _), target = _test(differences, level, weight, clusters), _checked_power(power, level)
    low, high = 1, 2
    while test.power(high, difference) < target:
        low, high = high, 2 * high
        if high > MOST_QUERIES:
            raise DataError(f"a difference of {difference:g} takes more than {MOST_QUERIES:,} queries; ask for a larger one")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if test.power(middle, difference) >= target else (middle, high)
    return high


def detectable_difference(
    differences: npt.ArrayLike,
    queries: int | None = None,
    power: float = POWER,
    *,
    level: float = LEVEL,
    weight: PerQuery | None = None,
    clusters: Iterable[object] | None = None,
) -> float:
    """Return the smallest true mean difference that a test of ``queries`` queries finds with the probability ``power``.

    The other arguments are those of `power`.

    >>> round(detectable_difference([0.1, -0.2, 0.3, 0.0, 0.1] * 10), 4)
    0.0663
    """
    test, count = _test(differences, level, weight, clusters)
    target = _checked_power(power, level)
    if queries is not None:
        check_count("queries", queries, 2, MOST_QUERIES)
        count = queries
    low, high = 0.0, test.deviation
    while test.power(count, high) < target:
        low, high = high, 2 * high
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if test.power(count, middle) >= target else (middle, high)
    return high


def _test(differences: npt.ArrayLike, level: float, weight: PerQuery | None, clusters: Iterable[object] | None) -> tuple[_Test, int]:
    """Return the test, and the number of observations so far."""
    if not 0 < level < 1:
        raise SettingError(f"level={level}: expected a probability between 0 and 1, such as 0.05")
    d = observations(differences, weight, clusters)
    if len(d) < 2:
        raise DataError(f"there are differences of {len(d)} queries; their spread takes at least 2")
    deviation = spread(d)
    if not deviation:
        raise DataError(f"all {len(d)} differences are {d[0]:g}, so their spread is unknown; give those of more queries")
    return _Test(deviation, level), len(d)


def _checked_power(power: float, level: float) -> float:
    if not level < power < 1:
        raise SettingError(f"power={power}: expected a probability between the level {level:g} and 1, such as 0.8")
    return power
