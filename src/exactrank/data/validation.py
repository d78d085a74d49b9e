"""Checks of arguments: features, grades, weights and queries become arrays, or raise a `DataError`.

Either each row has a query id, in any order, or the rows of a query are together and the sizes of the queries are given.
"""

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import AnyArray, Boundaries, Ids, Matrix, PerDocument, PerQuery, Rows, starts_of
from exactrank._support.numerals import number
from exactrank.data.formats.text_column import rows_of
from exactrank.data.immutable import immutable, is_immutable, seal
from exactrank.errors import DataError

CELLS_AT_ONCE = 1 << 18


def matrix_of(features: object, rows: int) -> tuple[AnyArray, Matrix]:
    """Return the features as an array of numbers of any type, and as a float32 matrix in C order without infinities.

    The matrix is a copy, or the array itself if that is immutable.
    """
    if features is None:
        features = np.empty((rows, 0), np.float32)
    if hasattr(features, "toarray"):
        features = seal(features.toarray())
    table = array_of(fill_masked_values(features))
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise DataError(f"X must be a table of numbers, documents x features; got shape {table.shape} of {table.dtype}")
    if len(table) != rows:
        raise DataError(f"X has {len(table)} rows but y has {rows}; they must agree")
    with np.errstate(over="ignore"):
        needs_no_copy = is_immutable(table) and table.dtype == np.float32
        matrix: Matrix = immutable(table) if needs_no_copy else np.array(table, np.float32, order="C")
    cell = infinite_cell(matrix)
    if cell is not None:
        raise DataError(f"X[{cell[0]}, {cell[1]}] is {table[cell]}, which is not a finite float32; use NaN for a missing value")
    return table, matrix


def infinite_cell(X: Matrix) -> tuple[int, int] | None:
    """Return the row and the column of the first infinite value of a matrix in C order; None if all are finite."""
    values = X.reshape(-1)
    for first in range(0, len(values), CELLS_AT_ONCE):
        infinite = np.isinf(values[first : first + CELLS_AT_ONCE])
        if infinite.any():
            return divmod(first + int(infinite.argmax()), int(X.shape[1]))
    return None


def numbers_of(name: str, values: npt.ArrayLike, count: int | None = None) -> PerDocument:
    """Return ``values`` as grades (``y``) or weights; raise if there are not ``count`` of them, or if one is invalid."""
    numbers = floats_of(name, values)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise DataError(f"{name} must be a list of at least one number, got shape {numbers.shape}")
    if count is not None and len(numbers) != count:
        raise DataError(f"{name} has {len(numbers)} entries; expected {count}")
    check_numbers(name, numbers)
    return numbers


def floats_of(name: str, values: object) -> npt.NDArray[np.float64]:
    """Return ``values`` as doubles of the same shape; `exactrank._support.numerals` reads text, and errors call the values ``name``.

    >>> floats_of("y", ["2", 0.5, "1e3"]).tolist()
    [2.0, 0.5, 1000.0]
    """
    try:
        array = np.asarray(refuse_masked_values(values, name))
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

    With ``some_positive`` at least one weight must be positive.
    """
    bad = np.flatnonzero(~np.isfinite(numbers) if name == "y" else ~((numbers >= 0) & (numbers < np.inf)))
    if len(bad) and name == "y":
        raise DataError(f"grade of row {bad[0]} is {numbers[bad[0]]}; grades must be finite numbers, so drop the row or judge it")
    if len(bad):
        raise DataError(f"{name}[{bad[0]}] is {numbers[bad[0]]}; weights must be finite and not negative")
    if name != "y" and some_positive and not np.any(numbers > 0):
        raise DataError(f"{name} is zero everywhere; at least one must be positive")


def per_query_weight(weight: npt.ArrayLike, order: Rows | None, indptr: Boundaries) -> PerQuery:
    """Return query weights from one weight per query, or from one per row, which must agree within each query."""
    queries, rows = len(indptr) - 1, int(indptr[-1])
    weights = numbers_of("query_weight", weight)
    if len(weights) == queries:
        return weights
    if len(weights) != rows:
        raise DataError(f"query_weight has {len(weights)} entries; expected one per query ({queries}) or one per row ({rows})")
    grouped = rows_of(weights, order)
    first = grouped[indptr[:-1]]
    differs = np.flatnonzero(grouped != np.repeat(first, np.diff(indptr)))
    if len(differs):
        row = differs[0] if order is None else order[differs[0]]
        raise DataError(f"query_weight of row {row} is {weights[row]:g} but its query began with another; give one weight per query")
    return first


def grouping(qid: npt.ArrayLike | None, group: npt.ArrayLike | None, rows: int) -> tuple[Rows | None, Boundaries, Ids]:
    """Return the result of `group_rows`, from either ``qid`` or ``group``; queries without ids are numbered from 0."""
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
    """Return the order of rows that puts those of a query together (None if they are), the boundaries and the ids of the queries.

    >>> group_rows(np.array([5, 5, 9, 5]))
    (array([0, 1, 3, 2]), array([0, 3, 4]), array([5, 9]))
    """
    starts = np.concatenate([[0], np.flatnonzero(qid[1:] != qid[:-1]) + 1])
    number_of: dict[object, int] = {}
    runs = [number_of.setdefault(name, len(number_of)) for name in qid[starts].tolist()]
    first_run = np.unique(runs, return_index=True)[1]
    if len(number_of) == len(runs):
        return None, np.append(starts, len(qid)), qid[starts]
    numbers = np.repeat(runs, np.diff(np.append(starts, len(qid))))
    return np.argsort(numbers, kind="stable"), starts_of(np.bincount(numbers)), qid[starts[first_run]]


def query_rows(indptr: Boundaries, queries: Rows | slice) -> tuple[Rows, Boundaries]:
    """Return the rows of these ``queries``, one query after the other, and the boundaries of the queries among them."""
    sizes = np.diff(indptr)[queries]
    bounds = starts_of(sizes)
    return np.arange(bounds[-1]) + np.repeat(indptr[:-1][queries] - bounds[:-1], sizes), bounds


def boundaries(sizes: AnyArray, rows: int) -> Boundaries | None:
    """Return the boundaries of queries of these sizes; None unless all sizes are positive and add up to ``rows``.

    Boundaries fall where a sum overflows or a size is not positive, so boundaries that only rise are exact.

    >>> boundaries(np.array([2, 1]), 3), boundaries(np.array([2**62] * 4 + [3]), 3)
    (array([0, 2, 3]), None)
    """
    indptr = starts_of(sizes.astype(np.int64))
    return indptr if indptr[-1] == rows and np.all(indptr[1:] > indptr[:-1]) else None


def missing_ids(ids: Ids) -> Rows:
    """Return the rows whose id is None, NaN or not a time."""
    if ids.dtype == object:
        return np.array([i for i, q in enumerate(ids) if q is None or q != q], np.int64)
    return np.flatnonzero(ids != ids) if ids.dtype.kind in "fcmM" else np.empty(0, np.int64)


def array_of(values: object, name: str = "the array") -> AnyArray:
    """Return the values as an array; lists of unequal length become an empty array of objects, which every check refuses."""
    values = refuse_masked_values(values, name)
    try:
        return np.asarray(values)
    except ValueError:
        return np.empty(0, object)


def fill_masked_values(values: object) -> object:
    """Return features with NaN in place of values that are masked in an array of `numpy.ma`.

    >>> fill_masked_values(np.ma.masked_array([[1, 2]], [[False, True]])).tolist()
    [[1.0, nan]]
    """
    if not isinstance(values, np.ma.MaskedArray) or not np.ma.is_masked(values):
        return values
    kind = values.dtype if values.dtype.kind == "f" else np.dtype(np.float64)
    return np.where(np.ma.getmaskarray(values), np.nan, values.data).astype(kind)


def refuse_masked_values(values: object, name: str) -> object:
    """Return ``values``; raise if one of them is masked in an array of `numpy.ma`, since every row needs a value."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = ", ".join(map(str, np.argwhere(np.ma.getmaskarray(values))[0]))
        raise DataError(f"{name}[{place}] is masked; drop the row, or give it a value")
    return values
