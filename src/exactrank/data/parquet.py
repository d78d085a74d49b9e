"""Parquet files; the types of the columns are kept."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from exactrank.data.arrow import arrow_errors, block_rows, tables_of, with_names, write_tables
from exactrank.data.format import ReadOptions
from exactrank.data.frame import Layout, Source, gathered, layout_of, library, table_of
from exactrank.data.ranking_data import RankingData
from exactrank.data.stream import Stream
from exactrank.threads import thread_count

if TYPE_CHECKING:
    import narwhals as nw

FIRST_ROWS = 1 << 13  # looked at for features that single precision cannot hold


class ParquetFormat:
    """Parquet files; the types of the columns are kept."""

    name = "Parquet"

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        """All of the file."""
        return gathered(_source(path, options))

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        """A batch of rows at a time, decoding only the columns that have a part."""
        return _source(path, options).stream()

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """One row group a block; comments are not kept."""
        write_tables(stream, lambda schema: library("pyarrow.parquet").ParquetWriter(file, schema))


def _source(path: Path, options: ReadOptions) -> Source:
    place = str(path)
    with arrow_errors(path):
        empty = table_of(with_names(library("pyarrow.parquet").read_schema(path)).empty_table(), place)

    def tables(layout: Layout, exact: Sequence[Any]) -> "Iterator[nw.DataFrame[Any]]":
        return tables_of(_batches(path, layout, block_rows(layout), options.threads), layout, place)

    def first_rows() -> "nw.DataFrame[Any]":
        some = next(_batches(path, layout, min(block_rows(layout), FIRST_ROWS), options.threads), None)
        return empty if some is None else table_of(library("pyarrow").Table.from_batches([some]), place)

    layout = layout_of(empty, options.columns, place)
    return Source(layout, place, tables, first_rows)


def _batches(path: Path, layout: Layout, rows: int, threads: int | None) -> Iterator[Any]:
    bounded: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 16}  # else Arrow reads far ahead of the batches
    with arrow_errors(path), library("pyarrow.parquet").ParquetFile(path, **bounded) as file:
        yield from file.iter_batches(rows, columns=layout.used, use_threads=thread_count(threads) > 1)
