"""Tables of judged documents: pandas, polars and Arrow frames.

A row is a document, and `Columns` says which column holds its query id, its grade and so on. Every table takes one way:

    table -> layout (which column has which part) -> source -> blocks (some rows, as arrays) -> RankingData (grouped by query)

A frame is one block, a file (`parquet.py`, `csv.py`) many. Each column goes straight into its place in X, so nothing
of the table's width exists in float64; features that float32 cannot hold (`precision.py`) are read a second time. A
null in a feature is a missing value (NaN); a row without a query id or a grade is an error.
"""

import importlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import Boundaries, Ids, Matrix, PerDocument, Rows
from exactrank.data.format import Columns
from exactrank.data.grouping import group_rows
from exactrank.data.immutable import sealed
from exactrank.data.precision import LOOKED_AT, Offset, best_offset, put, suspects
from exactrank.data.ranking_data import RankingData, infinite_cell
from exactrank.data.stream import Block, Stream
from exactrank.data.text_column import TextColumn
from exactrank.errors import DataError, IncompatibleError

if TYPE_CHECKING:
    import narwhals as nw

PARTS = {"query": "query id", "relevance": "grade", "doc": "document id", "sample_weight": "sample weight", "query_weight": "query weight"}
ROW_LABEL = re.compile(r"|__index_level_\d+__|Unnamed: \d+")  # where pandas leaves its index; never meant as a feature


def from_frame(frame: Any, columns: Columns) -> RankingData:
    """Rows of a pandas, polars or Arrow frame, in any order; the frame stays as it is.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"query_id": ["b", "a", "b"], "relevance": [0, 1, 2], "bm25": [0.5, 1.5, None]})
    >>> data = from_frame(table, Columns())
    >>> data.feature_names, data.qid.tolist(), data.y.tolist(), data.X.ravel().tolist()
    (('bm25',), ['b', 'a'], [0.0, 2.0, 1.0], [0.5, nan, 1.5])
    """
    table = table_of(frame, "frame")
    layout = layout_of(table, columns, "frame")
    return gathered(Source(layout, "frame", lambda layout, exact: iter([table]), lambda: table))


@dataclass(frozen=True)
class Layout:
    """The column of each part; None where the table has none."""

    query: Any
    relevance: Any
    doc: Any
    sample_weight: Any
    query_weight: Any
    features: tuple[Any, ...]  # labels: strings, but pandas has others

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(str(label) for label in self.features)

    @property
    def numbers(self) -> list[Any]:
        """The columns that must hold numbers and are no features."""
        return [label for label in (self.relevance, self.sample_weight, self.query_weight) if label is not None]

    @property
    def used(self) -> list[Any]:
        return [label for label in (self.query, self.doc) if label is not None] + self.numbers + list(self.features)


def layout_of(table: "nw.DataFrame[Any]", columns: Columns, place: str) -> Layout:
    """Which column of ``table`` has which part; ``place`` names the table in messages."""
    parts = {part: _column_of(part, table.columns, columns, place) for part in PARTS}
    layout = Layout(**parts, features=_feature_columns(table, columns, set(parts.values())))
    for label, times in Counter(map(str, layout.used)).items():
        if times > 1:
            raise DataError(f"{place}: column {label!r} has {times} parts; name another one in Columns(...) for each")
    for label in [*layout.numbers, *layout.features]:
        if label not in table.columns:
            raise DataError(
                f"{place}: has no feature column {label!r}; it has {_listed(table.columns)}; name those in Columns(features=...)"
            )
        if not _holds_numbers(table.get_column(label)):
            kind = table.get_column(label).dtype
            raise DataError(f"{place}: column {label!r} holds {kind}, not numbers; convert it, or name another column in Columns(...)")
    return layout


def _column_of(part: str, present: list[Any], columns: Columns, place: str) -> str | None:
    """The part's column; query and grade must be there, and so must whatever was named other than the default."""
    label: str = getattr(columns, part)
    if label in present:
        return label
    if part in ("query", "relevance") or label != getattr(Columns(), part):
        option = f" (--{part}-column)" if part in ("query", "doc", "relevance") else ""
        has = f"it has {_listed(present)}"
        raise DataError(f"{place}: has no column {label!r} for the {PARTS[part]}; {has}; set Columns({part}=...){option} to the right one")
    return None


def _feature_columns(table: "nw.DataFrame[Any]", columns: Columns, taken: set[Any]) -> tuple[Any, ...]:
    if columns.features is not None:
        return columns.features
    free = (label for label in table.columns if label not in taken and not ROW_LABEL.fullmatch(str(label)))
    return tuple(label for label in free if _holds_numbers(table.get_column(label)))


def _holds_numbers(column: "nw.Series[Any]") -> bool:
    """Numbers or booleans; a column of nothing but nulls, which has no type, is a feature that is always missing."""
    kinds = library("narwhals")
    if column.dtype == kinds.Object:  # where pandas keeps booleans with nulls among them
        return all(isinstance(value, Real | Decimal) or value is None for value in column.to_list())
    return column.dtype.is_numeric() or column.dtype == kinds.Boolean or (column.dtype == kinds.Unknown and bool(column.is_null().all()))


def _listed(labels: list[Any]) -> str:
    shown = ", ".join(repr(label) for label in labels[:20])
    return shown + (f" and {len(labels) - 20} more" if len(labels) > 20 else "") if labels else "no columns"


# ---- rows as arrays


@dataclass(frozen=True)
class Source:
    """A table that can be read more than once; ``place`` names it in messages."""

    layout: Layout
    place: str
    tables: "Callable[[Layout, Sequence[Any]], Iterator[nw.DataFrame[Any]]]"  #: of a layout's columns, some in double precision
    first_rows: "Callable[[], nw.DataFrame[Any]]"  #: some, with numbers as they were written
    decimals: bool = False  #: whether they were read from text

    def blocks(self, offset: Offset | None = None) -> Iterator[Block]:
        """The rows as arrays, features as differences from ``offset``."""
        first_row = 0
        for table in self.tables(self.layout, _with_offset(self.layout, offset)):
            if len(table):
                yield _block(table, self.layout, offset, _Rows(self.place, first_row))
                first_row += len(table)
        if first_row == 0:
            raise DataError(f"{self.place}: holds no rows; expected one a document")

    def stream(self) -> Stream:
        """The rows block by block; those of features that may need an offset are read once more before."""
        chosen = self._suspects()
        if not chosen:
            return Stream(self.layout.feature_names, self.blocks())
        order, indptr, _ = group_rows(np.concatenate(list(self._ids())))
        offset = best_offset(self._doubles(chosen, order), indptr, self.layout.feature_names)
        return Stream(self.layout.feature_names, self.blocks(offset), offset)

    def saved(self, X: Matrix, order: Rows | None, indptr: Boundaries) -> Offset | None:
        """The offset of ``X``, whose rows are grouped by ``order``, and which gets the differences from it."""
        doubles = self._doubles(self._suspects(), order)
        offset = best_offset(doubles, indptr, self.layout.feature_names)
        put(X, doubles, offset)
        return offset

    def _suspects(self) -> list[int]:
        """The features that may need an offset, going by the first rows."""
        table = self.first_rows().head(max(1, LOOKED_AT // max(1, len(self.layout.features))))
        if len(table) == 0 or not self.layout.features:
            return []
        order, indptr, _ = group_rows(_query_ids(table.get_column(self.layout.query), _Rows(self.place, 0)))
        sample = np.stack([_digits(table.get_column(label)) for label in self.layout.features], axis=1)
        return suspects(sample if order is None else sample[order], indptr, self.decimals)

    def _ids(self) -> Iterator[Ids]:
        first_row = 0
        for table in self.tables(self._only([]), ()):
            if len(table):
                yield _query_ids(table.get_column(self.layout.query), _Rows(self.place, first_row))
            first_row += len(table)

    def _doubles(self, columns: Sequence[int], order: Rows | None) -> dict[int, PerDocument]:
        """The features of those numbers, in double precision."""
        if not columns:
            return {}
        labels = [self.layout.features[j] for j in columns]
        tables = [[_digits(table.get_column(label)) for label in labels] for table in self.tables(self._only(labels), labels)]
        whole = [np.concatenate(parts) for parts in zip(*tables, strict=True)]
        return {j: values if order is None else values[order] for j, values in zip(columns, whole, strict=True)}

    def _only(self, features: Sequence[Any]) -> Layout:
        """The layout of the query ids and these features."""
        return replace(self.layout, relevance=None, doc=None, sample_weight=None, query_weight=None, features=tuple(features))


def _with_offset(layout: Layout, offset: Offset | None) -> list[Any]:
    return [] if offset is None else [label for label, own in zip(layout.features, offset, strict=True) if own]


def _digits(column: "nw.Series[Any]") -> PerDocument:
    """The column in double precision, or zeros where single precision holds it or it has no numbers."""
    kinds = library("narwhals")
    narrow = (kinds.Float32, kinds.Int8, kinds.Int16, kinds.UInt8, kinds.UInt16, kinds.Boolean)
    if column.dtype in narrow or not _holds_numbers(column):
        return np.zeros(len(column))
    return np.asarray(_numbers(column), dtype=np.float64)


@dataclass(frozen=True)
class _Rows:
    """Where a block's rows stand, for messages."""

    place: str
    first: int

    def named(self, what: str, row: int) -> str:
        return f"{self.place}: {what} of row {self.first + row} (from 0)"


def _block(table: "nw.DataFrame[Any]", layout: Layout, offset: Offset | None, rows: _Rows) -> Block:
    def numbers(label: Any) -> PerDocument | None:
        return None if label is None else np.asarray(_numbers(table.get_column(label)), dtype=np.float64)

    return Block(
        X=_features(table, layout, offset, rows),
        y=_grades(table.get_column(layout.relevance), rows),
        qid=_query_ids(table.get_column(layout.query), rows),
        docid=None if layout.doc is None else _doc_ids(table.get_column(layout.doc), rows),
        sample_weight=numbers(layout.sample_weight),
        query_weight=numbers(layout.query_weight),
    )


def _numbers(column: "nw.Series[Any]") -> npt.NDArray[Any]:
    """The column as an array that NumPy can cast, NaN where it is null."""
    kinds = library("narwhals")
    if column.dtype == kinds.Object:
        return np.array(column.to_list(), dtype=np.float64)  # None becomes NaN
    plain = column.dtype.is_float() or (column.dtype.is_integer() and column.dtype not in (kinds.Int128, kinds.UInt128))
    return (column if plain else column.cast(kinds.Float64)).to_numpy()


def _features(table: "nw.DataFrame[Any]", layout: Layout, offset: Offset | None, rows: _Rows) -> Matrix:
    X = np.empty((len(table), len(layout.features)), np.float32)
    with np.errstate(over="ignore"):
        for j, label in enumerate(layout.features):
            numbers = _numbers(table.get_column(label))
            X[:, j] = numbers if offset is None or not offset[j] else numbers.astype(np.float64) - offset[j]
    cell = infinite_cell(X)
    if cell is not None:
        row, j = cell
        value = _numbers(table.get_column(layout.features[j]))[row]
        where = rows.named(f"feature {layout.features[j]!r}", row)
        raise DataError(f"{where} is {value}, which is not a finite float32; leave a missing value empty (null or NaN)")
    return X


def _grades(column: "nw.Series[Any]", rows: _Rows) -> PerDocument:
    y = np.asarray(_numbers(column), dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(y))
    if len(bad):
        value = "missing" if np.isnan(y[bad[0]]) else y[bad[0]]
        raise DataError(
            f"{rows.named(f'grade {column.name!r}', bad[0])} is {value}; grades must be finite numbers, so drop the row or judge it"
        )
    return y


def _query_ids(column: "nw.Series[Any]", rows: _Rows) -> Ids:
    """The ids as NumPy holds them; strings, bytes and categories as an array of objects. An empty string is no id."""
    if column.dtype.is_nested():
        raise DataError(
            f"{rows.place}: query column {column.name!r} holds {column.dtype}; a query id must be one value, such as a number or a string"
        )
    _refuse_missing_ids(column, column.is_null().to_numpy(), rows)  # first: Arrow cannot convert a dictionary without entries
    with _in_utf8(column, rows):
        ids = column.to_numpy()
    ids = ids.astype(object) if ids.dtype.kind == "U" else ids
    if ids.dtype.kind == "f" or ids.dtype == object:
        _refuse_missing_ids(column, np.isnan(ids) if ids.dtype.kind == "f" else ids == "", rows)
    if ids.dtype == object and isinstance(ids[0], bytes):
        return np.array([q.decode("utf-8", "surrogateescape") for q in ids], dtype=object)
    return ids


def _refuse_missing_ids(column: "nw.Series[Any]", missing: npt.NDArray[np.bool_], rows: _Rows) -> None:
    bad = np.flatnonzero(missing)
    if len(bad):
        raise DataError(f"{rows.named(f'query id {column.name!r}', bad[0])} is missing; give every row a query id")


@contextmanager
def _in_utf8(column: "nw.Series[Any]", rows: _Rows) -> Iterator[None]:
    """Arrow holds any bytes as strings, and looks at them only when they are asked for; then it has an error of its own, or Python's."""
    try:
        yield
    except _errors_of_text():
        raise DataError(f"{rows.place}: column {column.name!r} holds text that is not UTF-8; write it again, or as binary") from None


def _errors_of_text() -> tuple[type[Exception], ...]:
    """Python's, and Arrow's where there may be tables of its."""
    return (UnicodeDecodeError, sys.modules["pyarrow"].ArrowException) if "pyarrow" in sys.modules else (UnicodeDecodeError,)


def _doc_ids(column: "nw.Series[Any]", rows: _Rows) -> TextColumn:
    missing = column.is_null().to_list()
    with _in_utf8(column, rows):
        values = column.to_list()
    texts = (value if isinstance(value, str | bytes) else str(value) for value in values)
    return TextColumn.of("" if absent else text for absent, text in zip(missing, texts, strict=True))


# ---- blocks grouped by query


def gathered(source: Source) -> RankingData:
    """All rows, grouped by query."""
    matrices: list[Matrix] = []
    rest: list[Block] = []
    for block in source.blocks():
        matrices.append(block.X)
        rest.append(replace(block, X=np.empty((0, 0), np.float32)))
    try:
        data = RankingData.from_arrays(
            None,
            np.concatenate([b.y for b in rest]),
            qid=np.concatenate([b.qid for b in rest]),
            sample_weight=_joined([b.sample_weight for b in rest]),
            query_weight=_joined([b.query_weight for b in rest]),
        )
    except DataError as error:
        raise DataError(f"{source.place}: {error}") from None
    docid = TextColumn.concatenated([b.docid for b in rest if b.docid is not None]) if source.layout.doc is not None else None
    X = _stacked(matrices)
    if data.order is not None and X.size:
        _core.permute_rows(X, data.order)
    ordered = docid.take(data.order) if docid is not None and data.order is not None else docid
    offset = source.saved(X, data.order, data.indptr)
    return replace(data, X=sealed(X), feature_names=source.layout.feature_names, docid=ordered, offset=offset)


def _joined(columns: list[PerDocument | None]) -> PerDocument | None:
    present = [column for column in columns if column is not None]
    return np.concatenate(present) if present else None


def _stacked(matrices: list[Matrix]) -> Matrix:
    """The matrices one above the other; each is let go as it is copied, so that memory never holds all of it twice."""
    if len(matrices) == 1:
        return matrices.pop()
    stop = sum(map(len, matrices))
    whole = np.empty((stop, matrices[0].shape[1]), np.float32)
    while matrices:
        last = matrices.pop()
        whole[stop - len(last) : stop] = last
        stop -= len(last)
    return whole


# ---- the libraries behind a frame


def library(name: str) -> Any:
    """An optional library, or a word on how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise IncompatibleError(f"tables need {name.partition('.')[0]}, which is not installed; pip install 'exactrank[frames]'") from None


def table_of(native: Any, place: str) -> "nw.DataFrame[Any]":
    """``native`` behind one interface."""
    try:
        table: nw.DataFrame[Any] = library("narwhals").from_native(native, eager_only=True)
        table.schema  # noqa: B018  (the first look finds columns of the same name)
    except IncompatibleError:
        raise
    except TypeError:
        kind = f"{type(native).__module__}.{type(native).__qualname__}"
        raise IncompatibleError(
            f"expected a pandas, polars or pyarrow table, got {kind}; collect a lazy frame first, or pass arrays to RankingData.from_arrays"
        ) from None
    except ValueError as error:
        raise DataError(f"{place}: {' '.join(str(error).split())}; rename the columns") from None
    return table
