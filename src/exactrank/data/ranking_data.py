"""Judged documents, grouped by query.

The documents of a query are together: query ``q`` holds rows ``indptr[q]`` to ``indptr[q + 1]``. Rows may arrive in any order. They are
grouped stably, by the first appearance of their query, and ``order`` holds the original row of each document, so that scores go in and
come out in the caller's order.

All code, including the native core, may rely on the invariants of a `RankingData`: every new object is checked, also those of
`dataclasses.replace`, and nothing can write into its arrays.
"""

import json
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import xxhash

from exactrank import _core
from exactrank._support.arguments import check_kind
from exactrank._support.arrays import Boundaries, Floats, Ids, Matrix, PerDocument, PerQuery, Rows, group_numbers
from exactrank._support.tables import ROWS, Table, Tabular, Values, small_table
from exactrank.data.dataset import Answerer, Change, Dataset, DatasetBase, GlobalFacts, Kernels, Mask, Part, Question, Weigh
from exactrank.data.duplicates import check_features
from exactrank.data.extra_columns import ExtraColumns, check_extra_columns, take_extra_columns
from exactrank.data.formats.text_column import TextColumn, rows_of
from exactrank.data.immutable import immutable, seal
from exactrank.data.levels import Levels, check_levels
from exactrank.data.precision import Offset, choose_offset
from exactrank.data.preferences import Preferences
from exactrank.data.scratch_arrays import FeatureColumns, empty_matrix, take_rows
from exactrank.data.validation import array_of, check_numbers, grouping, matrix_of, numbers_of, per_query_weight, query_rows
from exactrank.errors import DataError

if TYPE_CHECKING:
    from exactrank.data.formats.base import Columns

BLOCK_BYTES = 1 << 24  #: hashed at a time
A = TypeVar("A")
R = TypeVar("R")
Number = TypeVar("Number", bound=np.generic)
#: Type and number of dimensions of each array whose type is fixed.
ARRAYS: dict[str, tuple[type, int]] = {
    "X": (np.float32, 2),
    "y": (np.float64, 1),
    "indptr": (np.int64, 1),
    "sample_weight": (np.float64, 1),
    "query_weight": (np.float64, 1),
    "order": (np.int64, 1),
    "offset": (np.float64, 1),
}


def check_data(data: object, *alternatives: type, name: str = "data") -> None:
    """Raise unless ``data``, the argument ``name``, is a `RankingData` or of one of the ``alternatives``."""
    check_kind(name, data, (RankingData, *alternatives), "a RankingData, from er.read or RankingData.from_arrays")


@dataclass(frozen=True, eq=False, repr=False)
class RankingData(DatasetBase, Tabular):
    """Immutable, ragged ranking data; build it with [`er.read`][exactrank.read], `from_arrays` or `from_frame`.

    ``X`` is float32, may be memory-mapped, and may hold NaN for a missing value; each method says how it treats missing values. ``y``
    holds any finite grades. ``sample_weight`` has one number per document, ``query_weight`` one per query. The value of a feature is ``X``
    plus ``offset``, in double precision; there are offsets only if float32 cannot hold the values. Features that are categories hold codes,
    and ``levels`` maps their names to the texts of these codes. ``extra_columns`` holds columns that are not features, one number per
    document, for measures such as ``revenue@10``. ``preferences`` are pairs of documents that a judge has put into an order
    (`er.pairs.with_pairs`). Arrays are copied unless they are immutable (a file mapped for reading, the arrays of other data).
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
    levels: Levels = field(default_factory=dict)
    extra_columns: ExtraColumns = field(default_factory=dict)
    preferences: Preferences | None = None
    #: Facts about the dataset that this is a part of, for methods that depend on all of it; None if this is the whole dataset.
    global_facts: GlobalFacts | None = None
    #: Kernels of a backend, which replace those of this process.
    kernels: Kernels = field(default_factory=dict)
    #: The columns of ``X``, if a cache holds them; lost when data is derived from this, also by `dataclasses.replace`.
    by_column: FeatureColumns | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature_names", tuple(self.feature_names))
        object.__setattr__(self, "levels", {name: tuple(texts) for name, texts in self.levels.items()})
        check_features(self.feature_names)
        check_levels(self.levels, self.feature_names)
        self._check_shapes()
        for name in (*ARRAYS, "qid"):
            if (array := getattr(self, name)) is not None:
                object.__setattr__(self, name, immutable(array))
        if self.indptr[0] != 0 or self.indptr[-1] != len(self.y) or not np.all(self.indptr[1:] > self.indptr[:-1]):
            raise DataError("indptr must rise from 0 to the number of documents, and every query must have a document")
        for name in ("y", "sample_weight", "query_weight"):
            if (numbers := getattr(self, name)) is not None:
                check_numbers(name, numbers, some_positive=False)
        object.__setattr__(self, "extra_columns", check_extra_columns(self.extra_columns, self.n_documents, self.feature_names))
        if (order := self.order) is not None:
            present = np.zeros(len(order), np.bool_)
            if order.min() >= 0 and order.max() < len(order):
                present[order] = True
            if not np.all(present):
                raise DataError(f"order must hold each row number from 0 to {len(order) - 1} once")
        if self.offset is not None and not np.all(np.isfinite(self.offset)):
            raise DataError("offset must hold finite numbers, one per feature")
        if self.preferences is not None:
            self.preferences.check(self.indptr)

    def _check_shapes(self) -> None:
        """Raise if an array has the wrong type, or a length that does not fit the other arrays."""
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
        expected = dict.fromkeys(("X", "docid", "comment", "sample_weight", "order"), self.n_documents)
        expected |= {"indptr": self.n_queries + 1, "query_weight": self.n_queries}
        expected |= dict.fromkeys(("feature_names", "offset"), self.n_features)
        for name, count in expected.items():
            values = getattr(self, name)
            if values is not None and len(values) != count:
                has = f"{self.n_documents} documents, {self.n_queries} queries and {self.n_features} features"
                raise DataError(f"{name} has {len(values)} entries; expected {count} for {has} (as y, qid and X have them)")
        if self.n_documents == 0:
            raise DataError("there are no documents; give at least one")

    def with_columns(self, columns: FeatureColumns | None) -> "RankingData":
        """Return the same data with the ``columns`` of its features."""
        data = replace(self)
        object.__setattr__(data, "by_column", columns)
        return data

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"by_column": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Seal the arrays, so that copies and unpickled data are immutable, too."""
        self.__dict__.update({name: seal(value) if isinstance(value, np.ndarray) else value for name, value in state.items()})

    @classmethod
    def from_arrays(
        cls,
        X: object,
        y: npt.ArrayLike,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        docid: Sequence[object] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        query_weight: npt.ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        offset: npt.ArrayLike | None = None,
        extra_columns: Mapping[str, npt.ArrayLike] | None = None,
    ) -> "RankingData":
        """Return data from features (a NumPy or SciPy matrix, or a frame), grades, and one query id per row or the size of each query.

        ``qid`` may be of any type and in any order. ``query_weight`` has one number per query in order of first appearance, or
        one per row, equal within a query. ``X=None`` means no features; evaluation needs none. ``offset`` has one number per
        feature, which is subtracted from its values; by default it is chosen if float32 needs one. ``extra_columns`` maps
        names to one number per row. They are not features, but measures such as ``revenue@10`` can read them.

        >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["b", "a", "b"])
        >>> data.qid.tolist(), data.indptr.tolist(), data.y.tolist(), data.order.tolist()
        (['b', 'a'], [0, 2, 3], [0.0, 2.0, 1.0], [0, 2, 1])
        """
        grades = numbers_of("y", y)
        levels: dict[int, tuple[str, ...]] = {}
        if hasattr(X, "columns"):
            from exactrank.data.frame import with_codes

            feature_names = feature_names or tuple(map(str, getattr(X, "column_names", X.columns)))
            X, levels = with_codes(X)
        table, matrix = matrix_of(X, len(grades))
        names = tuple(f"x{j}" for j in range(matrix.shape[1])) if feature_names is None else tuple(map(str, feature_names))
        if len(names) != matrix.shape[1]:
            raise DataError(f"feature_names has {len(names)} names for {matrix.shape[1]} features")
        if docid is not None and len(docid) != len(grades):
            raise DataError(f"docid has {len(docid)} entries for {len(grades)} rows")
        order, indptr, ids = grouping(qid, group, len(grades))
        if not matrix.flags.writeable and (order is not None or offset is not None):
            matrix = np.array(matrix)
        if order is not None and matrix.size:
            _core.permute_rows(matrix, order)  # in place, so that there is never a second matrix
        return cls(
            offset=choose_offset(table, matrix, order, indptr, names, offset),
            X=seal(matrix),
            y=rows_of(grades, order),
            indptr=indptr,
            qid=ids,
            feature_names=names,
            docid=None if docid is None else TextColumn.of(docid if order is None else [docid[i] for i in order]),
            sample_weight=None if sample_weight is None else rows_of(numbers_of("sample_weight", sample_weight, len(grades)), order),
            query_weight=None if query_weight is None else per_query_weight(query_weight, order, indptr),
            order=order,
            levels={names[j]: texts for j, texts in levels.items()},
            extra_columns=take_extra_columns(check_extra_columns(extra_columns or {}, len(grades), names), order),
        )

    @classmethod
    def from_frame(cls, frame: object, columns: "Columns | None" = None) -> "RankingData":
        """Return the rows of a pandas, polars or Arrow frame; ``columns`` names the columns that are not features."""
        from exactrank.data.formats.base import Columns
        from exactrank.data.frame import from_frame

        return from_frame(frame, columns or Columns())

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @cached_property
    def grade_range(self) -> tuple[float, float]:
        """Smallest and largest grade, also in the other parts of the same dataset."""
        return (float(self.y.min()), float(self.y.max())) if self.global_facts is None else self.global_facts.grades

    @property
    def query_numbers(self) -> Rows:
        """Number of the query of each document."""
        return group_numbers(self.sizes)

    def without_features(self) -> "RankingData":
        """Return the same judgments with no features."""
        return replace(self, X=np.empty((self.n_documents, 0), np.float32), feature_names=(), offset=None, levels={})

    @property
    def weighs_documents(self) -> bool:
        """True if documents have weights."""
        return self.sample_weight is not None

    @property
    def has_docid(self) -> bool:
        """True if documents have ids."""
        return self.docid is not None

    @property
    def native_preferences(self) -> _core.Preferences | None:
        """The pairs as the kernels take them."""
        return None if self.preferences is None else self.preferences.native(self.indptr)

    @property
    def has_pairs(self) -> Mask:
        """True for each query that has pairs besides the grades."""
        pairs = self.preferences
        return np.zeros(self.n_queries, np.bool_) if pairs is None else np.asarray(np.diff(pairs.by_query(self.indptr)) > 0)

    @property
    def grades_and_pairs(self) -> tuple[npt.NDArray[np.float64], Mask]:
        """Smallest and largest grade of each query, and whether the query has pairs besides the grades."""
        starts = self.indptr[:-1]
        return np.stack([np.minimum.reduceat(self.y, starts), np.maximum.reduceat(self.y, starts)], axis=1), self.has_pairs

    @property
    def checksum(self) -> str:
        """Hash of the content, see [`checksum`][exactrank.checksum]."""
        return checksum(self)

    @property
    def is_local(self) -> bool:
        """True: the documents are in this process."""
        return True

    @property
    def documents_per_round(self) -> int:
        """0: a question in this process has no fixed cost."""
        return 0

    def ask(self, question: Question[A, R]) -> R:
        """Return the result of ``question`` about this data; see `exactrank.data.dataset`."""
        return Part(self).ask(question)

    def with_memo(self) -> Answerer:
        """Return a part with a memo of what questions compute once."""
        return Part(self)

    def share_memo(self, base: Dataset, parts: Answerer) -> Answerer | None:
        """Return a part with the memo of ``parts``, the answerer of ``base``, if both have the same documents."""
        return parts.of(self) if isinstance(parts, Part) and parts.data.X is self.X else None

    def single_part(self) -> Part:
        """Return this data as a part."""
        return Part(self)

    def select(self, which: Mask) -> "RankingData":
        """Return the queries that the mask ``which`` selects."""
        return self.take_queries(which)

    def reweigh(self, weigh: Weigh) -> "RankingData":
        """Return the same queries with the weights that ``weigh`` returns."""
        return replace(self, query_weight=weigh(0, self.weights))

    def transform(self, change: Change, query_weight: PerQuery | None = None, facts: GlobalFacts | None = None) -> "RankingData":
        """Return this data after ``change``."""
        return change(self)

    def restore_order(self, original: Dataset, scores: PerDocument) -> "tuple[RankingData, PerDocument]":
        """Return the ``original`` data, which this was prepared from, and the ``scores`` in its order."""
        data = original.gather()
        return data, data.group(self.ungroup(scores))

    def without_levels(self) -> "RankingData":
        """Return the same data with the codes of categories as plain numbers."""
        return replace(self, levels={}) if self.levels else self

    def judgments(self) -> "RankingData":
        """Return this data, which has the grades of all documents."""
        return self

    def gather(self) -> "RankingData":
        """Return this data, which is in this process."""
        return self

    def forget(self) -> None:
        """Release nothing: memos live no longer than their part."""

    def __repr__(self) -> str:
        return f"RankingData({self.n_queries:,} queries, {self.n_documents:,} documents, {self.n_features:,} features)"

    def to_frame(self) -> Any:
        """Return one row per document, in the caller's row order, with the columns that `from_frame` reads.

        The result is a pandas frame, or a polars frame or an Arrow table if pandas is not installed.
        """
        clashes = [name for name in self.feature_names if name in self._parts(slice(0))]
        if clashes:
            raise DataError(f"the feature {clashes[0]!r} has the name of another column of the frame; rename it")
        return super().to_frame()

    def _columns(self) -> dict[str, Values]:
        rows = slice(None) if self.order is None else self.ungroup(np.arange(self.n_documents))
        X = self.values if self.order is None else self.values[rows]
        return self._parts(rows) | {name: self._texts(name, X[:, j]) for j, name in enumerate(self.feature_names)}

    def _texts(self, name: str, codes: Matrix | PerDocument) -> Values:
        """Return the values of a feature, as texts if it is a category."""
        if name not in self.levels:
            return codes
        return [None if code != code else self.levels[name][int(code)] for code in codes.tolist()]

    def _parts(self, rows: Rows | slice) -> dict[str, Values]:
        """Return the columns besides the features, of some documents."""
        from exactrank.data.formats.base import Columns

        names = Columns()
        docid = rows_of(self.docid, rows)
        columns: dict[str, Values | None] = {
            names.query: np.repeat(self.qid, self.sizes)[rows],
            names.doc: None if docid is None else docid.tolist(),
            names.relevance: self.y[rows],
            names.sample_weight: rows_of(self.sample_weight, rows),
            names.query_weight: None if self.query_weight is None else np.repeat(self.query_weight, self.sizes)[rows],
        }
        return {
            name: values for name, values in (columns | dict(take_extra_columns(self.extra_columns, rows))).items() if values is not None
        }

    def _glance(self) -> Table:
        rows = slice(ROWS) if self.order is None else self.ungroup(np.arange(self.n_documents))[:ROWS]
        X = self.X[rows] + (0.0 if self.offset is None else self.offset)
        (query, ids), *columns = self._parts(rows).items()
        features = [(name, self._texts(name, X[:, j])) for j, name in enumerate(self.feature_names)]
        return small_table(repr(self), [(query, list(map(str, ids))), *columns, *features], self.n_documents)

    def group(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return one value per row in the caller's order, in the grouped order of ``X`` and ``y``."""
        self._check_length(values, "row")
        return rows_of(values, self.order)

    def ungroup(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return one value per document in the grouped order, in the caller's row order."""
        self._check_length(values, "document")
        if self.order is None:
            return values
        by_row = np.empty_like(values)
        by_row[self.order] = values
        return by_row

    def _check_length(self, values: Sized, unit: str) -> None:
        if len(values) != self.n_documents:
            raise DataError(f"there are {len(values)} values for {self.n_documents} documents; give one per {unit}")

    def feature(self, name: str) -> PerDocument:
        """Return a feature by its name, in the caller's row order."""
        if name not in self.feature_names:
            raise DataError(f"there is no feature {name!r}; the data has {_first_names(self.feature_names) or 'none'}")
        j = self.feature_names.index(name)
        return self.ungroup(self.X[:, j] + (0.0 if self.offset is None else self.offset[j]))

    def column(self, name: str) -> PerDocument:
        """Return an extra column or a feature by its name, one number per document in the grouped order."""
        if name in self.extra_columns:
            return self.extra_columns[name]
        if name not in self.feature_names:
            names = _first_names([*self.extra_columns, *self.feature_names]) or "neither extra columns nor features"
            raise DataError(
                f"the data has no column {name!r}; it has {names}; of a table, keep it by Columns(keep=({name!r},)) (--keep-columns {name})"
            )
        return self.group(self.feature(name)).astype(np.float64)

    @property
    def values(self) -> Matrix | Floats:
        """Features as they were given, one row per document: ``X``, or ``X`` plus ``offset`` in double precision."""
        return self.X if self.offset is None else self.X + self.offset

    def relative_to(self, offset: Offset | None) -> "RankingData":
        """Return the same features as differences from ``offset``."""
        new, old = (np.zeros(self.n_features) if numbers is None else numbers for numbers in (offset, self.offset))
        changed = np.flatnonzero(new != old)
        if len(changed) == 0:
            return self
        X = empty_matrix(self.X.shape, self.X)
        np.copyto(X, self.X)
        X[:, changed] += old[changed] - new[changed]
        return replace(self, X=seal(X), offset=new if np.any(new) else None)

    def take_queries(self, which: npt.ArrayLike) -> "RankingData":
        """Return the queries numbered ``which``, in that order and with repeats, or those that a mask selects (a fold, a bootstrap sample).

        The rows of the result, as they are, are the caller's order of the result.

        >>> data = RankingData.from_arrays(None, [0, 1, 2], qid=[7, 8, 8])
        >>> data.take_queries([1, 1]).y.tolist()
        [1.0, 2.0, 1.0, 2.0]
        """
        queries = array_of(which)
        if queries.dtype == bool and queries.shape == (self.n_queries,):
            queries = np.flatnonzero(queries)
        if queries.ndim != 1 or len(queries) == 0 or queries.dtype.kind not in "iu" or queries.min() < 0 or queries.max() >= self.n_queries:
            raise DataError(f"take_queries needs at least one query number from 0 to {self.n_queries - 1}, or a mask of all queries")
        rows, indptr = query_rows(self.indptr, queries)
        return RankingData(
            X=seal(take_rows(self.X, rows)),
            y=seal(self.y[rows]),
            indptr=seal(indptr),
            qid=self.qid[queries],
            feature_names=self.feature_names,
            docid=rows_of(self.docid, rows),
            comment=rows_of(self.comment, rows),
            sample_weight=rows_of(self.sample_weight, rows),
            query_weight=rows_of(self.query_weight, queries),
            offset=self.offset,
            levels=self.levels,
            extra_columns=take_extra_columns(self.extra_columns, rows),
            preferences=None if self.preferences is None else self._pairs_of(self.preferences, queries, indptr),
            kernels=self.kernels,
        )

    def _pairs_of(self, preferences: Preferences, queries: Rows, indptr: Boundaries) -> Preferences | None:
        """Return the pairs of these ``queries``, which get the boundaries ``indptr``; None if there are none."""
        pairs, bounds = query_rows(preferences.by_query(self.indptr), queries)
        shift = np.repeat(indptr[:-1] - self.indptr[queries], np.diff(bounds))
        better, worse = (rows[pairs] + shift for rows in (preferences.better, preferences.worse))
        return Preferences(better, worse, preferences.weight[pairs]) if len(pairs) else None


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


def checksum(data: RankingData) -> str:
    """Return the xxh3 hash (128 bits, hexadecimal) of X, y, indptr, any offset, levels, extra columns and pairs.

    It identifies the data that a model was trained on. Blocks are hashed one by one, so a memory-mapped X stays on its disk.

    >>> checksum(RankingData.from_arrays([[1.0], [2.0]], [0, 1], group=[2]))
    'f1b04bc65a90abcceb02f1a58c2318cf'
    """
    digest = xxhash.xxh3_128()
    pairs = () if data.preferences is None else (data.preferences.better, data.preferences.worse, data.preferences.weight)
    for array in (data.X, data.y, data.indptr, data.offset, *pairs):
        if array is not None and array.size:
            rows = max(1, BLOCK_BYTES // array[:1].nbytes)
            for start in range(0, len(array), rows):
                digest.update(np.ascontiguousarray(array[start : start + rows]).data)
    if data.levels:
        digest.update(json.dumps(sorted(data.levels.items())).encode())
    for name, values in sorted(data.extra_columns.items()):
        digest.update(name.encode("utf-8", "surrogateescape"))
        digest.update(values.data)
    return digest.hexdigest()
