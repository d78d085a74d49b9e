"""Judged documents, grouped by query.

Documents of a query stand together: query ``q`` holds rows ``indptr[q]`` to ``indptr[q + 1]``. Rows may arrive in any
order; they are grouped stably by the first appearance of their query, and ``order`` remembers where each came from, so
that scores go in and come out in the caller's order.

Whoever holds a `RankingData` may rely on its invariants, native code included: they are checked whenever one is made, also by
`RankingData(...)` and `dataclasses.replace`, and nobody can write into the arrays afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Boundaries, Ids, Matrix, PerDocument, PerQuery, Rows
from exactrank.data.grouping import array_of, grouping
from exactrank.data.immutable import immutable, is_immutable, sealed
from exactrank.data.moments import Moments, moments
from exactrank.data.precision import Column, Kept, Offset, best_offset, loses_digits, put, some_queries, suspects, warn
from exactrank.data.text_column import TextColumn
from exactrank.errors import DataError
from exactrank.threads import thread_count

if TYPE_CHECKING:
    from exactrank.data.format import Columns


#: The arrays whose type is fixed: dtype and number of dimensions.
ARRAYS: dict[str, tuple[type, int]] = {
    "X": (np.float32, 2),
    "y": (np.float64, 1),
    "indptr": (np.int64, 1),
    "sample_weight": (np.float64, 1),
    "query_weight": (np.float64, 1),
    "order": (np.int64, 1),
    "offset": (np.float64, 1),
}


@dataclass(frozen=True, eq=False, repr=False)
class RankingData:
    """Immutable, ragged ranking data; build it with [`xr.read`][exactrank.read], `from_arrays` or `from_frame`.

    ``X`` is float32, may be memory-mapped, and may hold NaN for a missing value; each consumer says what it does with
    those. ``y`` holds any finite grades. ``sample_weight`` has one number per document, ``query_weight`` one per query. A feature's
    value is ``X`` plus ``offset``, in double precision; there are offsets only where float32 cannot hold the values. Arrays are copied,
    unless nobody can write into them (a file mapped for reading, the arrays of other data).
    """

    X: Matrix
    y: PerDocument
    indptr: Boundaries
    qid: Ids
    feature_names: tuple[str, ...]
    docid: TextColumn | None = None
    comment: TextColumn | None = None
    sample_weight: PerDocument | None = None
    query_weight: PerQuery | None = None
    order: Rows | None = None
    offset: Offset | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature_names", tuple(self.feature_names))
        self._check_shapes()
        for name in (*ARRAYS, "qid"):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, immutable(array))
        if self.indptr[0] != 0 or self.indptr[-1] != len(self.y) or not np.all(self.indptr[1:] > self.indptr[:-1]):
            raise DataError("indptr must rise from 0 to the number of documents, and every query must have a document")
        check_grades(self.y)
        for name in ("sample_weight", "query_weight"):
            if (weights := getattr(self, name)) is not None:
                _check_weights(name, weights)
        if self.order is not None:
            _check_permutation(self.order)
        if self.offset is not None and not np.all(np.isfinite(self.offset)):
            raise DataError("offset must hold finite numbers, one per feature")

    def _check_shapes(self) -> None:
        """Raise where an array has another type than it must have, or another length than the others ask for."""
        for name, (kind, dimensions) in ARRAYS.items():
            array = getattr(self, name)
            if array is not None and (not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != dimensions):
                what = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else f"a {type(array).__name__}"
                kinds = f"{np.dtype(kind)} of {dimensions} dimension{'s' if dimensions > 1 else ''}"
                raise DataError(f"{name} must be an array of {kinds}, not {what}; RankingData.from_arrays converts")
        if not isinstance(self.qid, np.ndarray) or self.qid.ndim != 1:
            raise DataError("qid must be an array of one id per query; RankingData.from_arrays makes it from one per row")
        if not all(isinstance(name, str) for name in self.feature_names):
            raise DataError("feature_names must be strings")
        if not all(isinstance(column, TextColumn | None) for column in (self.docid, self.comment)):
            raise DataError("docid and comment must be text columns; RankingData.from_arrays makes docid from a list")
        expected = {
            "indptr": self.n_queries + 1,
            "query_weight": self.n_queries,
            "feature_names": self.n_features,
            "offset": self.n_features,
        }
        expected |= dict.fromkeys(("X", "docid", "comment", "sample_weight", "order"), self.n_documents)
        for name, count in expected.items():
            part = getattr(self, name)
            if part is not None and len(part) != count:
                has = f"{self.n_documents} documents, {self.n_queries} queries and {self.n_features} features"
                raise DataError(f"{name} has {len(part)} entries; expected {count} for {has} (as y, qid and X have them)")
        if self.n_documents == 0:
            raise DataError("there are no documents; give at least one")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies and unpickled data are as immutable as what they come from."""
        self.__dict__.update({name: sealed(value) if isinstance(value, np.ndarray) else value for name, value in state.items()})

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: npt.ArrayLike,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        docid: Sequence[object] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        query_weight: npt.ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> "RankingData":
        """Rows of a NumPy or SciPy matrix or of a frame of features, their grades, and either a query id a row or the size of each query.

        ``qid`` may be of any type and in any order. ``query_weight`` is one a query in order of first appearance, or
        one a row, equal within a query. ``X=None`` stands for no features, which is all that evaluation needs. ``offset``, one number
        per feature, is what its values are kept as differences from; by default it is chosen, where float32 needs one.

        >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["b", "a", "b"])
        >>> data.qid.tolist(), data.indptr.tolist(), data.y.tolist(), data.order.tolist()
        (['b', 'a'], [0, 2, 3], [0.0, 2.0, 1.0], [0, 2, 1])
        """
        grades = _numbers("y", y)
        table = _table(X, len(grades))
        matrix = _matrix(table)
        names = tuple(map(str, feature_names if feature_names is not None else getattr(X, "columns", _numbered_names(matrix))))
        if len(names) != matrix.shape[1]:
            raise DataError(f"feature_names has {len(names)} names for {matrix.shape[1]} features")
        if docid is not None and len(docid) != len(grades):
            raise DataError(f"docid has {len(docid)} entries for {len(grades)} rows")
        order, indptr, ids = grouping(qid, group, len(grades))
        matrix = _rows_in_order(matrix if offset is None or matrix.flags.writeable else np.array(matrix), order)
        kept = _offset(table, matrix, order, indptr, names, offset)
        return cls(
            X=sealed(matrix),
            offset=kept,
            y=_in_order(grades, order),
            indptr=indptr,
            qid=ids,
            feature_names=names,
            docid=None if docid is None else TextColumn.of(docid if order is None else [docid[i] for i in order]),
            sample_weight=None if sample_weight is None else _in_order(_weights("sample_weight", sample_weight, len(grades)), order),
            query_weight=None if query_weight is None else per_query_weight(query_weight, order, indptr),
            order=order,
        )

    @classmethod
    def from_frame(cls, frame: Any, columns: "Columns | None" = None) -> "RankingData":
        """Rows of a pandas, polars or Arrow frame; ``columns`` says which column is what."""
        from exactrank.data.format import Columns
        from exactrank.data.frame import from_frame

        return from_frame(frame, columns or Columns())

    @property
    def n_documents(self) -> int:
        """How many documents there are."""
        return len(self.y)

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self.qid)

    @property
    def n_features(self) -> int:
        """How many features a document has."""
        return int(self.X.shape[1])

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many documents each query has."""
        return sealed(np.diff(self.indptr))

    @cached_property
    def longest(self) -> int:
        """How many documents the query with the most has."""
        return int(self.sizes.max())

    @cached_property
    def weights(self) -> PerQuery:
        """The weight of each query: ``query_weight``, or ones where none was given."""
        return sealed(np.ones(self.n_queries)) if self.query_weight is None else self.query_weight

    @cached_property
    def moments(self) -> Moments:
        """The mean and the standard deviation of each feature over all documents, weighted as their queries; none may be missing."""
        return moments(self.X, None if self.query_weight is None else np.repeat(self.query_weight, self.sizes))

    def __repr__(self) -> str:
        return f"RankingData({self.n_queries:,} queries, {self.n_documents:,} documents, {self.n_features:,} features)"

    def grouped(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One value a row in the caller's order, put into the order of this object's documents."""
        self._check_length(values, "row")
        return _in_order(values, self.order)

    def ungrouped(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One value a document of this object, put back into the caller's row order."""
        self._check_length(values, "document")
        if self.order is None:
            return values
        back = np.empty_like(values)
        back[self.order] = values
        return back

    def _check_length(self, values: npt.NDArray[Any], each: str) -> None:
        if len(values) != self.n_documents:
            raise DataError(f"there are {len(values)} values for {self.n_documents} documents; give one per {each}")

    def feature(self, name: str) -> PerDocument:
        """A feature by its name, in the caller's row order: scores to compare with."""
        if name not in self.feature_names:
            known = ", ".join(self.feature_names[:10]) + (", ..." if self.n_features > 10 else "")
            raise DataError(f"there is no feature {name!r}; the data has {known or 'none'}")
        j = self.feature_names.index(name)
        return self.ungrouped(self.X[:, j] + (0.0 if self.offset is None else self.offset[j]))

    @property
    def values(self) -> npt.NDArray[Any]:
        """The features as they were given, one row per document: ``X``, or ``X`` plus ``offset`` in double precision."""
        return self.X if self.offset is None else self.X + self.offset

    def relative_to(self, offset: Offset | None) -> "RankingData":
        """The same features, kept as differences from ``offset``."""
        theirs, ours = (np.zeros(self.n_features) if each is None else each for each in (offset, self.offset))
        moved = np.flatnonzero(theirs != ours)
        if len(moved) == 0:
            return self
        X = np.array(self.X)
        for j in moved:
            X[:, j] = self.X[:, j] + (ours[j] - theirs[j])
        return replace(self, X=sealed(X), offset=theirs if np.any(theirs) else None)

    def take_queries(self, which: npt.ArrayLike) -> "RankingData":
        """The queries numbered ``which``, in that order and with repeats (a fold, a bootstrap sample).

        The result's rows count as the caller's order of their own.

        >>> data = RankingData.from_arrays(None, [0, 1, 2], qid=[7, 8, 8])
        >>> data.take_queries([1, 1]).y.tolist()
        [1.0, 2.0, 1.0, 2.0]
        """
        given = array_of(which)
        chosen = np.flatnonzero(given) if given.dtype == bool and given.shape == (self.n_queries,) else given
        if chosen.ndim != 1 or len(chosen) == 0 or chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= self.n_queries:
            raise DataError(f"take_queries needs at least one query number from 0 to {self.n_queries - 1}, or a mask of all queries")
        sizes = self.sizes[chosen]
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        rows = np.arange(indptr[-1]) + np.repeat(self.indptr[chosen] - indptr[:-1], sizes)
        return RankingData(
            X=sealed(self.X[rows]),
            y=sealed(self.y[rows]),
            indptr=sealed(indptr),
            qid=self.qid[chosen],
            feature_names=self.feature_names,
            docid=None if self.docid is None else self.docid.take(rows),
            comment=None if self.comment is None else self.comment.take(rows),
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
            query_weight=None if self.query_weight is None else self.query_weight[chosen],
            offset=self.offset,
        )


def per_query_weight(weight: npt.ArrayLike, order: Rows | None, indptr: Boundaries) -> PerQuery:
    """Query weights from one a query, or from one a row that agrees within each query."""
    queries, rows = len(indptr) - 1, int(indptr[-1])
    given = _numbers("query_weight", weight)
    if len(given) == queries:
        return _weights("query_weight", given, queries)
    if len(given) != rows:
        raise DataError(f"query_weight has {len(given)} entries; expected one a query ({queries}) or one a row ({rows})")
    grouped = _in_order(_weights("query_weight", given, rows), order)
    first = grouped[indptr[:-1]]
    differs = np.flatnonzero(grouped != np.repeat(first, np.diff(indptr)))
    if len(differs):
        row = differs[0] if order is None else order[differs[0]]
        raise DataError(f"query_weight of row {row} is {given[row]:g} but its query began with another; give one weight a query")
    return first


def check_grades(y: PerDocument) -> None:
    """Raise at the first grade that is not a finite number."""
    bad = np.flatnonzero(~np.isfinite(y))
    if len(bad):
        raise DataError(f"grade of row {bad[0]} is {y[bad[0]]}; grades must be finite numbers, so drop the row or judge it")


def _numbered_names(matrix: Matrix) -> list[str]:
    return [f"x{j}" for j in range(matrix.shape[1])]


def _table(given: Any, rows: int) -> npt.NDArray[Any]:
    """The features as an array of numbers of any type."""
    if given is None:
        return np.empty((rows, 0), np.float32)
    if hasattr(given, "toarray"):
        given = sealed(given.toarray())
    table = array_of(given)
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise DataError(f"X must be a table of numbers, documents x features; got shape {table.shape} of {table.dtype}")
    if len(table) != rows:
        raise DataError(f"X has {len(table)} rows but y has {rows}; they must agree")
    return table


def _matrix(given: npt.NDArray[Any]) -> Matrix:
    """The features as a float32 matrix in C order without infinities: a copy, or ``given`` itself if nobody can write into it."""
    with np.errstate(over="ignore"):
        matrix: Matrix = immutable(given) if is_immutable(given) and given.dtype == np.float32 else np.array(given, np.float32, order="C")
    cell = infinite_cell(matrix)
    if cell is not None:
        raise DataError(f"X[{cell[0]}, {cell[1]}] is {given[cell]}, which is not a finite float32; use NaN for a missing value")
    return matrix


def infinite_cell(X: Matrix) -> tuple[int, int] | None:
    """The first infinite value of a matrix in C order: its row and its column."""
    at = _core.summarise_columns(X, thread_count(None))[3] if X.size else -1
    return None if at < 0 else divmod(at, X.shape[1])


def _offset(
    given: npt.NDArray[Any], X: Matrix, order: Rows | None, indptr: Boundaries, names: tuple[str, ...], asked: npt.ArrayLike | None
) -> Offset | None:
    """The offset ``asked`` or, for None, the best; ``X``, which holds ``given`` as float32, gets the differences from it."""
    rows, bounds = some_queries(indptr, X.shape[1])
    sample = _doubles(given, rows if order is None else order[rows]) if loses_digits(given) else np.empty((0, 0))
    if asked is None:
        doubles = {j: _in_order(given[:, j].astype(np.float64), order) for j in suspects(sample, bounds)}
        found = best_offset(doubles, indptr, names)
        put(X, doubles, found)
        return found
    offset = np.array(asked, np.float64)
    if offset.shape != (X.shape[1],):
        raise DataError(f"offset has shape {offset.shape}; give one number for each of {X.shape[1]} features")
    put(X, {int(j): _in_order(given[:, j].astype(np.float64), order) for j in np.flatnonzero(offset)}, offset)
    warn({names[j]: _kept(sample[:, j], bounds, float(offset[j])) for j in suspects(sample - offset if sample.size else sample, bounds)})
    return offset if np.any(offset) else None


def _kept(values: PerDocument, indptr: Boundaries, offset: float) -> Kept:
    column = Column.of(values, indptr)
    return Kept(offset, column.lost(offset), column.different)


def _doubles(given: npt.NDArray[Any], rows: Rows) -> npt.NDArray[np.float64]:
    """The rows in double precision; without a copy where these are all rows as they are."""
    whole = len(rows) == len(given) and np.array_equal(rows, np.arange(len(rows)))
    return np.ascontiguousarray(given if whole else given[rows], np.float64)


def _numbers(name: str, values: npt.ArrayLike) -> PerDocument:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must hold numbers: {error}") from None
    if numbers.ndim != 1 or len(numbers) == 0:
        raise DataError(f"{name} must be a list of at least one number, got shape {numbers.shape}")
    if name == "y":
        check_grades(numbers)
    return numbers


def _weights(name: str, values: npt.ArrayLike, count: int) -> PerDocument:
    weights = _numbers(name, values)
    if len(weights) != count:
        raise DataError(f"{name} has {len(weights)} entries; expected {count}")
    _check_weights(name, weights)
    check_positive_weight(name, weights)
    return weights


def check_positive_weight(name: str, weights: PerDocument) -> None:
    """Raise where no weight is positive; part of some data may be like that, but not data from outside."""
    if not np.any(weights > 0):
        raise DataError(f"{name} is zero everywhere; at least one must be positive")


def _check_weights(name: str, weights: PerDocument) -> None:
    bad = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(bad):
        raise DataError(f"{name}[{bad[0]}] is {weights[bad[0]]}; weights must be finite and not negative")


def _check_permutation(order: Rows) -> None:
    seen = np.zeros(len(order), bool)
    if order.min() >= 0 and order.max() < len(order):
        seen[order] = True
    if not seen.all():
        raise DataError(f"order must hold each row number from 0 to {len(order) - 1} once")


def _rows_in_order(matrix: Matrix, order: Rows | None) -> Matrix:
    """The rows where they belong; a matrix that may be written is permuted in place, so that there is never a second one."""
    if order is None or matrix.shape[1] == 0:
        return matrix
    if not matrix.flags.writeable:
        return matrix[order]
    _core.permute_rows(matrix, order)
    return matrix


def _in_order(values: npt.NDArray[Any], order: Rows | None) -> npt.NDArray[Any]:
    return values if order is None else values[order]
