"""Features that single precision cannot hold: find the ones that lose values, and the offset that preserves these.

Features are stored as float32, with 24 bits. Seconds since 1970 need 31, so times within the same two minutes become equal. The
differences from a number near all values lose less, so that number is subtracted in double precision:

    x = offset + X,    X in float32, offset in float64                                                          (1)

A feature gets an offset only if float32 makes different values of a query equal, or rounds whole numbers; if most of its values
(except zeros) are eight times nearer to the offset than to 0; and if the offset at least halves what is lost. The offset lies on a grid of
powers of two, so that similar data gets the same offset and differences are not rounded. It depends neither on the order of the rows nor
on threads. With more than four million cells, a sample of queries is examined first, and a feature that loses less than one value in
2,000 of the sample stays unchanged.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import AnyArray, Boundaries, Matrix, PerDocument, Rows, group_numbers
from exactrank._support.threads import thread_count
from exactrank.data.formats.text_column import rows_of
from exactrank.data.validation import query_rows
from exactrank.errors import DataError, PrecisionWarning, warn_caller

Offset: TypeAlias = npt.NDArray[np.float64]  #: one number per feature, which was subtracted from its values
SAMPLE_CELLS = 1 << 22
SUSPECT_SHARE = 2000  #: a feature that loses one of this number of values is examined closely
WARNING_SHARE = 0.01  #: of the different values may be lost without a warning
NEARER = 8  #: times as near as 0 must an offset be to most values
NAMED_FEATURES = 5  #: in a message
LARGEST = float(np.finfo(np.float32).max)


def choose_offset(
    values: AnyArray, X: Matrix, order: Rows | None, indptr: Boundaries, names: tuple[str, ...], offset: npt.ArrayLike | None
) -> Offset | None:
    """Return the ``offset``, or the best one for None, and subtract it from ``X``, which holds ``values`` in the order ``order``."""
    sample, bounds = np.empty((0, 0)), indptr
    if values.dtype.kind in "fiu" and values.dtype.itemsize > (4 if values.dtype.kind == "f" else 2):  # float32 may round such values
        step = max(1, -(-X.size // SAMPLE_CELLS))
        rows, bounds = query_rows(indptr, slice(None, None, step))
        is_all = step == 1 and order is None  # needs no copy
        sample = np.ascontiguousarray(values if is_all else values[rows if order is None else order[rows]], np.float64)
    if offset is None:
        doubles = {j: rows_of(values[:, j].astype(np.float64), order) for j in suspects(sample, bounds)}
        return best_offset(doubles, indptr, names, X)
    offset = np.array(offset, np.float64)
    if offset.shape != (X.shape[1],):
        raise DataError(f"offset has shape {offset.shape}; give one number for each of {X.shape[1]} features")
    subtract_offset(X, {int(j): rows_of(values[:, j].astype(np.float64), order) for j in np.flatnonzero(offset)}, offset)
    columns = {j: SortedFeature.of(sample[:, j], bounds) for j in suspects(sample - offset if sample.size else sample, bounds)}
    _warn({names[j]: (column.cost(offset[j])[0], column.different) for j, column in columns.items()})
    return offset if np.any(offset) else None


def suspects(sample: npt.NDArray[np.float64], indptr: Boundaries, decimals: bool = False) -> list[int]:
    """Return the columns of ``sample`` in which float32 makes many values of a query equal, or rounds many whole numbers.

    ``decimals`` says that numbers were read from text. Then a whole number may be the shortest decimal of a float, such as 1.6777216e8, and
    is not lost.

    >>> suspects(np.array([[1.7e9, 1.0], [1.7e9 + 1, 2.0]]), np.array([0, 2]))
    [0]
    """
    if sample.size == 0:
        return []
    counts = _core.lost_by_rounding(np.ascontiguousarray(sample), indptr, decimals, thread_count(None))
    return [int(j) for j in np.flatnonzero(counts * SUSPECT_SHARE >= max(1, len(sample))) if counts[j] > 0]


def best_offset(doubles: Mapping[int, PerDocument], indptr: Boundaries, names: Sequence[str], X: Matrix | None = None) -> Offset | None:
    """Return the offset of all features, of which only the columns ``doubles`` may need one, and subtract it from ``X``.

    Warns of values that are still lost.
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
        subtract_offset(X, doubles, offset)
    return offset


def subtract_offset(X: Matrix, doubles: Mapping[int, PerDocument], offset: Offset) -> None:
    """Write the columns ``doubles`` that have an offset into ``X``, as differences from it."""
    for j, values in doubles.items():
        if offset[j]:
            X[:, j] = values - offset[j]


@dataclass(frozen=True, eq=False)
class SortedFeature:
    """The values of a feature in double precision, sorted within each query."""

    values: PerDocument
    rises: npt.NDArray[np.bool_]  #: whether a value is larger than the previous value of the same query
    different: int  #: number of different values within queries

    @classmethod
    def of(cls, values: PerDocument, indptr: Boundaries) -> "SortedFeature":
        """Return the sorted values of a feature; ``indptr`` are the boundaries of the queries."""
        query = group_numbers(np.diff(indptr))
        sorted_ = values[np.lexsort((values, query))]
        rises = np.append(False, sorted_[1:] > sorted_[:-1])
        rises[indptr[:-1]] = False
        return cls(sorted_, rises, int(rises.sum() + np.sum(~np.isnan(sorted_[indptr[:-1]]))))

    def cost(self, offset: float) -> tuple[int, int]:
        """Return how many different values within queries are equal as float32 after subtracting ``offset``, and how many are rounded."""
        differences = self.values - offset
        with np.errstate(over="ignore"):  # values that overflow are refused elsewhere
            single = differences.astype(np.float32)
        lost = np.sum(self.rises[1:] & (single[1:] == single[:-1]))
        return int(lost), int(np.sum((single != differences) & ~np.isnan(differences)))

    def best_offset(self) -> tuple[float, int]:
        """Return the offset that loses and rounds the fewest values, and how many are lost with it.

        The offset is 0 if none halves the number of lost values or, if no values are lost, of rounded ones. Offsets that are float32
        numbers are tried, too: they preserve zeros among the values.
        """
        offsets = sorted(self._offsets())
        tried = [(self.cost(offset), offset) for offset in (*offsets, *map(float, map(np.float32, offsets)))]
        lost_as_it_is, rounded_as_it_is = self.cost(0.0)
        (lost, rounded), offset = min(tried, default=((lost_as_it_is, rounded_as_it_is), 0.0), key=itemgetter(0))
        saves = 2 * lost <= lost_as_it_is and (lost_as_it_is > 0 or 2 * rounded <= rounded_as_it_is)
        return (offset, lost) if saves else (0.0, lost_as_it_is)

    def _offsets(self) -> Iterator[float]:
        """Yield the middle of the range and the median, on the grid, if most values lie near them; zeros do not count."""
        known_values = self.values[(self.values != 0) & (np.abs(self.values) < LARGEST)]  # larger values are refused elsewhere
        if len(known_values) == 0:
            return
        low, lower, middle, upper, high = np.quantile(known_values, [0, 0.25, 0.5, 0.75, 1])
        for center, spread in ((low / 2 + high / 2, high - low), (middle, upper - lower)):
            step = max(math.ldexp(0.25, math.frexp(spread)[1] - 1) if spread > 0 else 0.0, float(np.spacing(abs(center))))
            offset = float(np.round(center / step) * step)
            distance = np.abs(known_values - offset)
            if NEARER * np.median(distance) <= np.median(np.abs(known_values)) and distance.max() < LARGEST:
                yield offset


def _warn(losses: Mapping[str, tuple[int, int]]) -> None:
    """Warn of features that lose more than a few values; ``losses`` has the numbers of lost and of different values of each."""
    messages = [
        f"{name!r} loses {lost:,} of {different:,}" for name, (lost, different) in losses.items() if lost > WARNING_SHARE * different
    ]
    if not messages:
        return
    remainder = f" and {len(messages) - NAMED_FEATURES:,} more features lose some" if len(messages) > NAMED_FEATURES else ""
    warn_caller(
        "features are kept in single precision, which makes different values within queries equal: "
        f"{', '.join(messages[:NAMED_FEATURES])}{remainder}; "
        "give such a feature as the difference from a number near the values of its query, or as its rank there",
        PrecisionWarning,
    )
