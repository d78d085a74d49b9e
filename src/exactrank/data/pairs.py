"""Add pairs of documents from a frame, a file or arrays to data: `with_pairs` and `read_pairs`.

A table has one pair per row: the query (``query_id``), the document that a judge prefers (``better``) and the other document (``worse``),
both by document id, and an optional ``weight``. If the data has no document ids, documents are given by their row, numbered from 0 in the
caller's order, and the query may be left out.
"""

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, SupportsFloat, SupportsIndex, SupportsInt, cast

import numpy as np

from exactrank._support.arrays import PerDocument, Rows
from exactrank._support.files import open_bytes
from exactrank._support.libraries import library
from exactrank._support.numerals import number, whole_number
from exactrank.data.duplicates import check_columns, check_documents
from exactrank.data.files import existing
from exactrank.data.formats.base import Columns
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.frame import table_of
from exactrank.data.preferences import Preferences, concatenate_preferences
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError

BETTER, WORSE, WEIGHT = "better", "worse", "weight"
Cells = Sequence[object]


def with_pairs(data: RankingData, pairs: object) -> RankingData:
    """Return ``data`` with the ``pairs`` of a pandas, polars or Arrow frame, or of a mapping from column names to lists.

    The columns are ``query_id``, ``better``, ``worse`` and optionally ``weight``. Pairs that ``data`` already has remain, and the weights
    of equal pairs are added up.

    >>> data = RankingData.from_arrays([[1.0], [2.0]], [0, 0], qid=[7, 7], docid=["a", "b"])
    >>> with_pairs(data, {"query_id": [7], "better": ["b"], "worse": ["a"]}).preferences.to_frame().values.tolist()
    [[1.0, 0.0, 1.0]]
    """
    check_data(data)
    if isinstance(pairs, Mapping):
        return _add_pairs(data, pairs, lambda i: f"pair {i}")
    table = table_of(pairs, "pairs")
    return _add_pairs(data, {name: table.get_column(name).to_list() for name in table.columns}, lambda i: f"row {i} of the pairs")


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
            columns = {name: table[name].to_pylist() for name in table.column_names}
        except UnicodeDecodeError as error:
            raise DataError(f"{source}: an id is not UTF-8 ({error}); write the ids as UTF-8 text") from None
        except (OverflowError, ValueError) as error:
            raise DataError(f"{source}: a value cannot be read ({error}); write ids as text or whole numbers") from None
        return _add_pairs(data, columns, lambda i: f"{source}, row {i}")
    lines: list[int] = []
    columns_of_text = _csv_columns(source, "\t" if name.suffix.lower() == ".tsv" else ",", lines)
    return _add_pairs(data, columns_of_text, lambda i: f"{source}, line {lines[i]}", str(source))


def _csv_columns(path: Path, separator: str, lines: list[int]) -> dict[str, Cells]:
    """Return the columns by the names in the first line; append the line number of each row to ``lines``."""
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


def _add_pairs(data: RankingData, columns: Mapping[str, Cells], place: Callable[[int], str], source: str = "the pairs") -> RankingData:
    """Return ``data`` with the pairs in ``columns``; in errors, ``place`` gives the place of a pair, and ``source`` names all of them."""
    query = Columns().query
    needed = (BETTER, WORSE) if data.docid is None else (query, BETTER, WORSE)
    missing = [name for name in needed if name not in columns]
    if missing:
        has = ", ".join(map(repr, columns)) or "none"
        raise DataError(f"{source}: there is no column {missing[0]!r}; expected {', '.join(needed)} and, if wanted, {WEIGHT}; found {has}")
    if len({len(columns[name]) for name in (*needed, *({query, WEIGHT} & columns.keys()))}) > 1:
        raise DataError(f"{source}: the columns are of different lengths; give one cell per pair")
    if not len(columns[BETTER]):
        raise DataError(f"{source}: there are no pairs; give at least one, or leave them out")
    rows = _rows_by_number(data, columns, place) if data.docid is None else _rows_by_id(data, data.docid, columns, place)
    for i in np.flatnonzero(rows[0] == rows[1])[:1]:
        raise DataError(f"{place(i)}: {columns[BETTER][i]!r} is paired with itself; give two different documents")
    query_of = np.searchsorted(data.indptr, rows, side="right")
    for i in np.flatnonzero(query_of[0] != query_of[1])[:1]:
        pair = f"{columns[BETTER][i]} and {columns[WORSE][i]}"
        raise DataError(f"{place(i)}: the rows {pair} belong to different queries; a pair is of two documents of one query")
    pairs = Preferences(rows[0], rows[1], _weights(columns.get(WEIGHT), rows.shape[1], place))
    return replace(data, preferences=concatenate_preferences([data.preferences, pairs], [0, 0]))


def _rows_by_id(data: RankingData, docid: TextColumn, columns: Mapping[str, Cells], place: Callable[[int], str]) -> Rows:
    """Return the rows of the better and of the worse documents, by query and document id."""
    check_documents(data)
    number = {str(q): n for n, q in enumerate(data.qid.tolist())}
    row_of: dict[str, dict[str, int]] = {}
    rows = np.empty((2, len(columns[BETTER])), np.int64)
    for i, cells in enumerate(zip(columns[Columns().query], columns[BETTER], columns[WORSE], strict=True)):
        query, *documents = (_id(cell, place, i) for cell in cells)
        if query not in row_of:
            if query not in number:
                raise DataError(f"{place(i)}: the data has no query {query!r}; check the ids, or leave the pair out")
            first, last = data.indptr[number[query] : number[query] + 2]
            row_of[query] = {docid[row]: row for row in range(first, last)}
        for side, document in enumerate(documents):
            if document not in row_of[query]:
                raise DataError(
                    f"{place(i)}: query {query!r} has no document {document!r} in the data; check the ids, or leave the pair out"
                )
            rows[side, i] = row_of[query][document]
    return rows


def _id(cell: object, place: Callable[[int], str], i: int) -> str:
    if cell is None or cell != cell or cell == "":
        raise DataError(f"{place(i)}: an id is missing; give the query and both documents")
    return str(cell)


def _rows_by_number(data: RankingData, columns: Mapping[str, Cells], place: Callable[[int], str]) -> Rows:
    """Return the rows of the better and of the worse documents, which the columns give in the caller's order."""
    rows = np.empty((2, len(columns[BETTER])), np.int64)
    for side, name in enumerate((BETTER, WORSE)):
        for i, cell in enumerate(columns[name]):
            try:
                row = whole_number(cell) if isinstance(cell, str) else int(cell) if isinstance(cell, SupportsInt | SupportsIndex) else -1
            except (TypeError, ValueError, OverflowError):
                row = -1
            if not 0 <= row < data.n_documents or (isinstance(cell, float) and cell != row):
                raise DataError(
                    f"{place(i)}: {name} is {cell!r}; the data has no document ids, so give a row from 0 to {data.n_documents - 1}"
                )
            rows[side, i] = row
    return rows if data.order is None else np.argsort(data.order)[rows]


def _weights(cells: Cells | None, count: int, place: Callable[[int], str]) -> PerDocument:
    if cells is None:
        return np.ones(count)
    weights = np.empty(count)
    for i, cell in enumerate(cells):
        try:
            weights[i] = number(cell) if isinstance(cell, str) else float(cell) if isinstance(cell, SupportsFloat) else np.nan
        except (TypeError, ValueError, OverflowError):
            weights[i] = np.nan
        if not 0 <= weights[i] < np.inf:
            raise DataError(f"{place(i)}: the weight is {cell!r}; weights must be finite numbers and not negative")
    return weights
