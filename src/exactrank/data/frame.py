"""Tables of judged documents: pandas, polars and Arrow frames.

A row is a document, and `Columns` says which column holds its query id, its grade and so on. Every table goes the same way:

    table -> layout (which column has which part) -> source -> blocks (some rows, as arrays) -> RankingData (grouped by query)

A frame is one block, a file (`arrow.py`, `csv.py`) many. Each column goes straight into its place in X, so nothing
of the table's width exists in float64; features that do not fit float32 (`precision.py`) are read a second time. A
null in a feature is a missing value (NaN); a row without a query id or a grade is an error.

Columns of categories or text are features too, by their codes (`levels.py`). Where features are not named, a column of text is one only
if most of its cells, in the first rows, hold a text that occurs again: else it holds names, titles and the like. What is left out is said.
"""

import importlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Ids, Matrix, PerDocument, Rows
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
LOOKED_AT_FOR_TEXT, MOST_TEXTS = 1 << 13, 1000  # rows, and different texts in them
SHOWN = 10  # columns in a warning
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
    return Source(layout, "frame", lambda layout, exact: iter([table]), lambda: table).data()


def with_codes(frame: Any) -> tuple[Any, dict[int, tuple[str, ...]]]:
    """A frame of features as it is, or, where it has columns of categories or text, as a matrix with their codes, and their levels."""
    try:
        table = table_of(frame, "X")
    except IncompatibleError:  # a frame that only NumPy knows how to read, or without the library for others
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


def documents_of(frame: Any, columns: Columns) -> RankingData:
    """The queries and the documents of a frame, which needs no grades; its features are left out."""
    return from_frame(frame, replace(columns, features=(), graded=False))


def numbers_in(frame: Any, label: str) -> PerDocument:
    """A column of numbers, NaN where it is null."""
    table = table_of(frame, "frame")
    if label not in table.columns:
        raise DataError(f"frame: has no column {label!r}; it has {listed_columns(table.columns)}; name the one that holds the scores")
    column = table.get_column(label)
    if not _holds_numbers(column):
        raise DataError(f"frame: column {label!r} holds {column.dtype}, not numbers; convert it, or name another one")
    return _in_double(column)


@dataclass(frozen=True)
class TableLayout:
    """The column of each part; None where the table has none."""

    query: Any
    relevance: Any
    doc: Any
    sample_weight: Any
    query_weight: Any
    features: tuple[Any, ...]  # labels: strings, but pandas has others
    categories: frozenset[Any] = frozenset()  # those of the features that hold text
    extra_columns: tuple[Any, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(str(label) for label in self.features)

    @property
    def numbers(self) -> list[Any]:
        """The columns that must hold numbers and are no features."""
        return [label for label in (self.relevance, self.sample_weight, self.query_weight, *self.extra_columns) if label is not None]

    @property
    def used(self) -> list[Any]:
        return [label for label in (self.query, self.doc) if label is not None] + self.numbers + list(self.features)


def layout_of(table: "nw.DataFrame[Any]", columns: Columns, place: str, first: "nw.DataFrame[Any] | None" = None) -> TableLayout:
    """Which column of ``table`` has which part; ``place`` names the table in messages, and ``first`` has its first rows, if it has none.

    Query and grade must be there, and so must whatever was named other than the default. Warns of columns that are left out.
    """
    parts: dict[str, Any] = {}
    for part, what in PARTS.items():
        label = getattr(columns, part)
        parts[part] = label if label in table.columns else None
        needed = part == "query" or (part == "relevance" and columns.graded)
        if parts[part] is None and (needed or label != getattr(Columns(), part)):
            option = f" (--{part}-column)" if part in ("query", "doc", "relevance") else ""
            has = f"it has {listed_columns(table.columns)}"
            raise DataError(f"{place}: has no column {label!r} for the {what}; {has}; set Columns({part}=...){option} to the right one")
    features, taken = columns.features, {*parts.values(), *columns.keep}
    if features is None:
        free = [label for label in table.columns if label not in taken and not ROW_LABEL.fullmatch(str(label))]
        left_out = {label: why for label in free if (why := _no_feature(table.get_column(label), table if first is None else first))}
        features = tuple(label for label in free if label not in left_out)
        if left_out:
            told = ", ".join(f"{label!r} ({why})" for label, why in list(left_out.items())[:SHOWN])
            more = f" and {len(left_out) - SHOWN} more" if len(left_out) > SHOWN else ""
            remedy = "name the features in Columns(features=...) (--feature-columns) to choose, or give these as numbers or categories"
            warn_caller(f"{place}: left out {told}{more}; {remedy}", LeftOutWarning)
    known = [label for label in features if label in table.columns]
    categories = frozenset(label for label in known if _holds_text(table.get_column(label)))
    layout = TableLayout(**parts, features=features, categories=categories, extra_columns=columns.keep)
    for label, times in Counter(map(str, layout.used)).items():
        if times > 1:
            raise DataError(f"{place}: column {label!r} is named for {times} parts; name a different column for each in Columns(...)")
    for label in [*layout.numbers, *layout.features]:
        if label not in table.columns:
            has = f"it has {listed_columns(table.columns)}"
            what, part = ("column", "keep") if label in columns.keep else ("feature column", "features")
            raise DataError(f"{place}: has no {what} {label!r}; {has}; name those in Columns({part}=...)")
        if not _holds_numbers(table.get_column(label)) and label not in layout.categories:
            kind = table.get_column(label).dtype
            raise DataError(f"{place}: column {label!r} holds {kind}, not numbers; convert it, or name another column in Columns(...)")
    return layout


def _holds_numbers(column: "nw.Series[Any]") -> bool:
    """Numbers or booleans; a column of nothing but nulls, which has no type, is a feature that is always missing."""
    kinds = library("narwhals")
    if column.dtype == kinds.Object:  # where pandas keeps booleans with nulls among them
        return all(isinstance(value, Real | Decimal) or value is None for value in column.to_list())
    return column.dtype.is_numeric() or column.dtype == kinds.Boolean or (column.dtype == kinds.Unknown and bool(column.is_null().all()))


def _holds_text(column: "nw.Series[Any]") -> bool:
    """Categories or strings."""
    kinds = library("narwhals")
    return column.dtype in (kinds.String, kinds.Categorical, kinds.Enum)


def _no_feature(column: "nw.Series[Any]", first: "nw.DataFrame[Any]") -> str:
    """Why a column that nobody named is no feature, by its type and the ``first`` rows; nothing where it is one."""
    if _holds_numbers(column):
        return ""
    if not _holds_text(column):
        return f"holds {column.dtype}"
    if column.dtype != library("narwhals").String:
        return ""
    times = Counter(text for text in _texts(first.get_column(column.name).head(LOOKED_AT_FOR_TEXT)) if text)
    if len(times) > MOST_TEXTS:
        return f"more than {MOST_TEXTS:,} different texts"
    return "" if 2 * sum(count for count in times.values() if count > 1) > times.total() else "text that seldom repeats"


def _texts(column: "nw.Series[Any]") -> list[str | None]:
    """The column as strings, None where it is null; whole numbers that are categories lose no more than their type."""
    if not len(column):
        return []
    with _in_utf8(column, "X"):
        values = zip(column.to_list(), column.is_null().to_list(), strict=True)
    return [None if missing else str(value) for value, missing in values]


def listed_columns(labels: list[Any]) -> str:
    """The first few columns, for a message."""
    shown = ", ".join(repr(label) for label in labels[:20])
    return shown + (f" and {len(labels) - 20} more" if len(labels) > 20 else "") if labels else "no columns"


# ---- rows as arrays


@dataclass(frozen=True)
class Source:
    """A table that can be read more than once; ``place`` names it in messages."""

    layout: TableLayout
    place: str
    tables: "Callable[[TableLayout, Sequence[Any]], Iterator[nw.DataFrame[Any]]]"  #: of a layout's columns, some in double precision
    first_rows: "Callable[[], nw.DataFrame[Any]]"  #: some, with numbers as they were written
    decimals: bool = False  #: whether they were read from text

    def data(self) -> RankingData:
        """All rows, grouped by query."""
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
        X, names, levels = _stacked(matrices), self.layout.feature_names, {str(label): own for label, own in self.levels.items()}
        if data.order is not None and X.size:
            _core.permute_rows(X, data.order)
        offset = best_offset(self._doubles(self._suspects(), data.order), data.indptr, names, X)
        return replace(data, X=seal(X), feature_names=names, docid=rows_of(docid, data.order), offset=offset, levels=levels)

    def stream(self) -> Stream:
        """The rows block by block; those of features that may need an offset are read once more before."""
        chosen, names, offset = self._suspects(), self.layout.feature_names, None
        if chosen:
            order, indptr, _ = group_rows(np.concatenate([rows.query_ids() for rows in self._rows(self.only([]), [])]))
            offset = best_offset(self._doubles(chosen, order), indptr, names)
        return Stream(names, self._blocks(offset), offset, {str(label): own for label, own in self.levels.items()})

    @cached_property
    def levels(self) -> dict[Any, tuple[str, ...]]:
        """Those of each column of categories, in all rows."""
        found: dict[Any, set[str | None]] = {label: set() for label in self.layout.features if label in self.layout.categories}
        for table in self.tables(self.only(list(found)), []) if found else ():
            for label, texts in found.items():
                texts.update(_texts(table.get_column(label)))
        return {label: levels_in(texts, str(label)) for label, texts in found.items()}

    def _blocks(self, offset: Offset | None) -> Iterator[Block]:
        """The rows as arrays, features as differences from ``offset``."""
        exact = [] if offset is None else [label for label, own in zip(self.layout.features, offset, strict=True) if own]
        rows = None
        for rows in self._rows(self.layout, exact):
            yield rows.block(offset)
        if rows is None:
            raise DataError(f"{self.place}: holds no rows; expected one per document")

    def _rows(self, layout: TableLayout, exact: Sequence[Any]) -> "Iterator[_TableRows]":
        first = 0
        for table in self.tables(layout, exact):
            if len(table):
                yield _TableRows(table, layout, self.place, first, self)
            first += len(table)

    def _suspects(self) -> list[int]:
        """The features that may need an offset, going by the first rows."""
        table = self.first_rows().head(max(1, SAMPLE_CELLS // max(1, len(self.layout.features))))
        if len(table) == 0 or not self.layout.features:
            return []
        order, indptr, _ = group_rows(_TableRows(table, self.layout, self.place, 0, self).query_ids())
        sample = np.stack([_digits(table.get_column(label)) for label in self.layout.features], axis=1)
        return suspects(rows_of(sample, order), indptr, self.decimals)

    def _doubles(self, columns: Sequence[int], order: Rows | None) -> dict[int, PerDocument]:
        """The features of those numbers, in double precision."""
        if not columns:
            return {}
        labels = [self.layout.features[j] for j in columns]
        tables = [[_digits(table.get_column(label)) for label in labels] for table in self.tables(self.only(labels), labels)]
        return {j: rows_of(np.concatenate(parts), order) for j, parts in zip(columns, zip(*tables, strict=True), strict=True)}

    def only(self, features: Sequence[Any]) -> TableLayout:
        """The layout of the query ids and these features."""
        alone: dict[str, Any] = dict.fromkeys(("relevance", "doc", "sample_weight", "query_weight"))
        return replace(self.layout, **alone, features=tuple(features), categories=self.layout.categories & set(features), extra_columns=())


@dataclass(frozen=True)
class _TableRows:
    """Some rows of a table, of which the first is number ``first``; ``place`` names the table in messages."""

    table: "nw.DataFrame[Any]"
    layout: TableLayout
    place: str
    first: int
    source: Source

    def block(self, offset: Offset | None) -> Block:
        """All that the rows hold, features as differences from ``offset``."""
        layout, X = self.layout, self._features(offset)
        y = np.zeros(len(self.table)) if layout.relevance is None else _in_double(self.table.get_column(layout.relevance))
        bad = np.flatnonzero(~np.isfinite(y))
        if len(bad):
            where, value = self._named(f"grade {layout.relevance!r}", bad[0]), "missing" if np.isnan(y[bad[0]]) else y[bad[0]]
            raise DataError(f"{where} is {value}; grades must be finite numbers, so drop the row or judge it")
        qid, docid = self.query_ids(), None
        if layout.doc is not None:
            column = self.table.get_column(layout.doc)
            with _in_utf8(column, self.place):
                values = zip(column.to_list(), column.is_null().to_list(), strict=True)
            docid = TextColumn.of("" if missing else value if isinstance(value, bytes) else str(value) for value, missing in values)
        weights = (layout.sample_weight, layout.query_weight)
        sample, query = (None if label is None else _in_double(self.table.get_column(label)) for label in weights)
        return Block(X, y, qid, docid, None, sample, query, {str(label): self._kept(label) for label in layout.extra_columns})

    def _kept(self, label: Any) -> PerDocument:
        values = _in_double(self.table.get_column(label))
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            where, value = self._named(f"column {label!r}", bad[0]), "missing" if np.isnan(values[bad[0]]) else values[bad[0]]
            raise DataError(f"{where} is {value}; a column that is kept needs a number in every row, e.g. 0")
        return values

    def _features(self, offset: Offset | None) -> Matrix:
        features = self.layout.features
        X = np.empty((len(self.table), len(features)), np.float32)
        with np.errstate(over="ignore"):
            for j, label in enumerate(features):
                column = self.table.get_column(label)
                if label in self.layout.categories:
                    X[:, j] = codes_of(_texts(column), self.source.levels[label])
                    continue
                numbers = _numbers(column)
                X[:, j] = numbers if offset is None or not offset[j] else numbers.astype(np.float64) - offset[j]
        cell = infinite_cell(X)
        if cell is not None:
            row, j = cell
            where, value = self._named(f"feature {features[j]!r}", row), _numbers(self.table.get_column(features[j]))[row]
            raise DataError(f"{where} is {value}, which is not a finite float32; leave a missing value empty (null or NaN)")
        return X

    def query_ids(self) -> Ids:
        """The ids as NumPy holds them; strings, bytes and categories as an array of objects. An empty string is no id."""
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
            raise DataError(f"{self._named(f'query id {label!r}', missing[0])} is missing; give every row a query id")
        if ids.dtype == object and isinstance(ids[0], bytes):
            return np.array([q.decode("utf-8", "surrogateescape") for q in ids], dtype=object)
        return ids

    def _named(self, what: str, row: int) -> str:
        return f"{self.place}: {what} of row {self.first + row} (from 0)"


@contextmanager
def _in_utf8(column: "nw.Series[Any]", place: str) -> Iterator[None]:
    """Arrow holds any bytes as strings, and looks at them only when they are asked for; then it has an error of its own, or Python's."""
    arrow = sys.modules.get("pyarrow")
    errors = (UnicodeDecodeError, arrow.ArrowException) if arrow else (UnicodeDecodeError,)
    try:
        yield
    except errors:
        raise DataError(f"{place}: column {column.name!r} holds text that is not UTF-8; write it again, or as binary") from None


def _numbers(column: "nw.Series[Any]") -> npt.NDArray[Any]:
    """The column as an array that NumPy can cast, NaN where it is null."""
    kinds = library("narwhals")
    if column.dtype == kinds.Object:
        return np.array(column.to_list(), dtype=np.float64)  # None becomes NaN
    plain = column.dtype.is_float() or (column.dtype.is_integer() and column.dtype not in (kinds.Int128, kinds.UInt128))
    return (column if plain else column.cast(kinds.Float64)).to_numpy()


def _in_double(column: "nw.Series[Any]") -> PerDocument:
    return np.asarray(_numbers(column), dtype=np.float64)


def _digits(column: "nw.Series[Any]") -> PerDocument:
    """The column in double precision, or zeros where single precision holds it or it has no numbers."""
    kinds = library("narwhals")
    narrow = (kinds.Float32, kinds.Int8, kinds.Int16, kinds.UInt8, kinds.UInt16, kinds.Boolean)
    return np.zeros(len(column)) if column.dtype in narrow or not _holds_numbers(column) else _in_double(column)


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


def library(name: str, what: str = "tables", extra: str = "frames") -> Any:
    """An optional library that ``what`` need, or a word on how to get it: by our ``extra``."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise IncompatibleError(f"{what} need {name.partition('.')[0]}, which is not installed; pip install 'exactrank[{extra}]'") from None


def table_of(native: Any, place: str) -> "nw.DataFrame[Any]":
    """``native`` behind one interface."""
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
