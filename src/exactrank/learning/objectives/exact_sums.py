"""Sums over documents that are exact, so that they do not depend on the order of the documents, on threads, or on who holds which of them.

Numbers are rounded to whole multiples of a unit so small that it does not matter, and so large that their sums are exact:

    unit = 2^(e - 52),    2^e above (how many there are) * (the largest of them)                                 (1)
"""

import math
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


def rounded(values: Values, largest: float, count: int) -> Values:
    """``values``, at most ``largest`` in size, by (1), so that sums of ``count`` of them are exact.

    >>> rounded(np.array([1.0, 1 / 3]), 1.0, 1 << 40).tolist()
    [1.0, 0.33349609375]
    """
    exponent = math.frexp(largest * count)[1] if math.isfinite(largest * count) else None
    if exponent is None or not -900 < exponent < 900:  # what is no number, or has no neighbors, is left to LightGBM
        return values
    shift = math.ldexp(1.5, exponent)  # where doubles are one unit apart
    return (values + shift) - shift


def weighed_mean(parts: Callable[[], Iterable[tuple[Values, Values]]]) -> float:
    """The mean of values by their weights, of which ``parts`` gives some at a time, as often as it is called."""
    largest, count = np.zeros(2), 0
    for values, weights in parts():
        largest, count = np.maximum(largest, [np.abs(values * weights).max(), weights.max()]), count + len(values)
    sums = np.zeros(2)
    for values, weights in parts():
        both = zip((values * weights, weights), largest.tolist(), strict=True)
        sums += [rounded(each, size, count).sum() for each, size in both]
    return float(sums[0] / sums[1])
