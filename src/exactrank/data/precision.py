"""Features that single precision cannot hold: which lose values, and the offset that saves them.

Features are kept as float32, of 24 bits. Seconds since 1970 have 31, so that times of the same two minutes become equal. What
matters is kept in the difference from a number near all of them, in double precision:

    x = offset + X,    X in float32, offset in float64                                                          (1)

A feature gets an offset only if float32 makes values of a query equal that differ, or rounds whole numbers; if most of its values
(zeros apart) lie eight times nearer to the offset than to 0; and if that loses at most half as many. The offset lies on a grid of
powers of two, so that similar data finds the same one and differences are not rounded. It depends neither on the order of the rows nor
on threads. Of data with more than four million cells some queries are looked at first, and a feature that loses less than one value in
2,000 there is left as it is.
"""

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Boundaries, Matrix, PerDocument, Rows
from exactrank.errors import PrecisionWarning
from exactrank.threads import thread_count

Offset: TypeAlias = npt.NDArray[np.float64]  #: one number per feature, which its values in X lack
LOOKED_AT = 1 << 22  # cells
ONE_IN = 2000  # values lost that make a feature worth a closer look
WARNED_FROM = 0.01  # the share of different values that is lost without being said
NEARER = 8  # times that an offset must lie nearer to most values than 0
SHOWN = 5  # features in a message
LARGEST = float(np.finfo(np.float32).max)


def loses_digits(given: npt.NDArray[Any]) -> bool:
    """Whether float32 may round values of this type."""
    return given.dtype.kind in "fiu" and given.dtype.itemsize > (2 if given.dtype.kind in "iu" else 4)


def some_queries(indptr: Boundaries, width: int) -> tuple[Rows, Boundaries]:
    """The rows of every n-th query, about `LOOKED_AT` cells of them, and where each query begins."""
    step = max(1, -(-int(indptr[-1]) * width // LOOKED_AT))
    starts, sizes = indptr[:-1:step], np.diff(indptr)[::step]
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], sizes), bounds


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


def best_offset(doubles: Mapping[int, PerDocument], indptr: Boundaries, names: Sequence[str]) -> Offset | None:
    """The offset of all features of which the columns ``doubles`` may need one; warns of values that stay lost."""
    found = {j: _best(Column.of(values, indptr)) for j, values in doubles.items()}
    warn({names[j]: kept for j, kept in found.items()})
    offset = np.zeros(len(names))
    offset[list(found)] = [kept.offset for kept in found.values()]
    return offset if np.any(offset) else None


def put(X: Matrix, doubles: Mapping[int, PerDocument], offset: Offset | None) -> None:
    """Write those of the columns ``doubles`` that have an offset into ``X``, as differences from it."""
    for j, values in doubles.items():
        if offset is not None and offset[j]:
            X[:, j] = values - offset[j]


@dataclass(frozen=True)
class Kept:
    """A feature as it is kept: from what offset, and how many of its different values within queries are lost."""

    offset: float
    lost: int
    different: int


@dataclass(frozen=True, eq=False)
class Column:
    """The values of a feature in double precision, sorted within each query."""

    values: PerDocument
    rises: npt.NDArray[np.bool_]  #: whether a value is larger than the one before it, of the same query
    different: int

    @classmethod
    def of(cls, values: PerDocument, indptr: Boundaries) -> "Column":
        """``values`` query by query."""
        query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        sorted_ = values[np.lexsort((values, query))]
        rises = np.append(False, sorted_[1:] > sorted_[:-1])
        rises[indptr[:-1]] = False
        return cls(sorted_, rises, int(rises.sum() + np.sum(~np.isnan(sorted_[indptr[:-1]]))))

    def lost(self, offset: float) -> int:
        """How many different values within queries are no longer different as float32, after taking ``offset`` from them."""
        with np.errstate(over="ignore"):  # what overflows is refused elsewhere
            rounded = (self.values - offset).astype(np.float32)
        return int(np.sum(self.rises[1:] & (rounded[1:] == rounded[:-1])))

    def rounded(self, offset: float) -> int:
        """How many values are not the same as float32, after taking ``offset`` from them."""
        differences = self.values - offset
        with np.errstate(over="ignore"):
            return int(np.sum((differences.astype(np.float32) != differences) & ~np.isnan(differences)))


def _best(column: Column) -> Kept:
    """The offset that loses fewest values, and rounds fewest, or 0 where none halves what is lost or, if that is nothing, rounded.

    An offset that is a float32 itself is tried too: zeros among the values are then kept as they are.
    """
    as_it_is = column.lost(0.0), column.rounded(0.0), 0.0
    offsets = sorted(_offsets(column.values))
    tried = [(column.lost(offset), column.rounded(offset), offset) for offset in (*offsets, *map(float, map(np.float32, offsets)))]
    lost, rounded, offset = min(tried, default=as_it_is, key=lambda one: one[:2])
    saves = 2 * lost <= as_it_is[0] and (as_it_is[0] > 0 or 2 * rounded <= as_it_is[1])
    return Kept(offset, lost, column.different) if saves else Kept(0.0, as_it_is[0], column.different)


def _offsets(values: PerDocument) -> Iterator[float]:
    """The middle of the range of the values and their median, on the grid, if most values lie near to it; zeros do not count."""
    known = values[(values != 0) & (np.abs(values) < LARGEST)]  # what is larger is refused elsewhere
    size = np.median(np.abs(known)) if len(known) else 0.0
    low, lower, middle, upper, high = np.quantile(known, [0, 0.25, 0.5, 0.75, 1]) if len(known) else np.zeros(5)
    for centre, spread in ((low / 2 + high / 2, high - low), (middle, upper - lower)):
        step = max(2.0 ** (np.floor(np.log2(spread)) - 2) if spread > 0 else 0.0, float(np.spacing(abs(centre))))
        offset = float(np.round(centre / step) * step)
        if len(known) and NEARER * np.median(np.abs(known - offset)) <= size and np.abs(known - offset).max() < LARGEST:
            yield offset


def warn(kept: Mapping[str, Kept]) -> None:
    """Say which features lose more than a few of their values."""
    lost = {name: each for name, each in kept.items() if each.lost > WARNED_FROM * each.different}
    if lost:
        shown = [f"{name!r} loses {each.lost:,} of {each.different:,}" for name, each in list(lost.items())[:SHOWN]]
        more = f" and {len(lost) - SHOWN:,} more features lose some" if len(lost) > SHOWN else ""
        warnings.warn(
            f"features are kept in single precision, which makes different values within queries equal: {', '.join(shown)}{more}; "
            "give such a feature as the difference from a number near the values of its query, or as its rank there",
            PrecisionWarning,
            stacklevel=_callers_level(),
        )


def _callers_level() -> int:
    """How far up, from `warn`, the code is that called this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "exactrank":
        frame, level = frame.f_back, level + 1
    return level
