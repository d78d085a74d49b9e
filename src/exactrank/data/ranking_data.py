"""Judged documents, grouped by query.

The documents of a query are together: query ``q`` holds rows ``indptr[q]`` to ``indptr[q + 1]``. Rows may arrive in any
order; they are grouped stably by the first appearance of their query, and ``order`` remembers where each came from, so
that scores go in and come out in the caller's order.

All code, including the native core, may rely on the invariants of a `RankingData`: they are checked whenever one is made, also by
`RankingData(...)` and `dataclasses.replace`, and nothing can write into the arrays afterwards.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import xxhash

from exactrank import _core
from exactrank._support.arguments import check_kind
from exactrank._support.arrays import Boundaries, Ids, Matrix, PerDocument, PerQuery, Rows
from exactrank._support.tables import ROWS, Table, Tabular, Values, small_table
from exactrank.data.blocks import wide_blocks
from exactrank.data.dataset import Answerer, Change, Dataset, GlobalFacts, Kernels, Mask, Moments, Part, Question, Weigh
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


ROWS_PER_BLOCK = 1 << 14  # of moments
WIDE, CELLS_AT_ONCE = 64, 1 << 17  # of sums over rows
BLOCK_BYTES = 1 << 24  # of checksums
A = TypeVar("A")
R = TypeVar("R")
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


def check_data(data: object, *others: type, name: str = "data") -> None:
    """Raise unless the argument ``name`` is a `RankingData`, or of one of the ``others`` types."""
    check_kind(name, data, (RankingData, *others), "a RankingData, from er.read or RankingData.from_arrays")


@dataclass(frozen=True, eq=False, repr=False)
class RankingData(Tabular):
    """Immutable, ragged ranking data; build it with [`er.read`][exactrank.read], `from_arrays` or `from_frame`.

    ``X`` is float32, may be memory-mapped, and may hold NaN for a missing value; each consumer says how it treats
    those. ``y`` holds any finite grades. ``sample_weight`` has one number per document, ``query_weight`` one per query. A feature's
    value is ``X`` plus ``offset``, in double precision; there are offsets only if float32 cannot hold the values. Features that are
    categories hold codes, and ``levels`` maps their names to the texts that these stand for. ``extra_columns`` holds columns that are no
    features, one number per document, for measures such as ``revenue@10``. ``preferences`` are pairs of documents that a judge has put into
    an order (`er.pairs.with_pairs`). Arrays are copied unless they are immutable (a file mapped for reading, the arrays of other data).
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
    #: What is known of the data that this is a part of, for methods that depend on all of it; None where this is all.
    global_facts: GlobalFacts | None = None
    #: What computes for these documents in place of the kernels of this process: those of a backend.
    kernels: Kernels = field(default_factory=dict)
    #: Of ``X``, where a cache keeps them too; data that are made from these, by `dataclasses.replace` too, have none.
    by_column: FeatureColumns | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature_names", tuple(self.feature_names))
        object.__setattr__(self, "levels", {name: tuple(own) for name, own in self.levels.items()})
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
            met = np.zeros(len(order), np.bool_)
            if order.min() >= 0 and order.max() < len(order):
                met[order] = True
            if not np.all(met):
                raise DataError(f"order must hold each row number from 0 to {len(order) - 1} once")
        if self.offset is not None and not np.all(np.isfinite(self.offset)):
            raise DataError("offset must hold finite numbers, one per feature")
        if self.preferences is not None:
            self.preferences.check(self.indptr)

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
        expected = dict.fromkeys(("X", "docid", "comment", "sample_weight", "order"), self.n_documents)
        expected |= {"indptr": self.n_queries + 1, "query_weight": self.n_queries} | dict.fromkeys(
            ("feature_names", "offset"), self.n_features
        )
        for name, count in expected.items():
            part = getattr(self, name)
            if part is not None and len(part) != count:
                has = f"{self.n_documents} documents, {self.n_queries} queries and {self.n_features} features"
                raise DataError(f"{name} has {len(part)} entries; expected {count} for {has} (as y, qid and X have them)")
        if self.n_documents == 0:
            raise DataError("there are no documents; give at least one")

    def with_columns(self, columns: FeatureColumns | None) -> "RankingData":
        """The same data that knows the ``columns`` of its features."""
        made = replace(self)
        object.__setattr__(made, "by_column", columns)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"by_column": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies and unpickled data are as immutable as what they come from."""
        self.__dict__.update({name: seal(value) if isinstance(value, np.ndarray) else value for name, value in state.items()})

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
        extra_columns: Mapping[str, npt.ArrayLike] | None = None,
    ) -> "RankingData":
        """Rows of a NumPy or SciPy matrix or of a frame of features, their grades, and either a query id per row or the size of each query.

        ``qid`` may be of any type and in any order. ``query_weight`` has one number per query in order of first appearance, or
        one per row, equal within a query. ``X=None`` means no features; evaluation needs none. ``offset`` has one number per
        feature, from which its values are kept as differences; by default it is chosen if float32 needs one. ``extra_columns`` maps
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
        numbered = [f"x{j}" for j in range(matrix.shape[1])]
        names = tuple(map(str, feature_names if feature_names is not None else numbered))
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
            levels={names[j]: own for j, own in levels.items()},
            extra_columns=take_extra_columns(check_extra_columns(extra_columns or {}, len(grades), names), order),
        )

    @classmethod
    def from_frame(cls, frame: Any, columns: "Columns | None" = None) -> "RankingData":
        """Rows of a pandas, polars or Arrow frame; ``columns`` says which column is what."""
        from exactrank.data.formats.base import Columns
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
        return seal(np.diff(self.indptr))

    @cached_property
    def longest(self) -> int:
        """How many documents the query with the most has, also of the whole that this is a part of."""
        return int(self.sizes.max()) if self.global_facts is None else self.global_facts.longest

    @cached_property
    def grade_range(self) -> tuple[float, float]:
        """The least and the largest grade, also of the whole that this is a part of."""
        return (float(self.y.min()), float(self.y.max())) if self.global_facts is None else self.global_facts.grades

    @cached_property
    def weights(self) -> PerQuery:
        """The weight of each query: ``query_weight``, or ones if none was given."""
        return seal(np.ones(self.n_queries)) if self.query_weight is None else self.query_weight

    @cached_property
    def moments(self) -> Moments:
        """The mean and the standard deviation of each feature over all documents, weighted like their queries; none may be missing."""
        ends = self.indptr[wide_blocks(self.indptr)]
        return moments(self.X, None if self.query_weight is None else np.repeat(self.query_weight, self.sizes), ends)

    @property
    def weighs_documents(self) -> bool:
        """Do documents have weights of their own?"""
        return self.sample_weight is not None

    @property
    def has_docid(self) -> bool:
        """Do documents have ids?"""
        return self.docid is not None

    @property
    def has_pairs(self) -> Mask:
        """Does each query have pairs that are given beside the grades?"""
        pairs = self.preferences
        return np.zeros(self.n_queries, np.bool_) if pairs is None else np.asarray(np.diff(pairs.by_query(self.indptr)) > 0)

    @property
    def grades_and_pairs(self) -> tuple[npt.NDArray[np.float64], Mask]:
        """The least and the largest grade of each query; does it have pairs beside the grades?"""
        starts = self.indptr[:-1]
        return np.stack([np.minimum.reduceat(self.y, starts), np.maximum.reduceat(self.y, starts)], axis=1), self.has_pairs

    @property
    def checksum(self) -> str:
        """A hash of the content, see [`checksum`][exactrank.checksum]."""
        return checksum(self)

    @property
    def is_local(self) -> bool:
        """The documents are in this process."""
        return True

    @property
    def documents_per_round(self) -> int:
        """A question here takes no time of its own."""
        return 0

    def ask(self, question: Question[A, R]) -> R:
        """Return the result of ``question`` about this data, which is one part in this process; see `exactrank.data.dataset`."""
        return Part(self).ask(question)

    def with_memo(self) -> Answerer:
        """Return what answers the same questions, and remembers what they compute once."""
        return Part(self)

    def share_memo(self, other: Dataset, parts: Answerer) -> Answerer | None:
        """Return a part that shares what ``parts`` remember of the ``other`` data, if that has the same documents."""
        return parts.of(self) if isinstance(parts, Part) and parts.data.X is self.X else None

    def single_part(self) -> Part:
        """Return the part that this data is."""
        return Part(self)

    def select(self, which: Mask) -> "RankingData":
        """Return the queries for which ``which`` holds."""
        return self.take_queries(which)

    def reweigh(self, weigh: Weigh) -> "RankingData":
        """Return the same queries with the weights that ``weigh`` makes of theirs."""
        return replace(self, query_weight=weigh(0, self.weights))

    def transform(self, change: Change, query_weight: PerQuery | None = None, facts: GlobalFacts | None = None) -> "RankingData":
        """Return what ``change`` makes of this data, which is all there is."""
        return change(self)

    def restore_order(self, given: Dataset, scores: PerDocument) -> "tuple[RankingData, PerDocument]":
        """Return the data as it was ``given``, and ``scores`` of its documents."""
        data = given.gather()
        return data, data.group(self.ungroup(scores))

    def without_levels(self) -> "RankingData":
        """Return the same data, whose codes of categories count as numbers."""
        return replace(self, levels={}) if self.levels else self

    def judgments(self) -> "RankingData":
        """Return data with the grades of all documents: itself."""
        return self

    def gather(self) -> "RankingData":
        """Return itself."""
        return self

    def forget(self) -> None:
        """Do nothing: memory is given back with this object."""

    def __repr__(self) -> str:
        return f"RankingData({self.n_queries:,} queries, {self.n_documents:,} documents, {self.n_features:,} features)"

    def to_frame(self) -> Any:
        """One row per document, in the caller's row order, with the columns that `from_frame` reads; see there for the names.

        It is a pandas frame, or a polars frame or an Arrow table where pandas is not installed.
        """
        taken = [name for name in self.feature_names if name in self._parts(slice(0))]
        if taken:
            raise DataError(f"the feature {taken[0]!r} is called as another column of the frame is; rename it")
        return super().to_frame()

    def _columns(self) -> dict[str, Values]:
        rows = slice(None) if self.order is None else self.ungroup(np.arange(self.n_documents))
        X = self.values if self.order is None else self.values[rows]
        return self._parts(rows) | {name: self._texts(name, X[:, j]) for j, name in enumerate(self.feature_names)}

    def _texts(self, name: str, codes: npt.NDArray[Any]) -> Values:
        """The values of a feature, as text where it is a category."""
        if name not in self.levels:
            return codes
        return [None if code != code else self.levels[name][int(code)] for code in codes.tolist()]

    def _parts(self, rows: Rows | slice) -> dict[str, Values]:
        """The columns beside the features, of some documents."""
        from exactrank.data.formats.base import Columns

        names = Columns()
        docid = rows_of(self.docid, rows)
        found: dict[str, Values | None] = {
            names.query: np.repeat(self.qid, self.sizes)[rows],
            names.doc: None if docid is None else docid.tolist(),
            names.relevance: self.y[rows],
            names.sample_weight: rows_of(self.sample_weight, rows),
            names.query_weight: None if self.query_weight is None else np.repeat(self.query_weight, self.sizes)[rows],
        }
        return {name: values for name, values in (found | dict(take_extra_columns(self.extra_columns, rows))).items() if values is not None}

    def _glance(self) -> Table:
        few = slice(ROWS) if self.order is None else self.ungroup(np.arange(self.n_documents))[:ROWS]
        X = self.X[few] + (0.0 if self.offset is None else self.offset)
        (query, ids), *others = self._parts(few).items()
        features = [(name, self._texts(name, X[:, j])) for j, name in enumerate(self.feature_names)]
        return small_table(repr(self), [(query, list(map(str, ids))), *others, *features], self.n_documents)

    def group(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One value per row in the caller's order, put into the order of this object's documents."""
        self._check_length(values, "row")
        return rows_of(values, self.order)

    def ungroup(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One value per document of this object, put back into the caller's row order."""
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
        return self.ungroup(self.X[:, j] + (0.0 if self.offset is None else self.offset[j]))

    def column(self, name: str) -> PerDocument:
        """A kept column or a feature by its name, one number per document of this object."""
        if name in self.extra_columns:
            return self.extra_columns[name]
        if name not in self.feature_names:
            known = [*self.extra_columns, *self.feature_names]
            has = (
                f"it has {', '.join(known[:10])}{', ...' if len(known) > 10 else ''}"
                if known
                else "it has neither kept columns nor features"
            )
            raise DataError(
                f"the data has no column {name!r}; {has}; of a table, keep it by Columns(keep=({name!r},)) (--keep-columns {name})"
            )
        return self.group(self.feature(name)).astype(np.float64)

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
        X = empty_matrix(self.X.shape, self.X)
        np.copyto(X, self.X)
        X[:, moved] += ours[moved] - theirs[moved]
        return replace(self, X=seal(X), offset=theirs if np.any(theirs) else None)

    def take_queries(self, which: npt.ArrayLike) -> "RankingData":
        """The queries numbered ``which``, in that order and with repeats (a fold, a bootstrap sample).

        The order of the result's rows is the caller's order for the result.

        >>> data = RankingData.from_arrays(None, [0, 1, 2], qid=[7, 8, 8])
        >>> data.take_queries([1, 1]).y.tolist()
        [1.0, 2.0, 1.0, 2.0]
        """
        given = array_of(which)
        chosen = np.flatnonzero(given) if given.dtype == bool and given.shape == (self.n_queries,) else given
        if chosen.ndim != 1 or len(chosen) == 0 or chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= self.n_queries:
            raise DataError(f"take_queries needs at least one query number from 0 to {self.n_queries - 1}, or a mask of all queries")
        rows, indptr = query_rows(self.indptr, chosen)
        return RankingData(
            X=seal(take_rows(self.X, rows)),
            y=seal(self.y[rows]),
            indptr=seal(indptr),
            qid=self.qid[chosen],
            feature_names=self.feature_names,
            docid=rows_of(self.docid, rows),
            comment=rows_of(self.comment, rows),
            sample_weight=rows_of(self.sample_weight, rows),
            query_weight=rows_of(self.query_weight, chosen),
            offset=self.offset,
            levels=self.levels,
            extra_columns=take_extra_columns(self.extra_columns, rows),
            preferences=None if self.preferences is None else self._pairs_of(self.preferences, chosen, indptr),
            kernels=self.kernels,
        )

    def _pairs_of(self, preferences: Preferences, chosen: Rows, indptr: Boundaries) -> Preferences | None:
        """The pairs of the queries ``chosen``, whose documents get these boundaries; None where they have none."""
        pairs, bounds = query_rows(preferences.by_query(self.indptr), chosen)
        shift = np.repeat(indptr[:-1] - self.indptr[chosen], np.diff(bounds))
        better, worse = (rows[pairs] + shift for rows in (preferences.better, preferences.worse))
        return Preferences(better, worse, preferences.weight[pairs]) if len(pairs) else None


def moments(X: Matrix, weight: PerDocument | None = None, ends: Boundaries | None = None) -> Moments:
    """The mean and the standard deviation of each column, 0 where single precision cannot tell a column from a constant one.

    A row may have a ``weight``: that of 2 counts as two rows. Sums are taken by blocks of rows, which ``ends`` bound.

    >>> moments(np.array([[1.0, 5.0], [3.0, 5.0]], np.float32))
    (array([2., 5.]), array([1., 0.]))
    >>> moments(np.array([[1.0, 5.0], [4.0, 5.0]], np.float32), np.array([2.0, 1.0]))
    (array([2., 5.]), array([1.41421356, 0.        ]))
    """
    bounds = np.array([*range(0, len(X), ROWS_PER_BLOCK), len(X)]) if ends is None else ends
    share = None if weight is None else weight / weight.mean()
    mean = np.sum(sums_by_block(X, share, bounds), axis=0) / len(X)
    return moments_of(mean, np.sum(sums_by_block(X, share, bounds, mean), axis=0) / len(X))


def sums_by_block(
    X: Matrix, share: PerDocument | None, ends: Boundaries, mean: npt.NDArray[np.float64] | None = None
) -> list[npt.NDArray[np.float64]]:
    """The sum of each column, or of the squares of what it differs from ``mean``, for each block of rows; rows count by their ``share``."""
    found = []
    for first, last in pairwise(ends.tolist()):

        def terms(rows: slice) -> npt.NDArray[Any]:
            own: Any = 1.0 if share is None else share[rows, np.newaxis]
            return np.asarray(own * X[rows] if mean is None else own * (X[rows] - mean) ** 2)

        found.append(summed(terms, slice(first, last), X.shape[1]))
    return found


def moments_of(mean: npt.NDArray[np.float64], variance: npt.NDArray[np.float64]) -> Moments:
    """Mean and deviation, 0 where single precision cannot tell a column from a constant one."""
    spread = np.sqrt(variance)
    return np.asarray(mean), np.where(spread <= 1e-7 * np.abs(mean), 0.0, spread)


def summed(terms: Callable[[slice], npt.NDArray[Any]], rows: slice, width: int) -> npt.NDArray[np.float64]:
    """The sum over ``rows`` of ``terms`` of ``width`` columns; NumPy adds wide rows one after the other, so few are held at a time.

    >>> summed(lambda rows: np.arange(1000.0).reshape(10, 100)[rows], slice(0, 10), 100)[:2].tolist()
    [4500.0, 4510.0]
    """
    step = rows.stop - rows.start if width < WIDE else max(1, CELLS_AT_ONCE // width)
    total: npt.NDArray[np.float64] = np.empty((0, width))
    for first in range(rows.start, rows.stop, step):
        part = terms(slice(first, min(first + step, rows.stop)))
        total = (np.concatenate([total, part]) if len(total) else part).sum(axis=0, dtype=np.float64)[np.newaxis]
    return np.asarray(total[0])


def checksum(data: RankingData) -> str:
    """The xxh3 hash (128 bits, hexadecimal) of X, y, indptr, any offset, levels, kept columns and pairs: did a model see this data?

    It is taken block by block, so a memory-mapped X stays on its disk.

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
