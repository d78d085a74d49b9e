"""Parquet files, and code shared with CSV: Arrow's batches as tables, blocks as Arrow tables, and Arrow's errors as `DataError`."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np

from exactrank._support.libraries import library
from exactrank._support.threads import thread_count
from exactrank.data.formats.base import BLOCK_CELLS, Block, Columns, ReadOptions, Stream
from exactrank.data.frame import PARTS, ROW_LABEL, Label, Source, TableLayout, layout_of, table_of
from exactrank.data.levels import places_of
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

FIRST_ROWS = 1 << 13  #: examined for features that single precision cannot hold


class TableWriter(Protocol):
    """A writer of Arrow tables."""

    def write_table(self, table: "pa.Table") -> None: ...


class ParquetFormat:
    """Parquet files, which preserve the types of columns."""

    name = "Parquet"

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        return _source(path, options).data()

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        return _source(path, options).stream()

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """Write a row group for each block; comments are lost."""
        write_tables(stream, lambda schema: library("pyarrow.parquet").ParquetWriter(file, schema))


def _source(path: Path, options: ReadOptions) -> Source:
    arrow, parquet, place = library("pyarrow"), library("pyarrow.parquet"), str(path)
    with arrow_errors(path):
        schema = parquet.read_schema(path)
        _ = schema.names  # Arrow checks that they are UTF-8 only when they are read
    empty = table_of(schema.empty_table(), place)

    def batches(columns: Sequence[Label], rows: int) -> "Iterator[pa.RecordBatch]":
        bounded: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 16}  # otherwise Arrow reads far ahead of the batches
        with arrow_errors(path), parquet.ParquetFile(path, **bounded) as file:
            yield from file.iter_batches(rows, columns=columns, use_threads=thread_count(options.threads) > 1)

    def tables(layout: TableLayout, exact: Sequence[Label]) -> "Iterator[nw.DataFrame[Any]]":
        return tables_of(batches(layout.labels, _block_rows(layout)), layout, place)

    def first_rows_of(columns: Sequence[Label], limit: int) -> "nw.DataFrame[Any]":
        batch = next(batches(columns, limit), None)
        return empty if batch is None else table_of(arrow.Table.from_batches([batch]), place)

    texts = [name for name, kind in empty.schema.items() if kind == library("narwhals").String]
    layout = layout_of(empty, options.columns, place, first_rows_of(texts, FIRST_ROWS) if texts else None)

    def first_rows() -> "nw.DataFrame[Any]":
        return first_rows_of(layout.labels, min(_block_rows(layout), FIRST_ROWS))

    return Source(layout, place, tables, first_rows)


@contextmanager
def arrow_errors(path: Path, header: list[str] | None = None) -> Iterator[None]:
    """Turn Arrow's errors into a `DataError` that names the file, and the column of ``header`` if Arrow gives its number."""
    arrow = library("pyarrow")
    try:
        yield
    except arrow.ArrowException as error:
        message = str(error)
        counted = re.match(r"In CSV column #(\d+): ", message)
        if "Empty CSV file or block" in message:
            message = "its first 2 MiB hold no line of column names"
        elif "straddl" in message:
            message = "a row is longer than 2 MiB, or has a quote that is not closed"
        elif counted and header is not None and int(counted[1]) < len(header):
            message = f"column {header[int(counted[1])]!r}: {message[counted.end() :]}"
        raise DataError(f"{path}: {message}; fix the file or write it again") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: the name of a column is not UTF-8 ({error}); write the file again in UTF-8") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise DataError(f"{path}: {error}; the file is damaged, so copy it or write it again") from None


def tables_of(batches: "Iterable[pa.RecordBatch]", layout: TableLayout, place: str) -> "Iterator[nw.DataFrame[Any]]":
    """Combine Arrow's batches into tables of about `BLOCK_CELLS` cells."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= _block_rows(layout):
            yield table_of(library("pyarrow").Table.from_batches(waiting), place)
            waiting = []
    if waiting:
        yield table_of(library("pyarrow").Table.from_batches(waiting), place)


def _block_rows(layout: TableLayout) -> int:
    return max(1, BLOCK_CELLS // max(1, len(layout.features)))


def write_tables(
    stream: Stream, open_writer: "Callable[[pa.Schema], AbstractContextManager[TableWriter]]", *, plain_text: bool = False
) -> None:
    """Write each block by the writer that ``open_writer`` returns for the schema; all blocks must have the schema of the first.

    Categories become dictionaries of Arrow, or strings with ``plain_text``.
    """
    reserved = {getattr(Columns(), part) for part in PARTS}
    for name, times in Counter(stream.feature_names).items():
        why = f"{times} features have it" if times > 1 else "it names another part of a table" if name in reserved else ""
        why = why or ("it is where pandas leaves row labels" if ROW_LABEL.fullmatch(name) else "")
        if why:
            raise DataError(f"feature name {name!r} cannot be a column's: {why}; rename the feature or write .xr")
    writer = schema = None
    with ExitStack() as opened:
        for block in stream.blocks:
            table = _arrow_table(block, stream, with_ids=schema is not None and Columns().doc in schema.names, plain_text=plain_text)
            if schema is not None and table.schema != schema:
                changed = ", ".join(sorted(set(map(str, table.schema)) ^ set(map(str, schema))))
                raise DataError(
                    f"the columns of a table must be the same in all rows, but these appear or change on the way: {changed}; write .xr"
                )
            schema = table.schema
            writer = writer or opened.enter_context(open_writer(schema))
            writer.write_table(table)
    if schema is None:
        raise DataError("there are no documents to write")


def _arrow_table(block: Block, stream: Stream, *, with_ids: bool, plain_text: bool) -> "pa.Table":
    """Return a block of ``stream`` as a table; ``with_ids`` adds a column of empty document ids if the block has no ids.

    Features with an offset become float64.
    """
    arrow, names = library("pyarrow"), Columns()
    if block.qid.dtype.kind in "OU" and np.any(block.qid == ""):
        raise DataError("query id '' would read back as missing from a table; rename it or write .xr")
    parts = {
        names.query: block.qid.tolist() if block.qid.dtype.kind in "OU" else block.qid,
        names.doc: block.docid.tolist() if block.docid is not None else [""] * len(block.y) if with_ids else None,
        names.relevance: block.y,
        names.sample_weight: block.sample_weight,
        names.query_weight: block.query_weight,
        **block.extra_columns,
    }
    features: dict[str, Any] = dict(zip(stream.feature_names, np.ascontiguousarray(block.X.T), strict=True))
    for j, (name, offset) in enumerate(zip(stream.feature_names, () if stream.offset is None else stream.offset, strict=False)):
        if offset:
            features[name] = block.X[:, j] + offset
    for name, levels in stream.levels.items():
        places = places_of(features[name], len(levels)).astype(np.int32)
        texts = arrow.DictionaryArray.from_arrays(arrow.array(places, mask=places == len(levels)), arrow.array(levels, arrow.string()))
        features[name] = texts.cast(arrow.string()) if plain_text else texts
    try:
        return arrow.table({name: arrow.array(values) for name, values in (parts | features).items() if values is not None})
    except UnicodeEncodeError as error:
        raise DataError(f"{error.object!r} is not UTF-8, as the strings of a table must be; write .xr or .txt") from None
    except arrow.ArrowException as error:
        raise DataError(f"query ids cannot be the column of a table: {error}; give all of them one kind, or write .txt") from None
