"""Tables of judged documents: pandas, polars and Arrow frames.

A row is a document, and `Columns` names the columns of its query id, its grade and so on. Every table takes the same path:

    table -> layout (a column for each part) -> source -> blocks (some rows, as arrays) -> RankingData (grouped by query)

A frame is one block, and a file (`arrow.py`, `csv.py`) has many. Each column goes straight into its place in X, so there is never a copy of
the table in float64; features that do not fit float32 (`precision.py`) are read a second time. A null in a feature is a missing value
(NaN); a row without a query id or a grade is an error.

Columns of categories or text are features by their codes (`levels.py`). If features are not named, a column of text is a feature only if
most cells of the first rows hold a text that occurs again; otherwise it holds names, titles and the like. A warning names the columns that
are left out.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from exactrank import _core
from exactrank._support.arrays import AnyArray, Ids, Matrix, PerDocument, Rows
from exactrank._support.libraries import library
from exactrank.data.alignment import name_list
from exactrank.data.duplicates import check_columns
from exactrank.data.extra_columns import concatenate_extra_columns
from exactrank.data.formats.base import Block, Columns, Stream
from exactrank.data.formats.text_column import TextColumn, rows_of
from exactrank.data.immutable import seal
from exactrank.data.levels import codes_of, levels_in
from exactrank.data.precision import SAMPLE_CELLS, Offset, best_offset, suspects
from exactrank.data.ranking_data import RankingData
from exactrank.data.validation import group_rows, infinite_cell
from exactrank.errors import DataError, IncompatibleError, LeftOutWarning, warn_caller

if TYPE_CHECKING:
    import narwhals as nw

PARTS = {"query": "query id", "relevance": "grade", "doc": "document id", "sample_weight": "sample weight", "query_weight": "query weight"}
TEXT_ROWS, MAX_TEXTS = 1 << 13, 1000  #: first rows in which a column of text is examined, and different texts of a feature in them
NAMED_COLUMNS = 10  #: in a warning
ROW_LABEL = re.compile(r"|__index_level_\d+__|Unnamed: \d+")  #: columns in which pandas writes its index; never features
Label: TypeAlias = str  #: name of a column, as in the types of narwhals; pandas also has others


def from_frame(frame: object, columns: Columns) -> RankingData:
    """Return the rows of a pandas, polars or Arrow frame, which may be in any order; the frame is not changed.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"query_id": ["b", "a", "b"], "relevance": [0, 1, 2], "bm25": [0.5, 1.5, None]})
    >>> data = from_frame(table, Columns())
    >>> data.feature_names, data.qid.tolist(), data.y.tolist(), data.X.ravel().tolist()
    (('bm25',), ['b', 'a'], [0.0, 2.0, 1.0], [0.5, nan, 1.5])
    """
    table = table_of(frame, "frame")
    layout = layout_of(table, columns, "frame")
    return Source(layout, "frame", lambda layout, exact: iter([table]), lambda: table).data()


def with_codes(frame: object) -> tuple[object, dict[int, tuple[str, ...]]]:
    """Return a matrix with the codes of columns of categories or text, and their levels; or the frame itself without such columns."""
    try:
        table = table_of(frame, "X")
    except IncompatibleError:  # a frame that only NumPy can read, or narwhals is not installed
        return frame, {}
    levels = {
        j: levels_in(_texts(table.get_column(name)), name) for j, name in enumerate(table.columns) if _holds_text(table.get_column(name))
    }
    if not levels:
        return frame, {}
    X = np.empty((len(table), len(table.columns)))
    for j, name in enumerate(table.columns):
        column = table.get_column(name)
        if j not in levels and not _holds_numbers(column):
            raise DataError(f"X: column {name!r} holds {column.dtype}, neither numbers nor categories; convert it, or leave it out")
        X[:, j] = codes_of(_texts(column), levels[j]) if j in levels else _in_double(column)
    return X, levels


def documents_of(frame: object, columns: Columns) -> RankingData:
    """Return the queries and the documents of a frame, without features; it needs no grades."""
    return from_frame(frame, replace(columns, features=(), graded=False))


def numbers_in(frame: object, label: str) -> PerDocument:
    """Return a column of numbers, with NaN for null."""
    table = table_of(frame, "frame")
    if label not in table.columns:
        raise DataError(
            f"frame: has no column {label!r}; it has {name_list(list(map(repr, table.columns)), 20)}; name the one that holds the scores"
        )
    column = table.get_column(label)
    if not _holds_numbers(column):
        raise DataError(f"frame: column {label!r} holds {column.dtype}, not numbers; convert it, or name another one")
    return _in_double(column)


@dataclass(frozen=True)
class TableLayout:
    """The column of each part of the data; None if the table has no such column."""

    query: Label
    relevance: Label | None
    doc: Label | None
    sample_weight: Label | None
    query_weight: Label | None
    features: tuple[Label, ...]
    categories: frozenset[Label] = frozenset()  #: features that hold text
    extra_columns: tuple[Label, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(str(label) for label in self.features)

    @property
    def numbers(self) -> list[Label]:
        """Columns that must hold numbers and are not features."""
        return [label for label in (self.relevance, self.sample_weight, self.query_weight, *self.extra_columns) if label is not None]

    @property
    def labels(self) -> list[Label]:
        """Columns that have a part."""
        return [label for label in (self.query, self.doc) if label is not None] + self.numbers + list(self.features)


def layout_of(table: "nw.DataFrame[Any]", columns: Columns, place: str, first: "nw.DataFrame[Any] | None" = None) -> TableLayout:
    """Return the column of each part of the data; ``place`` names the table in messages.

    If ``table`` has no rows, ``first`` has the first rows of the data. The columns of query and grade must exist, and so must all columns
    that were named. Warns of columns that are left out.
    """
    parts: dict[str, Label | None] = {}
    for part, what in PARTS.items():
        label = getattr(columns, part)
        parts[part] = label if label in table.columns else None
        needed = part == "query" or (part == "relevance" and columns.graded)
        if parts[part] is None and (needed or label != getattr(Columns(), part)):
            option = f" (--{part}-column)" if part in ("query", "doc", "relevance") else ""
            has = f"it has {name_list(list(map(repr, table.columns)), 20)}"
            raise DataError(f"{place}: has no column {label!r} for the {what}; {has}; set Columns({part}=...){option} to the right one")
    features, other_parts = columns.features, {*parts.values(), *columns.keep}
    if features is None:
        free = [label for label in table.columns if label not in other_parts and not ROW_LABEL.fullmatch(str(label))]
        left_out = {
            label: why for label in free if (why := _reason_to_leave_out(table.get_column(label), table if first is None else first))
        }
        features = tuple(label for label in free if label not in left_out)
        if left_out:
            columns_left_out = ", ".join(f"{label!r} ({why})" for label, why in list(left_out.items())[:NAMED_COLUMNS])
            remainder = f" and {len(left_out) - NAMED_COLUMNS} more" if len(left_out) > NAMED_COLUMNS else ""
            remedy = "name the features in Columns(features=...) (--feature-columns) to choose, or give these as numbers or categories"
            warn_caller(f"{place}: left out {columns_left_out}{remainder}; {remedy}", LeftOutWarning)
    categories = frozenset(label for label in features if label in table.columns and _holds_text(table.get_column(label)))
    columns_of_parts = parts["relevance"], parts["doc"], parts["sample_weight"], parts["query_weight"]
    layout = TableLayout(columns.query, *columns_of_parts, features, categories, columns.keep)
    for label, times in Counter(map(str, layout.labels)).items():
        if times > 1:
            raise DataError(f"{place}: column {label!r} is named for {times} parts; name a different column for each in Columns(...)")
    for label in [*layout.numbers, *layout.features]:
        if label not in table.columns:
            has = f"it has {name_list(list(map(repr, table.columns)), 20)}"
            what, part = ("column", "keep") if label in columns.keep else ("feature column", "features")
            raise DataError(f"{place}: has no {what} {label!r}; {has}; name those in Columns({part}=...)")
        if not _holds_numbers(table.get_column(label)) and label not in layout.categories:
            kind = table.get_column(label).dtype
            raise DataError(f"{place}: column {label!r} holds {kind}, not numbers; convert it, or name another column in Columns(...)")
    return layout


def _holds_numbers(column: "nw.Series[Any]") -> bool:
    """Return whether a column holds numbers or booleans; one that is all null, which has no type, is a feature that is always missing."""
    kinds = library("narwhals")
    if column.dtype == kinds.Object:  # the type of pandas for booleans with nulls
        return all(isinstance(value, Real | Decimal) or value is None for value in column.to_list())
    return column.dtype.is_numeric() or column.dtype == kinds.Boolean or (column.dtype == kinds.Unknown and bool(column.is_null().all()))


def _holds_text(column: "nw.Series[Any]") -> bool:
    """Return whether a column holds categories or strings."""
    kinds = library("narwhals")
    return column.dtype in (kinds.String, kinds.Categorical, kinds.Enum)


def _reason_to_leave_out(column: "nw.Series[Any]", first: "nw.DataFrame[Any]") -> str:
    """Return why a column that was not named is not a feature, by its type and the ``first`` rows; empty for a feature."""
    if _holds_numbers(column):
        return ""
    if not _holds_text(column):
        return f"holds {column.dtype}"
    if column.dtype != library("narwhals").String:
        return ""
    times = Counter(text for text in _texts(first.get_column(column.name).head(TEXT_ROWS)) if text)
    if len(times) > MAX_TEXTS:
        return f"more than {MAX_TEXTS:,} different texts"
    return "" if 2 * sum(count for count in times.values() if count > 1) > times.total() else "text that seldom repeats"


def _texts(column: "nw.Series[Any]") -> list[str | None]:
    """Return the column as strings, with None for null; categories that are whole numbers become their decimals."""
    if not len(column):
        return []
    with _in_utf8(column, "X"):
        values = zip(column.to_list(), column.is_null().to_list(), strict=True)
    return [None if missing else str(value) for value, missing in values]


# ---- rows as arrays


@dataclass(frozen=True)
class Source:
    """A table that can be read several times; ``place`` names it in messages."""

    layout: TableLayout
    place: str
    tables: "Callable[[TableLayout, Sequence[Label]], Iterator[nw.DataFrame[Any]]]"  #: of a layout; some columns in double precision
    first_rows: "Callable[[], nw.DataFrame[Any]]"  #: with numbers as they were written
    decimals: bool = False  #: whether numbers were read from text

    def data(self) -> RankingData:
        """Return the rows, grouped by query."""
        matrices: list[Matrix] = []
        rest: list[Block] = []
        for block in self._blocks(None):
            matrices.append(block.X)
            rest.append(replace(block, X=np.empty((0, 0), np.float32)))
        joined: dict[str, Any] = {
            name: None if getattr(rest[0], name) is None else np.concatenate([getattr(block, name) for block in rest])
            for name in ("y", "qid", "sample_weight", "query_weight")
        }
        joined["extra_columns"] = concatenate_extra_columns([block.extra_columns for block in rest])
        try:
            data = RankingData.from_arrays(None, **joined)
        except DataError as error:
            raise DataError(f"{self.place}: {error}") from None
        docid = None if self.layout.doc is None else TextColumn.concatenate([b.docid for b in rest if b.docid is not None])
        X, names = _stack(matrices), self.layout.feature_names
        if data.order is not None and X.size:
            _core.permute_rows(X, data.order)
        offset = best_offset(self._doubles(self._suspects(), data.order), data.indptr, names, X)
        return replace(data, X=seal(X), feature_names=names, docid=rows_of(docid, data.order), offset=offset, levels=self.levels)

    def stream(self) -> Stream:
        """Return the rows as a stream of blocks, after reading the features that may need an offset."""
        columns, names, offset = self._suspects(), self.layout.feature_names, None
        if columns:
            order, indptr, _ = group_rows(np.concatenate([rows.query_ids() for rows in self._rows(self.only([]), [])]))
            offset = best_offset(self._doubles(columns, order), indptr, names)
        return Stream(names, self._blocks(offset), offset, self.levels)

    @cached_property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """Levels of each column of categories, in all rows."""
        texts_of: dict[Label, set[str | None]] = {label: set() for label in self.layout.features if label in self.layout.categories}
        for table in self.tables(self.only(list(texts_of)), []) if texts_of else ():
            for label, texts in texts_of.items():
                texts.update(_texts(table.get_column(label)))
        return {str(label): levels_in(texts, str(label)) for label, texts in texts_of.items()}

    def _blocks(self, offset: Offset | None) -> Iterator[Block]:
        """Yield the rows as arrays, features as differences from ``offset``."""
        exact = [] if offset is None else [label for label, number in zip(self.layout.features, offset, strict=True) if number]
        rows = None
        for rows in self._rows(self.layout, exact):
            yield rows.block(offset)
        if rows is None:
            raise DataError(f"{self.place}: holds no rows; expected one per document")

    def _rows(self, layout: TableLayout, exact: Sequence[Label]) -> "Iterator[_TableRows]":
        first = 0
        for table in self.tables(layout, exact):
            if len(table):
                yield _TableRows(table, layout, self.place, first, self)
            first += len(table)

    def _suspects(self) -> list[int]:
        """Return the features that may need an offset, judging by the first rows."""
        table = self.first_rows().head(max(1, SAMPLE_CELLS // max(1, len(self.layout.features))))
        if len(table) == 0 or not self.layout.features:
            return []
        order, indptr, _ = group_rows(_TableRows(table, self.layout, self.place, 0, self).query_ids())
        sample = np.stack([_digits(table.get_column(label)) for label in self.layout.features], axis=1)
        return suspects(rows_of(sample, order), indptr, self.decimals)

    def _doubles(self, columns: Sequence[int], order: Rows | None) -> dict[int, PerDocument]:
        """Return the features with these numbers, in double precision."""
        if not columns:
            return {}
        labels = [self.layout.features[j] for j in columns]
        tables = [[_digits(table.get_column(label)) for label in labels] for table in self.tables(self.only(labels), labels)]
        return {j: rows_of(np.concatenate(parts), order) for j, parts in zip(columns, zip(*tables, strict=True), strict=True)}

    def only(self, features: Sequence[Label]) -> TableLayout:
        """Return the layout of the query ids and these features."""
        return TableLayout(self.layout.query, None, None, None, None, tuple(features), self.layout.categories & set(features))


@dataclass(frozen=True)
class _TableRows:
    """Consecutive rows of a table from the number ``first`` on; ``place`` names the table in messages."""

    table: "nw.DataFrame[Any]"
    layout: TableLayout
    place: str
    first: int
    source: Source

    def block(self, offset: Offset | None) -> Block:
        """Return the rows as a block, features as differences from ``offset``."""
        layout, X = self.layout, self._features(offset)
        y = np.zeros(len(self.table)) if layout.relevance is None else _in_double(self.table.get_column(layout.relevance))
        bad = np.flatnonzero(~np.isfinite(y))
        if len(bad):
            where, value = self._cell(f"grade {layout.relevance!r}", bad[0]), "missing" if np.isnan(y[bad[0]]) else y[bad[0]]
            raise DataError(f"{where} is {value}; grades must be finite numbers, so drop the row or judge it")
        qid, docid = self.query_ids(), None
        if layout.doc is not None:
            column = self.table.get_column(layout.doc)
            with _in_utf8(column, self.place):
                values = zip(column.to_list(), column.is_null().to_list(), strict=True)
            docid = TextColumn.of("" if missing else value if isinstance(value, bytes) else str(value) for value, missing in values)
        weights = (layout.sample_weight, layout.query_weight)
        sample, query = (None if label is None else _in_double(self.table.get_column(label)) for label in weights)
        return Block(X, y, qid, docid, None, sample, query, {str(label): self._extra_column(label) for label in layout.extra_columns})

    def _extra_column(self, label: Label) -> PerDocument:
        values = _in_double(self.table.get_column(label))
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            where, value = self._cell(f"column {label!r}", bad[0]), "missing" if np.isnan(values[bad[0]]) else values[bad[0]]
            raise DataError(f"{where} is {value}; an extra column needs a number in every row, e.g. 0")
        return values

    def _features(self, offset: Offset | None) -> Matrix:
        features = self.layout.features
        X = np.empty((len(self.table), len(features)), np.float32)
        with np.errstate(over="ignore"):
            for j, label in enumerate(features):
                column = self.table.get_column(label)
                if label in self.layout.categories:
                    X[:, j] = codes_of(_texts(column), self.source.levels[str(label)])
                    continue
                numbers = _numbers(column)
                X[:, j] = numbers if offset is None or not offset[j] else numbers.astype(np.float64) - offset[j]
        cell = infinite_cell(X)
        if cell is not None:
            row, j = cell
            where, value = self._cell(f"feature {features[j]!r}", row), _numbers(self.table.get_column(features[j]))[row]
            raise DataError(f"{where} is {value}, which is not a finite float32; leave a missing value empty (null or NaN)")
        return X

    def query_ids(self) -> Ids:
        """Return the ids in their NumPy type; strings, bytes and categories as an array of objects. An empty string counts as missing."""
        label, column = self.layout.query, self.table.get_column(self.layout.query)
        if column.dtype.is_nested():
            kind = f"holds {column.dtype}; a query id must be one value, such as a number or a string"
            raise DataError(f"{self.place}: query column {label!r} {kind}")
        missing = np.flatnonzero(column.is_null().to_numpy())
        if len(missing) == 0:  # Arrow cannot convert a dictionary without entries
            with _in_utf8(column, self.place):
                ids = column.to_numpy()
            ids = ids.astype(object) if ids.dtype.kind == "U" else ids
            missing = np.flatnonzero(np.isnan(ids) if ids.dtype.kind == "f" else ids == "" if ids.dtype == object else ())
        if len(missing):
            raise DataError(f"{self._cell(f'query id {label!r}', missing[0])} is missing; give every row a query id")
        if ids.dtype == object and isinstance(ids[0], bytes):
            return np.array([q.decode("utf-8", "surrogateescape") for q in ids], dtype=object)
        return ids

    def _cell(self, what: str, row: int) -> str:
        return f"{self.place}: {what} of row {self.first + row} (from 0)"


@contextmanager
def _in_utf8(column: "nw.Series[Any]", place: str) -> Iterator[None]:
    """Turn the errors of invalid UTF-8 into a `DataError`; Arrow checks strings only when they are read."""
    arrow = sys.modules.get("pyarrow")
    errors = (UnicodeDecodeError, arrow.ArrowException) if arrow else (UnicodeDecodeError,)
    try:
        yield
    except errors:
        raise DataError(f"{place}: column {column.name!r} holds text that is not UTF-8; write it again, or as binary") from None


def _numbers(column: "nw.Series[Any]") -> AnyArray:
    """Return the column as an array that NumPy can cast, with NaN for null."""
    kinds = library("narwhals")
    if column.dtype == kinds.Object:
        return np.array(column.to_list(), dtype=np.float64)  # None becomes NaN
    plain = column.dtype.is_float() or (column.dtype.is_integer() and column.dtype not in (kinds.Int128, kinds.UInt128))
    return (column if plain else column.cast(kinds.Float64)).to_numpy()


def _in_double(column: "nw.Series[Any]") -> PerDocument:
    return np.asarray(_numbers(column), dtype=np.float64)


def _digits(column: "nw.Series[Any]") -> PerDocument:
    """Return the column in double precision; zeros if single precision can hold it or it has no numbers."""
    kinds = library("narwhals")
    narrow = (kinds.Float32, kinds.Int8, kinds.Int16, kinds.UInt8, kinds.UInt16, kinds.Boolean)
    return np.zeros(len(column)) if column.dtype in narrow or not _holds_numbers(column) else _in_double(column)


def _stack(matrices: list[Matrix]) -> Matrix:
    """Return the matrices one above the other; each is released after its copy, so that memory never holds everything twice."""
    if len(matrices) == 1:
        return matrices.pop()
    stop = sum(map(len, matrices))
    stack = np.empty((stop, matrices[0].shape[1]), np.float32)
    while matrices:
        last = matrices.pop()
        stack[stop - len(last) : stop] = last
        stop -= len(last)
    return stack


# ---- the libraries behind a frame


def table_of(native: object, place: str) -> "nw.DataFrame[Any]":
    """Return a pandas, polars or Arrow table as a frame of narwhals; ``place`` names it in messages."""
    try:
        frame = library("narwhals").from_native(native)
        table: nw.DataFrame[Any] = frame.collect() if isinstance(frame, library("narwhals").LazyFrame) else frame
        table.schema  # noqa: B018  (the first look finds columns of the same name)
    except IncompatibleError:
        raise
    except TypeError:
        kind = f"{type(native).__module__}.{type(native).__qualname__}"
        raise IncompatibleError(
            f"expected a pandas, polars or pyarrow table, got {kind}; convert it, or pass arrays to RankingData.from_arrays"
        ) from None
    except ValueError as error:
        check_columns(getattr(native, "column_names", getattr(native, "columns", ())), place)
        raise DataError(f"{place}: {' '.join(str(error).split())}; rename the columns") from None
    return table
