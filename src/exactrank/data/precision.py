"""Features that single precision cannot hold: which lose values, and the offset that saves them.

Features are kept as float32, with 24 bits. Seconds since 1970 need 31, so times within the same two minutes become equal. What
matters is kept in the difference from a number near all of them, in double precision:

    x = offset + X,    X in float32, offset in float64                                                          (1)

A feature gets an offset only if float32 makes different values of a query equal, or rounds whole numbers; if most of its values
(except zeros) are eight times nearer to the offset than to 0; and if that loses at most half as many. The offset lies on a grid of
powers of two, so that similar data gets the same one and differences are not rounded. It depends neither on the order of the rows nor
on threads. With more than four million cells, a sample of queries is examined first, and a feature that loses less than one value in
2,000 there is left as it is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Boundaries, Matrix, PerDocument, Rows
from exactrank._support.threads import thread_count
from exactrank.data.formats.text_column import rows_of
from exactrank.data.validation import query_rows
from exactrank.errors import DataError, PrecisionWarning, warn_caller

Offset: TypeAlias = npt.NDArray[np.float64]  #: one number per feature, which its values in X lack
LOOKED_AT = 1 << 22  # cells
ONE_IN = 2000  # values lost that make a feature worth a closer look
WARNED_FROM = 0.01  # the share of different values that is lost without being said
NEARER = 8  # times that an offset must lie nearer to most values than 0
SHOWN = 5  # features in a message
LARGEST = float(np.finfo(np.float32).max)


def choose_offset(
    given: npt.NDArray[Any], X: Matrix, order: Rows | None, indptr: Boundaries, names: tuple[str, ...], asked: npt.ArrayLike | None
) -> Offset | None:
    """The offset ``asked`` or, for None, the best; ``X``, which holds ``given`` by ``order``, gets the differences from it."""
    sample, bounds = np.empty((0, 0)), indptr
    if given.dtype.kind in "fiu" and given.dtype.itemsize > (4 if given.dtype.kind == "f" else 2):  # float32 may round such values
        step = max(1, -(-X.size // LOOKED_AT))
        rows, bounds = query_rows(indptr, slice(None, None, step))
        whole = step == 1 and order is None  # needs no copy
        sample = np.ascontiguousarray(given if whole else given[rows if order is None else order[rows]], np.float64)
    if asked is None:
        doubles = {j: rows_of(given[:, j].astype(np.float64), order) for j in suspects(sample, bounds)}
        return best_offset(doubles, indptr, names, X)
    offset = np.array(asked, np.float64)
    if offset.shape != (X.shape[1],):
        raise DataError(f"offset has shape {offset.shape}; give one number for each of {X.shape[1]} features")
    put(X, {int(j): rows_of(given[:, j].astype(np.float64), order) for j in np.flatnonzero(offset)}, offset)
    columns = {j: SortedFeature.of(sample[:, j], bounds) for j in suspects(sample - offset if sample.size else sample, bounds)}
    _warn({names[j]: (column.cost(offset[j])[0], column.different) for j, column in columns.items()})
    return offset if np.any(offset) else None


def suspects(sample: npt.NDArray[np.float64], indptr: Boundaries, decimals: bool = False) -> list[int]:
    """The columns of ``sample`` in which float32 makes values of a query equal or rounds whole numbers, not just one in thousands.

    ``decimals`` were read from text. Then a whole number may be the shortest decimal of a float, such as 1.6777216e8, and is not lost.

    >>> suspects(np.array([[1.7e9, 1.0], [1.7e9 + 1, 2.0]]), np.array([0, 2]))
    [0]
    """
    if sample.size == 0:
        return []
    counts = _core.lost_by_rounding(np.ascontiguousarray(sample), indptr, decimals, thread_count(None))
    return [int(j) for j in np.flatnonzero(counts * ONE_IN >= max(1, len(sample))) if counts[j] > 0]


def best_offset(doubles: Mapping[int, PerDocument], indptr: Boundaries, names: Sequence[str], X: Matrix | None = None) -> Offset | None:
    """The offset of all features of which the columns ``doubles`` may need one; ``X`` gets the differences from it.

    Warns of values that stay lost.
    """
    offset, lost = np.zeros(len(names)), {}
    for j, values in doubles.items():
        column = SortedFeature.of(values, indptr)
        offset[j], still_lost = column.best_offset()
        lost[names[j]] = still_lost, column.different
    _warn(lost)
    if not np.any(offset):
        return None
    if X is not None:
        put(X, doubles, offset)
    return offset


def put(X: Matrix, doubles: Mapping[int, PerDocument], offset: Offset) -> None:
    """Write those of the columns ``doubles`` that have an offset into ``X``, as differences from it."""
    for j, values in doubles.items():
        if offset[j]:
            X[:, j] = values - offset[j]


@dataclass(frozen=True, eq=False)
class SortedFeature:
    """The values of a feature in double precision, sorted within each query."""

    values: PerDocument
    rises: npt.NDArray[np.bool_]  #: whether a value is larger than the one before it, of the same query
    different: int  #: how many different values there are within queries

    @classmethod
    def of(cls, values: PerDocument, indptr: Boundaries) -> "SortedFeature":
        """``values`` query by query."""
        query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        sorted_ = values[np.lexsort((values, query))]
        rises = np.append(False, sorted_[1:] > sorted_[:-1])
        rises[indptr[:-1]] = False
        return cls(sorted_, rises, int(rises.sum() + np.sum(~np.isnan(sorted_[indptr[:-1]]))))

    def cost(self, offset: float) -> tuple[int, int]:
        """After taking ``offset``: how many different values within queries are equal as float32, and how many are rounded."""
        differences = self.values - offset
        with np.errstate(over="ignore"):  # what overflows is refused elsewhere
            single = differences.astype(np.float32)
        lost = np.sum(self.rises[1:] & (single[1:] == single[:-1]))
        return int(lost), int(np.sum((single != differences) & ~np.isnan(differences)))

    def best_offset(self) -> tuple[float, int]:
        """The offset that loses fewest values, and rounds fewest, or 0 where none halves what is lost or, if that is nothing, rounded;
        and how many are lost then.

        An offset that is a float32 itself is tried too: zeros among the values are then kept as they are.
        """
        offsets = sorted(self._offsets())
        tried = [(self.cost(offset), offset) for offset in (*offsets, *map(float, map(np.float32, offsets)))]
        lost_as_it_is, rounded_as_it_is = self.cost(0.0)
        (lost, rounded), offset = min(tried, default=((lost_as_it_is, rounded_as_it_is), 0.0), key=itemgetter(0))
        saves = 2 * lost <= lost_as_it_is and (lost_as_it_is > 0 or 2 * rounded <= rounded_as_it_is)
        return (offset, lost) if saves else (0.0, lost_as_it_is)

    def _offsets(self) -> Iterator[float]:
        """The middle of the range of the values and their median, on the grid, if most values lie near to it; zeros do not count."""
        known = self.values[(self.values != 0) & (np.abs(self.values) < LARGEST)]  # what is larger is refused elsewhere
        if len(known) == 0:
            return
        low, lower, middle, upper, high = np.quantile(known, [0, 0.25, 0.5, 0.75, 1])
        for center, spread in ((low / 2 + high / 2, high - low), (middle, upper - lower)):
            step = max(math.ldexp(0.25, math.frexp(spread)[1] - 1) if spread > 0 else 0.0, float(np.spacing(abs(center))))
            offset = float(np.round(center / step) * step)
            distance = np.abs(known - offset)
            if NEARER * np.median(distance) <= np.median(np.abs(known)) and distance.max() < LARGEST:
                yield offset


def _warn(kept: Mapping[str, tuple[int, int]]) -> None:
    """Say which features lose more than a few of their values; ``extra_columns`` tells how many each loses of how many different ones."""
    lost = [f"{name!r} loses {lost:,} of {different:,}" for name, (lost, different) in kept.items() if lost > WARNED_FROM * different]
    if not lost:
        return
    more = f" and {len(lost) - SHOWN:,} more features lose some" if len(lost) > SHOWN else ""
    warn_caller(
        f"features are kept in single precision, which makes different values within queries equal: {', '.join(lost[:SHOWN])}{more}; "
        "give such a feature as the difference from a number near the values of its query, or as its rank there",
        PrecisionWarning,
    )
