"""Gains and discounts by name: what a grade is worth and what a rank is worth.

    'exp2'    2^y - 1        (Burges et al. 2005)        'log2'    1 / log2(1 + r)
    'linear'  y                                          'letor'   1 at ranks 1 and 2, then 1 / log2(r)
    {y: u}    a table                                    [d1, ..]  a table, 0 beyond its end

Grades below zero (often "not judged") gain nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.errors import DataError, MeasureError

GainName = Literal["exp2", "linear"]
DiscountName = Literal["log2", "letor"]
GainTable = tuple[tuple[float, float], ...]
DiscountTable = tuple[float, ...]


def frozen_gain(gain: str | Mapping[float, float] | GainTable) -> str | GainTable:
    """The gain in the hashable form a measure keeps."""
    if isinstance(gain, str):
        if gain not in ("exp2", "linear"):
            raise MeasureError(f"gain={gain!r} is not one of 'exp2', 'linear' or a table such as {{0: 0, 1: 3}}")
        return gain
    try:
        pairs = sorted((float(grade), float(value)) for grade, value in (gain.items() if isinstance(gain, Mapping) else gain))
    except (TypeError, ValueError, OverflowError):
        pairs = []
    if not pairs or not np.all(np.isfinite(pairs)):
        raise MeasureError(f"gain={gain!r} is not one of 'exp2', 'linear' or a table of numbers such as {{0: 0, 1: 3}}")
    return tuple(pairs)


def frozen_discount(discount: str | Sequence[float]) -> str | DiscountTable:
    """The discount in the hashable form a measure keeps."""
    if isinstance(discount, str):
        if discount not in ("log2", "letor"):
            raise MeasureError(f"discount={discount!r} is not one of 'log2', 'letor' or a table such as [1, 0.5, 0.25]")
        return discount
    try:
        table = tuple(float(d) for d in discount)
    except (TypeError, ValueError, OverflowError):
        table = ()
    if not table or not np.all(np.isfinite(table)):
        raise MeasureError(f"discount={discount!r} is not one of 'log2', 'letor' or a table of numbers such as [1, 0.5, 0.25]")
    return table


def native_gain(gain: str | GainTable) -> _core.Gain | None:
    """The gain as the kernels know it, None for a table."""
    return _core.Gain({"exp2": "exponential", "linear": "linear"}[gain]) if isinstance(gain, str) else None


def gain_values(gain: str | GainTable, y: PerDocument) -> PerDocument:
    """
    >>> gain_values("exp2", np.array([-1.0, 0.0, 1.0, 2.5])).round(3).tolist()
    [0.0, 0.0, 1.0, 4.657]
    """
    if isinstance(gain, str):
        above = np.maximum(y, 0.0)
        return np.exp2(above) - 1 if gain == "exp2" else above
    grades, values = np.array(gain).T
    at = np.minimum(np.searchsorted(grades, y), len(grades) - 1)
    unknown = np.flatnonzero(grades[at] != y)
    if len(unknown):
        raise DataError(f"grade {y[unknown[0]]:g} has no entry in the gain table {dict(gain)}; add it")
    return np.asarray(values[at])


def discount_values(discount: str | DiscountTable, n: int) -> PerDocument:
    """
    >>> discount_values("letor", 4).round(3).tolist()
    [1.0, 1.0, 0.631, 0.5]
    """
    if not isinstance(discount, str):
        return np.pad(np.array(discount[:n]), (0, max(0, n - len(discount))))
    ranks = np.arange(1, n + 1, dtype=np.float64)
    return 1 / np.log2(1 + ranks) if discount == "log2" else 1 / np.log2(np.maximum(ranks, 2))
