"""Which row belongs to which query: from one query id per row in any order, or from the sizes of queries that stand together."""

from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.arrays import Boundaries, Ids, Rows
from exactrank.errors import DataError


def grouping(qid: npt.ArrayLike | None, group: npt.ArrayLike | None, rows: int) -> tuple[Rows | None, Boundaries, Ids]:
    """As `group_rows`, from whichever of ``qid`` and ``group`` is given; without ids queries are numbered from 0."""
    if (qid is None) == (group is None):
        raise DataError(
            "give either qid (one query id per row) or group (the size of each query), not " + ("both" if group is not None else "neither")
        )
    if qid is not None:
        ids = array_of(qid)
        if ids.ndim != 1 or len(ids) != rows:
            raise DataError(f"qid has shape {ids.shape} but y has {rows} rows; give one query id per row")
        missing = missing_ids(ids)
        if len(missing):
            raise DataError(f"query id of row {missing[0]} is missing ({ids[missing[0]]}); give every row a query id")
        return group_rows(ids)
    sizes = array_of(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise DataError(f"group must be a list of whole sizes that fit 64 bits, got {sizes.dtype} of shape {sizes.shape}")
    indptr = boundaries(sizes, rows)
    if indptr is None:
        total = sum(sizes.tolist())
        raise DataError(f"group must hold positive whole sizes that add up to {rows} rows, got a sum of {total} over {sizes.size} queries")
    return None, indptr, np.arange(len(sizes))


def group_rows(qid: Ids) -> tuple[Rows | None, Boundaries, Ids]:
    """Which row goes where so that queries stand together: (order or None, boundaries, the queries' ids).

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
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(numbers))])
    return np.argsort(numbers, kind="stable"), indptr, qid[starts[first_run]]


def boundaries(sizes: npt.NDArray[Any], rows: int) -> Boundaries | None:
    """Where queries of these sizes begin and end, or None unless all sizes are positive and add up to ``rows``.

    A sum that overflows falls, and so do boundaries where a size is not positive; those that only rise are exact.

    >>> boundaries(np.array([2, 1]), 3), boundaries(np.array([2**62] * 4 + [3]), 3)
    (array([0, 2, 3]), None)
    """
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes.astype(np.int64))])
    return indptr if indptr[-1] == rows and np.all(indptr[1:] > indptr[:-1]) else None


def missing_ids(ids: Ids) -> Rows:
    """Rows whose id is None or not a number or time."""
    if ids.dtype == object:
        return np.array([i for i, q in enumerate(ids) if q is None or q != q], np.int64)
    return np.flatnonzero(ids != ids) if ids.dtype.kind in "fcmM" else np.empty(0, np.int64)


def array_of(values: Any) -> npt.NDArray[Any]:
    """The values as an array; lists of unequal length become an empty one of objects, which no check lets pass."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.empty(0, object)
