"""Numbers and trees in single precision, in which most engines compute.

Features are float32 and thresholds are doubles. Rounding down keeps every document on its side of a threshold t,

    x <= t   <=>   x <= d   <=>   x < next(d),    d the largest float32 that is at most t,                        (1)

whereas rounding to nearest would send values in between to the other side. A number is written as the shortest decimal that is read back
as the same float32, whether it is read as a float or as a double that is then rounded.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from exactrank.errors import IncompatibleError
from exactrank.models.targets.nested import leaf_values
from exactrank.models.targets.plain import Bools, Tree
from exactrank.models.targets.target import Rows

Singles = npt.NDArray[np.float32]
_LARGEST = np.finfo(np.float32).max


def rounded_down(thresholds: npt.NDArray[np.float64]) -> Singles:
    """Return d of (1), but finite, since no format can express infinity: at the ends of float32 a single value may change sides.

    >>> rounded_down(np.array([0.1, 1e-50, -1e-50, 1e300]))
    array([ 9.9999994e-02,  0.0000000e+00, -1.4012985e-45,  3.4028235e+38],
          dtype=float32)
    """
    with np.errstate(over="ignore"):
        near = thresholds.astype(np.float32)
        return np.clip(np.where(near > thresholds, np.nextafter(near, np.float32(-np.inf)), near), -_LARGEST, _LARGEST)


def next_above(values: Singles) -> Singles:
    """Return next(d) of (1), but finite."""
    with np.errstate(over="ignore"):
        return np.minimum(np.nextafter(values, np.float32(np.inf)), _LARGEST)


def singles(values: npt.ArrayLike, name: str) -> Singles:
    """Return ``values`` rounded to the nearest float32; raise if one is too large."""
    doubles = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        rounded = doubles.astype(np.float32)
    if not np.all(np.isfinite(rounded)):
        largest = doubles.flat[np.argmax(np.abs(doubles))]
        raise IncompatibleError(f"{name} of {largest:g} is beyond single precision; scale the features, or export to sql, python or c")
    return rounded


def decimals(values: Singles) -> list[str]:
    """Return the shortest decimals."""
    return [str(value) for value in values]


def short_doubles(values: Singles) -> list[float]:
    """Return the doubles whose decimals in JSON are the shortest of ``values``; all have a point or an exponent."""
    return [float(text) for text in decimals(values)]


def as_singles(rows: Rows, absent: float = np.nan) -> Singles:
    """Return the features of ``rows`` as an engine sees them, with ``absent`` for missing ones."""
    with np.errstate(over="ignore"):
        return np.where(np.isnan(rows), absent, rows).astype(np.float32)


def weighted_sum(weights: Sequence[float] | Singles, rows: Singles, start: float = 0.0) -> Singles:
    """Return ``start`` plus the weighted features, added up from the first to the last."""
    total = np.full(len(rows), start, np.float32)
    for column, weight in zip(rows.T, np.asarray(weights, np.float32), strict=True):
        total += weight * column
    return total


def tree_sum(trees: Iterable[Tree], rows: Singles, goes_left: Callable[[Singles, np.float32], Bools]) -> Singles:
    """Return the sum of the leaves that each row reaches, from the first tree to the last."""
    total, columns = np.zeros(len(rows), np.float32), np.ascontiguousarray(rows.T)
    for tree in trees:
        total += leaf_values(tree, columns, goes_left).astype(np.float32)
    return total
