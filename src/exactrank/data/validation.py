"""What callers give, as checked arrays: features, grades and weights, and which row belongs to which query.

Either each row has a query id, in any order, or the rows of a query are together and the sizes of the queries are given.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Boundaries, Ids, Matrix, PerDocument, PerQuery, Rows
from exactrank._support.numerals import number
from exactrank.data.formats.text_column import rows_of
from exactrank.data.immutable import immutable, is_immutable, seal
from exactrank.errors import DataError

CELLS_AT_ONCE = 1 << 18


def matrix_of(given: Any, rows: int) -> tuple[npt.NDArray[Any], Matrix]:
    """The features as an array of numbers of any type, and as a float32 matrix in C order without infinities.

    That is a copy, or ``given`` itself if nobody can write into it.
    """
    if given is None:
        given = np.empty((rows, 0), np.float32)
    if hasattr(given, "toarray"):
        given = seal(given.toarray())
    table = array_of(fill_masked(given))
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise DataError(f"X must be a table of numbers, documents x features; got shape {table.shape} of {table.dtype}")
    if len(table) != rows:
        raise DataError(f"X has {len(table)} rows but y has {rows}; they must agree")
    with np.errstate(over="ignore"):
        as_it_is = is_immutable(table) and table.dtype == np.float32
        matrix: Matrix = immutable(table) if as_it_is else np.array(table, np.float32, order="C")
    cell = infinite_cell(matrix)
    if cell is not None:
        raise DataError(f"X[{cell[0]}, {cell[1]}] is {table[cell]}, which is not a finite float32; use NaN for a missing value")
    return table, matrix


def infinite_cell(X: Matrix) -> tuple[int, int] | None:
    """The first infinite value of a matrix in C order: its row and its column."""
    values = X.reshape(-1)
    for first in range(0, len(values), CELLS_AT_ONCE):
        infinite = np.isinf(values[first : first + CELLS_AT_ONCE])
        if infinite.any():
            return divmod(first + int(infinite.argmax()), int(X.shape[1]))
    return None


def numbers_of(name: str, values: npt.ArrayLike, count: int | None = None) -> PerDocument:
    """``values`` as the grades ``y`` or as weights, once there are as many as there must be and each is in order."""
    numbers = floats_of(name, values)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise DataError(f"{name} must be a list of at least one number, got shape {numbers.shape}")
    if count is not None and len(numbers) != count:
        raise DataError(f"{name} has {len(numbers)} entries; expected {count}")
    check_numbers(name, numbers)
    return numbers


def floats_of(name: str, values: Any) -> npt.NDArray[np.float64]:
    """Return ``values`` as doubles of the same shape, text by the rule of `exactrank._support.numerals`; errors call them ``name``.

    >>> floats_of("y", ["2", 0.5, "1e3"]).tolist()
    [2.0, 0.5, 1000.0]
    """
    try:
        array = np.asarray(refuse_masked(values, name))
        if array.dtype.kind in "OSU":
            cells = [number(cell) if isinstance(cell, str | bytes) else cell for cell in array.ravel().tolist()]
            return np.array(cells, np.float64).reshape(array.shape)
        return np.asarray(array, np.float64)
    except DataError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} must hold numbers: {error}") from None


def check_numbers(name: str, numbers: PerDocument, *, some_positive: bool = True) -> None:
    """Raise if a grade (``y``) is not finite, or a weight is not a number of at least 0.

    Some weight must be positive, unless it is part of data, which may be without one.
    """
    bad = np.flatnonzero(~np.isfinite(numbers) if name == "y" else ~((numbers >= 0) & (numbers < np.inf)))
    if len(bad) and name == "y":
        raise DataError(f"grade of row {bad[0]} is {numbers[bad[0]]}; grades must be finite numbers, so drop the row or judge it")
    if len(bad):
        raise DataError(f"{name}[{bad[0]}] is {numbers[bad[0]]}; weights must be finite and not negative")
    if name != "y" and some_positive and not np.any(numbers > 0):
        raise DataError(f"{name} is zero everywhere; at least one must be positive")


def per_query_weight(weight: npt.ArrayLike, order: Rows | None, indptr: Boundaries) -> PerQuery:
    """Query weights from one per query, or from one per row that agrees within each query."""
    queries, rows = len(indptr) - 1, int(indptr[-1])
    given = numbers_of("query_weight", weight)
    if len(given) == queries:
        return given
    if len(given) != rows:
        raise DataError(f"query_weight has {len(given)} entries; expected one per query ({queries}) or one per row ({rows})")
    grouped = rows_of(given, order)
    first = grouped[indptr[:-1]]
    differs = np.flatnonzero(grouped != np.repeat(first, np.diff(indptr)))
    if len(differs):
        row = differs[0] if order is None else order[differs[0]]
        raise DataError(f"query_weight of row {row} is {given[row]:g} but its query began with another; give one weight per query")
    return first


def grouping(qid: npt.ArrayLike | None, group: npt.ArrayLike | None, rows: int) -> tuple[Rows | None, Boundaries, Ids]:
    """As `group_rows`, from whichever of ``qid`` and ``group`` is given; without ids queries are numbered from 0."""
    if (qid is None) == (group is None):
        raise DataError(
            "give either qid (one query id per row) or group (the size of each query), not " + ("both" if group is not None else "neither")
        )
    if qid is not None:
        ids = array_of(qid, "qid")
        if ids.ndim != 1 or len(ids) != rows:
            raise DataError(f"qid has shape {ids.shape} but y has {rows} rows; give one query id per row")
        missing = missing_ids(ids)
        if len(missing):
            raise DataError(f"query id of row {missing[0]} is missing ({ids[missing[0]]}); give every row a query id")
        return group_rows(ids)
    sizes = array_of(group, "group")
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise DataError(f"group must be a list of whole sizes that fit 64 bits, got {sizes.dtype} of shape {sizes.shape}")
    indptr = boundaries(sizes, rows)
    if indptr is None:
        total = sum(sizes.tolist())
        raise DataError(f"group must hold positive whole sizes that add up to {rows} rows, got a sum of {total} over {sizes.size} queries")
    return None, indptr, np.arange(len(sizes))


def group_rows(qid: Ids) -> tuple[Rows | None, Boundaries, Ids]:
    """Which row goes where so that the rows of a query are together: (order or None, boundaries, the queries' ids).

    >>> group_rows(np.array([5, 5, 9, 5]))
    (array([0, 1, 3, 2]), array([0, 3, 4]), array([5, 9]))
    """
    starts = np.concatenate([[0], np.flatnonzero(qid[1:] != qid[:-1]) + 1])
    number_of: dict[Any, int] = {}
    runs = [number_of.setdefault(name, len(number_of)) for name in qid[starts].tolist()]
    first_run = np.unique(runs, return_index=True)[1]
    if len(number_of) == len(runs):
        return None, np.append(starts, len(qid)), qid[starts]
    numbers = np.repeat(runs, np.diff(np.append(starts, len(qid))))
    return np.argsort(numbers, kind="stable"), np.append(0, np.cumsum(np.bincount(numbers))), qid[starts[first_run]]


def query_rows(indptr: Boundaries, chosen: Rows | slice) -> tuple[Rows, Boundaries]:
    """The rows of the queries ``chosen``, one query after the other, and where each begins among them."""
    sizes = np.diff(indptr)[chosen]
    bounds = np.append(0, np.cumsum(sizes))
    return np.arange(bounds[-1]) + np.repeat(indptr[:-1][chosen] - bounds[:-1], sizes), bounds


def boundaries(sizes: npt.NDArray[Any], rows: int) -> Boundaries | None:
    """Where queries of these sizes begin and end, or None unless all sizes are positive and add up to ``rows``.

    A sum that overflows falls, and so do boundaries where a size is not positive; those that only rise are exact.

    >>> boundaries(np.array([2, 1]), 3), boundaries(np.array([2**62] * 4 + [3]), 3)
    (array([0, 2, 3]), None)
    """
    indptr = np.append(0, np.cumsum(sizes.astype(np.int64)))
    return indptr if indptr[-1] == rows and np.all(indptr[1:] > indptr[:-1]) else None


def missing_ids(ids: Ids) -> Rows:
    """Rows whose id is None or not a number or time."""
    if ids.dtype == object:
        return np.array([i for i, q in enumerate(ids) if q is None or q != q], np.int64)
    return np.flatnonzero(ids != ids) if ids.dtype.kind in "fcmM" else np.empty(0, np.int64)


def array_of(values: Any, name: str = "the array") -> npt.NDArray[Any]:
    """The values as an array; lists of unequal length become an empty one of objects, which no check lets pass."""
    values = refuse_masked(values, name)
    try:
        return np.asarray(values)
    except ValueError:
        return np.empty(0, object)


def fill_masked(values: Any) -> Any:
    """Features, with NaN for those that are masked in an array of `numpy.ma`.

    >>> fill_masked(np.ma.masked_array([[1, 2]], [[False, True]])).tolist()
    [[1.0, nan]]
    """
    if not isinstance(values, np.ma.MaskedArray) or not np.ma.is_masked(values):
        return values
    kind = values.dtype if values.dtype.kind == "f" else np.dtype(np.float64)
    return np.where(np.ma.getmaskarray(values), np.nan, values.data).astype(kind)


def refuse_masked(values: Any, name: str) -> Any:
    """``values``, of which there is one for each row and so none may be masked; ``name`` is what they are called in the error."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = ", ".join(map(str, np.argwhere(np.ma.getmaskarray(values))[0]))
        raise DataError(f"{name}[{place}] is masked; drop the row, or give it a value")
    return values
