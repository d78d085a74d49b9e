"""Probabilities of the distributions that tests compare with, the same bits on every processor.

With the density w of the beta distribution and Stirling's error S, which do not cancel for large a and b (Loader 2000),

    w = x^a y^b / B(a, b) = sqrt(ab / (2 pi n)) e^(S(n) - S(a) - S(b) - D),    y = 1 - x,   n = a + b                      (1)
    D = a log(a / (n x)) + b log(b / (n y))                                                                                (2)
    S(z) = log Gamma(z) - (z - 1/2) log z + z - log(2 pi) / 2 = 1/(12 z) - 1/(360 z^3) + 1/(1260 z^5) - ...                (3)
         = S(z + 1) + (z + 1/2) log(1 + 1/z) - 1

the incomplete beta function, left of its mean, is a continued fraction (DiDonato & Morris 1992, section 9),

    I_x(a, b) = w / (q_0 + p_1/(q_1+) p_2/(q_2+) ...),    I_x(a, b) = 1 - I_y(b, a)                                        (4)
    p_m = m (b - m) (a + m - 1) (n + m - 1) x^2 / (a + 2m - 1)^2
    q_m = m + m (b - m) x / (a + 2m - 1) + (a + m) (a y - b x + 1 + m (1 + y)) / (a + 2m + 1)

and the normal distribution, of density f, has a series and a continued fraction too (Abramowitz & Stegun 1964, 26.2.11 and 26.2.14):

    P(|Z| <= z) = 2 f(z) (z + z^3/3 + z^5/(3 5) + ...),    P(|Z| > z) = 2 f(z) 1/(z+) 1/(z+) 2/(z+) 3/(z+) ...             (5)

Continued fractions are evaluated by Lentz's method (Press, Teukolsky, Vetterling & Flannery 2007, section 5.2). Relative errors are
about 1e-14, and in far tails 1e-13.
"""

import math
from collections.abc import Iterator
from itertools import count

import numpy as np
import numpy.typing as npt

from exactrank._support.numerics import exp, log, log1p

STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)  #: of (3)
LARGE = 10.0  #: for z from here on, the terms of STIRLING suffice
LEAST = 1e-300  #: replaces 0 in Lentz's method
PRECISION = 1e-16
COUNTED = 4096  #: largest sum of sizes whose signs are counted by `sign_test`
QUANTILE_PRECISION = 1e-12  #: relative, of a quantile
BEND = 2.5  #: z from which (5) uses the fraction instead of the series


def two_sided_t(t: float, degrees: float) -> float:
    """Return the probability that a draw from Student's distribution is at least as far from 0 as ``t``.

    >>> round(two_sided_t(1.0, 1), 12), two_sided_t(0.0, 5)
    (0.5, 1.0)
    """
    square = t * t
    return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + square), square / (degrees + square)) if square else 1.0


def t_quantile(p: float, degrees: float) -> float:
    """Return the value that a draw from Student's distribution is below with the probability ``p``, above 0.5.

    False position with the Illinois rule (Dowell & Jarratt 1971) on the logarithm of the tail.

    >>> round(t_quantile(0.975, 5), 6), round(t_quantile(0.975, 1e9), 6)
    (2.570582, 1.959964)
    """

    def excess(t: float) -> float:
        return float(log(two_sided_t(t, degrees) / (2 * (1 - p))))

    low, high = 0.0, 1.0
    above, below = excess(low), excess(high)
    while below > 0:
        low, above, high = high, below, 2 * high
        below = excess(high)
    while abs(high - low) > QUANTILE_PRECISION * high:
        middle = (low * below - high * above) / (below - above)
        value = excess(middle)
        if value * below < 0:
            low, above = high, below
        else:
            above /= 2
        high, below = middle, value
        if value == 0:
            break
    return high


def two_sided_normal(z: float) -> float:
    """Return the probability that a draw from the standard normal distribution is at least as far from 0 as ``z``, (5).

    >>> round(two_sided_normal(1.96), 5), two_sided_normal(0.0)
    (0.05, 1.0)
    """
    z = abs(z)
    twice_density = math.sqrt(2 / math.pi) * float(exp(-z * z / 2))
    if z >= BEND:
        return twice_density / (z + _fraction((float(k), z) for k in count(1)))
    terms, term = [], z
    for k in count(3, 2):
        terms.append(term)
        term *= z * z / k
        if term <= PRECISION * z:
            break
    return 1 - twice_density * math.fsum(terms)


def sign_test(leads: npt.ArrayLike) -> float:
    """Return the probability of a sum as far from 0 as that of ``leads``, whole numbers, if each might as well have the other sign.

    The distribution of the sum is exact if sizes are all 1, as for wins and losses, or add up to at most `COUNTED`; beyond that it is the
    normal distribution of the same variance.

    >>> round(sign_test([1, 1, 1, 1, 1]), 12), sign_test([1, -1, 0]), round(sign_test([3, 1, 1]), 12)
    (0.0625, 1.0, 0.25)
    """
    numbers = np.asarray(leads, np.int64)
    sizes, total = np.abs(numbers[numbers != 0]), abs(int(np.sum(numbers)))
    if not total:
        return 1.0
    if sizes.max() == 1:
        wins = (len(sizes) + total) // 2
        return min(1.0, 2 * incomplete_beta(wins, len(sizes) - wins + 1, 0.5, 0.5))
    reach = int(np.sum(sizes))
    if reach > COUNTED:
        return two_sided_normal(total / math.sqrt(float(np.sum(sizes.astype(np.float64) ** 2))))
    chances = np.zeros(2 * reach + 1)  # of each sum, from -reach on
    chances[reach] = 1.0
    for size in sizes.tolist():
        chances = (np.roll(chances, size) + np.roll(chances, -size)) / 2
    return min(1.0, float(np.sum(chances[: reach - total + 1]) + np.sum(chances[reach + total :])))


def incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """Return I_x(a, b), (4): the probability that a beta variable is below x; ``y`` is 1 - x."""
    if x == 0:
        return 0.0
    if b * x > a * y:
        return 1 - incomplete_beta(b, a, y, x)

    def p(m: int) -> float:
        return m * (b - m) * x / (a + 2 * m - 1) * ((a + m - 1) * (a + b + m - 1) * x / (a + 2 * m - 1))

    def q(m: int) -> float:
        return m + m * (b - m) * x / (a + 2 * m - 1) + (a + m) * (a * y - b * x + 1 + m * (1 + y)) / (a + 2 * m + 1)

    return _density(a, b, x, y) / (a * (a * y - b * x + 1) / (a + 1) + _fraction((p(m), q(m)) for m in count(1)))


def _density(a: float, b: float, x: float, y: float) -> float:
    """Return (1); for x near a / n, where the terms of (2) cancel, it is computed from the difference."""
    n, apart = a + b, a * y - b * x
    deviance = a * float(log1p(apart / (n * x))) + b * float(log1p(-apart / (n * y)))
    return math.sqrt(a / n * b / (2 * math.pi)) * float(exp(_stirling(n) - _stirling(a) - _stirling(b) - deviance))


def _stirling(z: float) -> float:
    """Return (3)."""
    steps = []
    while z < LARGE:
        steps.append((z + 0.5) * float(log((z + 1) / z)) - 1)
        z += 1
    series = 0.0
    for coefficient in reversed(STIRLING):
        series = series / (z * z) + coefficient
    return math.fsum(steps) + series / z


def _fraction(steps: Iterator[tuple[float, float]]) -> float:
    """Return the continued fraction a_1/(b_1+) a_2/(b_2+) ...; each step is a pair (a, b)."""
    value = numerator = LEAST
    denominator = 0.0
    for a, b in steps:
        denominator = 1 / ((b + a * denominator) or LEAST)
        numerator = (b + a / numerator) or LEAST
        factor = numerator * denominator
        value *= factor
        if abs(factor - 1) <= PRECISION:
            break
    return value
