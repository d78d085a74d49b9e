"""An interval of a mean that stays valid however often, and whenever, one looks: for test sets and experiments that grow.

An ordinary 95% interval is for one look, at a number of queries that was fixed before. Who looks after every ten queries, and stops once
the interval leaves 0 out, sees a difference where there is none far more often than in 5% of the cases. This interval leaves the true mean
out at *any* time with a probability of at most 5% (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting",
theorem 3). With the values x_1, x_2, ... in the order in which they came, scaled to [0, 1], and a = 1 - level,

    K+_t(m) = prod_{i<=t} (1 + min(b_i, 1/(2m)) (x_i - m)),   K-_t(m) = prod_{i<=t} (1 - min(b_i, 1/(2(1-m))) (x_i - m))     (1)
    interval = {m: K+_i(m) < 2/a and K-_i(m) < 2/a for all i <= t}                                                           (2)
    b_t = sqrt(2 log(2/a) / (v_{t-1} t log(t + 1)))                                                                          (3)
    v_t = (1/4 + sum_{i<=t} (x_i - u_i)^2) / (t + 1),   u_t = (1/2 + sum_{i<=t} x_i) / (t + 1)

K+ is the capital of a gambler who bets that the mean is above m. If it is m, no bet has an expected gain, so the capital reaches 2/a with
a probability of at most a/2, ever (Ville 1939). What is assumed: every value lies between two known bounds, and has the same mean whatever
the values before it were, as with queries that come in random order, or users one after the other. No distribution is assumed, and the
number of values may be small. (3) may use the values before t only; it decides how narrow the interval becomes, not whether it holds.

K+ falls and K- rises with m, so (2) is an interval, whose ends are found by bisection, rounded outwards. The always-valid p-value of the
mean 0 is

    p = min over i <= t of 1 / max(K+_i, K-_i) * 2,  at most 1                                                               (4)

which is below a just if (2) leaves 0 out.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats
from exactrank._support.clusters import cluster_numbers, cluster_sums
from exactrank._support.numerics import exp, log, log1p
from exactrank.errors import DataError

HALVINGS = 50  #: of the interval [0, 1] in a bisection


@dataclass(frozen=True)
class AlwaysValidMean:
    """A mean with its interval (2), which may be looked at at any time."""

    mean: float
    interval: tuple[float, float]
    p: float  #: (4), of the mean 0
    observations: int  #: queries or clusters

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{self.mean:.4f} [{low:.4f}, {high:.4f}] at any time, p = {self.p:.3g}, {self.observations:,} observations"


def always_valid(
    values: npt.ArrayLike, *, clusters: Iterable[object] | None = None, low: float = -1.0, high: float = 1.0, level: float = 0.95
) -> AlwaysValidMean:
    """Return the mean of ``values`` and an interval that is valid however often one looks while values are added.

    ``values`` are one number per query in the order in which they came, such as the differences of two rankers; queries with NaN are
    skipped. ``low`` and ``high`` are the bounds of a value, of differences of nDCG -1 and 1. ``clusters`` has the cluster of each query,
    such as the user: the mean of a cluster then counts once, and all its values must have come.

    >>> always_valid([0.1, 0.3, 0.0, 0.2] * 20)
    0.1500 [0.0482, 0.2268] at any time, p = 0.00685, 80 observations
    """
    x = np.asarray(values, np.float64)
    if x.ndim != 1:
        raise DataError(f"values have the shape {x.shape}; expected one number per query")
    if not (low <= 0 <= high and low < high and math.isfinite(high - low)):
        raise DataError(f"low={low} and high={high}: the bounds of a value must be finite, one on each side of 0")
    if not 0 < level < 1:
        raise DataError(f"level={level}: expected a probability between 0 and 1, such as 0.95")
    outside = (x < low) | (x > high)
    if outside.any():
        place = int(outside.argmax())
        raise DataError(f"the value of query {place} (from 0) is {x[place]}, outside of {low:g} and {high:g}; give its bounds low and high")
    counts = ~np.isnan(x)
    if clusters is not None:
        number = cluster_numbers(clusters, len(x))[counts]
        sizes = cluster_sums(np.ones(len(number)), number)
        x = cluster_sums(x[counts], number)[sizes > 0] / sizes[sizes > 0]
    else:
        x = x[counts]
    if not len(x):
        return AlwaysValidMean(math.nan, (low, high), 1.0, 0)
    scaled, width = (x - low) / (high - low), high - low
    bets, richest = _bets(scaled, 1 - level), float(log(2 / (1 - level)))
    least = _lower_end(scaled, bets, richest)
    largest = 1 - _lower_end(1 - scaled, bets, richest)
    capital = max(_largest_capital(scaled, bets, -low / width), _largest_capital(1 - scaled, bets, 1 + low / width))
    p = min(1.0, 2 * float(exp(-capital)))
    return AlwaysValidMean(float(x.mean()), (low + width * least, low + width * largest), p, len(x))


def _bets(x: Floats, risk: float) -> Floats:
    """Return (3)."""
    t = np.arange(1, len(x) + 1, dtype=np.float64)
    means = (0.5 + np.cumsum(x)) / (t + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    return np.sqrt(2 * float(log(2 / risk)) / (before * t * log(t + 1)))


def _largest_capital(x: Floats, bets: Floats, m: float) -> float:
    """Return the logarithm of the largest K+ of (1) so far; K- is that of 1 - x and 1 - m."""
    bounded = np.minimum(bets, 0.5 / m) if m > 0 else bets
    return float(np.max(np.cumsum(log1p(bounded * (x - m)))))


def _lower_end(x: Floats, bets: Floats, richest: float) -> float:
    """Return the lower end of (2)."""
    low, high = 0.0, 1.0
    if _largest_capital(x, bets, low) < richest:
        return low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _largest_capital(x, bets, middle) >= richest:
            low = middle
        else:
            high = middle
    return low
