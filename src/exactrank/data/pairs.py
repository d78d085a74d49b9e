"""Pairs of documents from a frame, a file or arrays, found among the documents of some data: `with_pairs` and `read_pairs`.

A table has one pair per row: the query (``query_id``), the document that a judge prefers (``better``) and the other one (``worse``), both
by document id, and, where pairs do not count alike, a ``weight``. Where the data has no document ids, rows stand for documents, numbered
from 0 in the caller's order; then the query need not be named.
"""

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from exactrank._support.arrays import PerDocument, Rows
from exactrank._support.files import open_bytes
from exactrank._support.numerals import number, whole_number
from exactrank.data.duplicates import check_columns, check_documents
from exactrank.data.files import existing
from exactrank.data.formats.base import Columns
from exactrank.data.frame import library, table_of
from exactrank.data.preferences import Preferences, concatenate_preferences
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError

BETTER, WORSE, WEIGHT = "better", "worse", "weight"
Cells = Sequence[Any]


def with_pairs(data: RankingData, pairs: Any) -> RankingData:
    """``data`` with the ``pairs`` of a pandas, polars or Arrow frame, or of a mapping from its columns to lists, beside its grades.

    The columns are ``query_id``, ``better``, ``worse`` and, if pairs do not count alike, ``weight``. Pairs that ``data`` has already stay,
    and the weights of equal ones are added up.

    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 0], qid=[7, 7], docid=["a", "b"])
    >>> with_pairs(data, {"query_id": [7], "better": ["b"], "worse": ["a"]}).preferences.to_frame().values.tolist()
    [[1.0, 0.0, 1.0]]
    """
    check_data(data)
    if isinstance(pairs, Mapping):
        return _added(data, pairs, lambda i: f"pair {i}")
    table = table_of(pairs, "pairs")
    return _added(data, {name: table.get_column(name).to_list() for name in table.columns}, lambda i: f"row {i} of the pairs")


def read_pairs(path: str | os.PathLike[str], data: RankingData) -> RankingData:
    """Return ``data`` with the pairs of a CSV, TSV or Parquet file, in the columns of [`with_pairs`][exactrank.pairs.with_pairs]."""
    check_data(data)
    source = existing(path)
    name = source.with_suffix("") if source.suffix == ".gz" else source
    if name.suffix.lower() in (".parquet", ".pq"):
        from exactrank.data.formats.arrow import arrow_errors

        with arrow_errors(source):
            check_columns(library("pyarrow.parquet").read_schema(source).names, str(source))
            table = library("pyarrow.parquet").read_table(source)
        try:
            columns = {each: table[each].to_pylist() for each in table.column_names}
        except UnicodeDecodeError as error:
            raise DataError(f"{source}: an id is not UTF-8 ({error}); write the ids as UTF-8 text") from None
        except (OverflowError, ValueError) as error:
            raise DataError(f"{source}: a value cannot be read ({error}); write ids as text or whole numbers") from None
        return _added(data, columns, lambda i: f"{source}, row {i}")
    lines: list[int] = []
    found = _csv_columns(source, "\t" if name.suffix.lower() == ".tsv" else ",", lines)
    return _added(data, found, lambda i: f"{source}, line {lines[i]}", str(source))


def _csv_columns(path: Path, separator: str, lines: list[int]) -> dict[str, Cells]:
    """The columns by the names in the first line; ``lines`` gets the line of each row."""
    with open_bytes(path) as file, io.TextIOWrapper(cast(BinaryIO, file), "utf-8-sig", "surrogateescape", newline="") as text:
        reader = csv.reader(text, delimiter=separator)
        try:
            names = [name.strip() for name in next(reader, [])]
            check_columns(names, f"{path}, line 1")
            rows = []
            for row in reader:
                if row and len(row) != len(names):
                    raise DataError(f"{path}, line {reader.line_num}: has {len(row)} cells; expected {len(names)}, as the first line has")
                if row:
                    rows.append(row)
                    lines.append(reader.line_num)
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: {error}; expected lines such as '7,GX1,GX2'") from None
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())


def _added(data: RankingData, columns: Mapping[str, Cells], place: Callable[[int], str], whole: str = "the pairs") -> RankingData:
    """``data`` with what the ``columns`` say; ``place`` says in errors where a pair stands."""
    query = Columns().query
    needed = (BETTER, WORSE) if data.docid is None else (query, BETTER, WORSE)
    missing = [name for name in needed if name not in columns]
    if missing:
        has = ", ".join(map(repr, columns)) or "none"
        raise DataError(f"{whole}: there is no column {missing[0]!r}; expected {', '.join(needed)} and, if wanted, {WEIGHT}; found {has}")
    if len({len(columns[name]) for name in (*needed, *({query, WEIGHT} & columns.keys()))}) > 1:
        raise DataError(f"{whole}: the columns are of different lengths; give one cell per pair")
    if not len(columns[BETTER]):
        raise DataError(f"{whole}: there are no pairs; give at least one, or leave them out")
    found = _rows_by_id(data, columns, place) if data.docid is not None else _rows_by_number(data, columns, place)
    for i in np.flatnonzero(found[0] == found[1])[:1]:
        raise DataError(f"{place(i)}: {columns[BETTER][i]!r} is paired with itself; give two different documents")
    of = np.searchsorted(data.indptr, found, side="right")
    for i in np.flatnonzero(of[0] != of[1])[:1]:
        pair = f"{columns[BETTER][i]} and {columns[WORSE][i]}"
        raise DataError(f"{place(i)}: the rows {pair} belong to different queries; a pair is of two documents of one query")
    own = Preferences(found[0], found[1], _weights(columns.get(WEIGHT), len(of[0]), place))
    return replace(data, preferences=concatenate_preferences([data.preferences, own], [0, 0]))


def _rows_by_id(data: RankingData, columns: Mapping[str, Cells], place: Callable[[int], str]) -> Rows:
    """The rows of the better and of the worse documents, by query and document id."""
    check_documents(data)
    number = {str(q): n for n, q in enumerate(data.qid.tolist())}
    rows: dict[str, dict[str, int]] = {}
    found = np.empty((2, len(columns[BETTER])), np.int64)
    for i, cells in enumerate(zip(columns[Columns().query], columns[BETTER], columns[WORSE], strict=True)):
        query, *documents = (_id(cell, place, i) for cell in cells)
        if query not in rows:
            if query not in number:
                raise DataError(f"{place(i)}: the data has no query {query!r}; check the ids, or leave the pair out")
            first, last = data.indptr[number[query] : number[query] + 2]
            rows[query] = {data.docid[row]: row for row in range(first, last)}  # type: ignore[index]  # there are ids
        for side, document in enumerate(documents):
            if document not in rows[query]:
                raise DataError(
                    f"{place(i)}: query {query!r} has no document {document!r} in the data; check the ids, or leave the pair out"
                )
            found[side, i] = rows[query][document]
    return found


def _id(cell: object, place: Callable[[int], str], i: int) -> str:
    if cell is None or cell != cell or cell == "":
        raise DataError(f"{place(i)}: an id is missing; give the query and both documents")
    return str(cell)


def _rows_by_number(data: RankingData, columns: Mapping[str, Cells], place: Callable[[int], str]) -> Rows:
    """The same, where the columns hold the caller's rows, since the data has no document ids."""
    found = np.empty((2, len(columns[BETTER])), np.int64)
    for side, name in enumerate((BETTER, WORSE)):
        for i, cell in enumerate(columns[name]):
            try:
                row = whole_number(cell) if isinstance(cell, str) else int(cell)
            except (TypeError, ValueError, OverflowError):
                row = -1
            if not 0 <= row < data.n_documents or (isinstance(cell, float) and cell != row):
                raise DataError(
                    f"{place(i)}: {name} is {cell!r}; the data has no document ids, so give a row from 0 to {data.n_documents - 1}"
                )
            found[side, i] = row
    return found if data.order is None else np.argsort(data.order)[found]


def _weights(cells: Cells | None, count: int, place: Callable[[int], str]) -> PerDocument:
    if cells is None:
        return np.ones(count)
    weights = np.empty(count)
    for i, cell in enumerate(cells):
        try:
            weights[i] = np.nan if cell is None else number(cell) if isinstance(cell, str) else float(cell)
        except (TypeError, ValueError, OverflowError):
            weights[i] = np.nan
        if not 0 <= weights[i] < np.inf:
            raise DataError(f"{place(i)}: the weight is {cell!r}; weights must be finite numbers and not negative")
    return weights
