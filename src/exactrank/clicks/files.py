"""Click logs in files and frames: `er.clicks.read_clicks` and `er.clicks.write_clicks`.

A file is read in blocks, of which nothing remains but codes: each block has its ids as an Arrow dictionary, and the dictionaries of
all blocks become one at the end. So memory is some 20 bytes per row, the different ids, and a block or two.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank._support.files import checked_path, open_bytes, whole_file
from exactrank._support.libraries import library
from exactrank._support.threads import thread_count
from exactrank.clicks.log import ClickColumns, Clicks, Codes, check_clicks, checked_clicks, checked_ranks
from exactrank.data.alignment import name_list
from exactrank.data.duplicates import check_columns
from exactrank.data.files import MAGIC_BYTES, existing
from exactrank.data.formats.arrow import arrow_errors
from exactrank.data.formats.csv import csv_batches
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.frame import table_of
from exactrank.data.immutable import seal
from exactrank.data.validation import check_numbers, floats_of
from exactrank.errors import DataError

if TYPE_CHECKING:
    from pyarrow import Array, ChunkedArray, RecordBatch, Schema

BATCH = 1 << 18  # rows
PARTS = ("query", "doc", "rank", "clicked", "session", "weight", "time")
NEEDED = PARTS[:4]
IDS = ("query", "doc", "session")
WHAT = {"query": "query id", "doc": "document id", "session": "session id"}


def read_clicks(log: object, *, columns: ClickColumns | None = None, threads: int | None = None) -> Clicks:
    """Read a click log: Parquet, CSV (``.csv``) or TSV, the latter two also ``.gz``, or a pandas, polars or Arrow frame.

    One row is one impression, with a query, a document, its rank from 1 and whether it was clicked; a session, a weight and a time are
    optional. ``columns`` says how the columns are called.

    >>> import pandas as pd
    >>> read_clicks(pd.DataFrame({"query_id": [1, 1], "doc_id": ["a", "b"], "rank": [1, 2], "clicked": [True, False]}))
    Clicks(2 impressions of 2 documents for 1 query, 1 clicked)
    """
    names = columns or ClickColumns()
    if isinstance(log, str | os.PathLike):
        path = existing(log)
        return _Blocks(names, str(path)).clicks(_batches(path, names, threads))
    table = table_of(log, "log")
    label_of = _layout(table.columns, names, "log")
    try:
        batch = table.select(list(label_of.values())).to_arrow()
    except (library("pyarrow").ArrowException, OverflowError) as error:
        raise DataError(f"log: {error}; give every column values of one kind, and numbers that fit 64 bits") from None
    return _Blocks(names, "log").clicks(iter([batch]))


def is_click_log(path: Path, columns: ClickColumns) -> bool:
    """Return whether the file is a table with the columns of ranks and clicks."""
    if not path.is_file() or not _is_table(path):
        return False
    return {columns.rank, columns.clicked} <= set(_schema(path).names)


def _is_parquet(path: Path) -> bool:
    with open_bytes(path) as file:
        return MAGIC_BYTES.get(file.read(4)) == "parquet"


def _is_table(path: Path) -> bool:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return (suffixes[-2:-1] if suffixes[-1:] == [".gz"] else suffixes[-1:]) in ([".csv"], [".tsv"]) or _is_parquet(path)


def _delimiter(path: Path) -> str:
    return "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes[-2:]] else ","


def _schema(path: Path) -> "Schema":
    if _is_parquet(path):
        with arrow_errors(path):
            return library("pyarrow.parquet").read_schema(path)
    with csv_batches(path, 1, delimiter=_delimiter(path)) as (schema, _):
        return schema


def _batches(path: Path, columns: ClickColumns, threads: int | None) -> "Iterator[RecordBatch]":
    """Yield the columns of the log, some rows at a time."""
    if not _is_table(path):
        raise DataError(f"{path} is not Parquet, and its name ends neither in .csv nor in .tsv; give a click log as one of these")
    schema = _schema(path)
    labels = list(_layout(schema.names, columns, str(path)).values())
    if _is_parquet(path):
        bounded: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 16}
        with arrow_errors(path), library("pyarrow.parquet").ParquetFile(path, **bounded) as file:
            yield from file.iter_batches(BATCH, columns=labels, use_threads=thread_count(threads) > 1)
        return
    arrow = library("pyarrow")
    text = arrow.dictionary(arrow.int32(), arrow.string())
    types = {getattr(columns, part): text for part in IDS} | {columns.rank: arrow.float64(), columns.weight: arrow.float64()}
    if schema.field(columns.clicked).type != arrow.bool_():
        types[columns.clicked] = arrow.float64()
    kinds = {label: types[label] for label in labels if label in types}
    with csv_batches(path, threads, schema.names, delimiter=_delimiter(path), column_types=kinds, include_columns=labels) as (_, batches):
        yield from batches


def _layout(labels: Sequence[str], columns: ClickColumns, place: str) -> dict[str, str]:
    """Return the label of the column of each part that the log has."""
    check_columns(labels, place)
    label_of = {}
    for part in PARTS:
        label = getattr(columns, part)
        if label in labels:
            label_of[part] = label
        elif part in NEEDED or label != getattr(ClickColumns(), part):
            remedy = f"set ClickColumns({part}=...) (--{part}-column) to the right one"
            has = name_list(list(map(repr, labels)), 20)
            raise DataError(f"{place}: has no column {label!r} for the {WHAT.get(part, part)}; it has {has}; {remedy}")
    for label, times in Counter(label_of.values()).items():
        if times > 1:
            raise DataError(f"{place}: column {label!r} is named for {times} parts; name a different column for each")
    return label_of


class _Blocks:
    """Collects the blocks of a log; ``place`` names the log in messages."""

    def __init__(self, columns: ClickColumns, place: str) -> None:
        self.columns, self.place, self.rows = columns, place, 0
        self.parts: dict[str, list[Any]] = {}

    def clicks(self, batches: "Iterator[RecordBatch]") -> Clicks:
        """Read all batches, and return the log."""
        for batch in batches:
            for part in PARTS:
                label = getattr(self.columns, part)
                if label in batch.schema.names:
                    self.parts.setdefault(part, []).append(self._checked_part(part, batch.column(label)))
            self.rows += batch.num_rows
        if not self.rows:
            raise DataError(f"{self.place}: holds no impressions; expected one row per document shown")
        ids = {part: _join_blocks(self.parts.pop(part)) for part in IDS if part in self.parts}
        rest = {part: np.concatenate(self.parts.pop(part)) for part in PARTS[2:] if part in self.parts}
        sessions, session = ids.get("session", (None, None))
        (queries, query), (documents, document) = ids["query"], ids["doc"]
        optional = {part: rest.get(part) for part in ("weight", "time")}
        return Clicks(queries, documents, query, document, rest["rank"], rest["clicked"], sessions, session, **optional)

    def _checked_part(self, part: str, column: "Array") -> "ChunkedArray | npt.NDArray[np.generic]":
        """Check a part of a block, and return ids as a dictionary and other parts as an array."""
        label = getattr(self.columns, part)
        if column.null_count:
            row = self.rows + int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise DataError(f"{self._place(part).format(row)} is missing; give every impression one, or leave the row out")
        if part in IDS:
            return self._dictionary(column, label)
        if library("pyarrow").types.is_nested(column.type):
            raise DataError(f"{self.place}: column {label!r} holds {column.type}; give one value per impression")
        try:
            values = np.asarray(column)
        except (library("pyarrow").ArrowException, UnicodeDecodeError):
            raise DataError(f"{self.place}: column {label!r} holds text that is not UTF-8; give numbers") from None
        if part == "rank":
            return checked_ranks(values, self._place(part), self.rows)
        if part == "clicked":
            return checked_clicks(values, self._place(part), self.rows)
        return self._weights(values) if part == "weight" else values

    def _dictionary(self, column: "Array | ChunkedArray", label: str) -> "ChunkedArray":
        arrow = library("pyarrow")
        try:
            chunks = column.chunks if hasattr(column, "chunks") else [column]
            ids = arrow.chunked_array(chunks, column.type)
            if not arrow.types.is_dictionary(ids.type):
                ids = ids.cast(arrow.string()).dictionary_encode()
            elif ids.type.value_type != arrow.string() or ids.type.index_type != arrow.int32():
                ids = ids.cast(ids.type.value_type).cast(arrow.string()).dictionary_encode()
            return ids
        except arrow.ArrowException as error:
            raise DataError(f"{self.place}: column {label!r} cannot be ids: {error}; give them as text or numbers") from None

    def _weights(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
        weights = floats_of(f"{self.place}: column {self.columns.weight!r}", values)
        try:
            check_numbers("weight", weights, some_positive=False)
        except DataError as error:
            raise DataError(f"{self.place}: {error} (counted from row {self.rows})") from None
        return weights

    def _place(self, part: str) -> str:
        return f"{self.place}: {WHAT.get(part, part)} {getattr(self.columns, part)!r} of row {{}} (from 0)"


def _join_blocks(blocks: "list[ChunkedArray]") -> tuple[TextColumn, Codes]:
    """Return the distinct ids of all blocks, sorted, and the number of each row's id among them."""
    arrow, compute = library("pyarrow"), library("pyarrow.compute")
    column = arrow.chunked_array([chunk for block in blocks for chunk in block.chunks]).unify_dictionaries()
    dictionary = column.chunk(0).dictionary
    order = compute.sort_indices(dictionary).to_numpy()
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    codes = np.concatenate([place[chunk.indices.to_numpy()] for chunk in column.chunks])
    texts = dictionary.take(arrow.array(order)).cast(arrow.large_string())
    _, offsets, content = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(texts) + 1)
    buffer = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    return TextColumn.between(seal(np.array(buffer[: bounds[-1]])), seal(np.array(bounds))), codes


def write_clicks(clicks: Clicks, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a click log as Parquet or CSV, by the path's suffix; an existing file is replaced only with ``force``."""
    check_clicks(clicks, "clicks")
    with log_writer(path, force=force) as write:
        write(clicks)


@contextmanager
def log_writer(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Callable[[Clicks], None]]:
    """Provide a function that writes a log to ``path``, which is opened before the work that makes the log."""
    suffix = checked_path(path).suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise DataError(f"{path}: the suffix {suffix!r} is not that of a click log; use .parquet or .csv")
    arrow, module = library("pyarrow"), library(f"pyarrow.{suffix[1:]}")
    with whole_file(path, force=force) as file:

        def write(clicks: Clicks) -> None:
            table = arrow.table(dict(clicks._columns()))
            (module.write_table if suffix == ".parquet" else module.write_csv)(table, file)

        yield write
