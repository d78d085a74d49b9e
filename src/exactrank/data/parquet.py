"""Parquet files; the types of the columns are kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from exactrank.data.arrow import arrow_errors, block_rows, tables_of, with_names, write_tables
from exactrank.data.format import ReadOptions
from exactrank.data.frame import Layout, blocks_of, gathered, layout_of, library, table_of
from exactrank.data.ranking_data import RankingData
from exactrank.data.stream import Block, Stream
from exactrank.threads import thread_count


class ParquetFormat:
    """Parquet files; the types of the columns are kept."""

    name = "Parquet"
    suffixes: tuple[str, ...] = (".parquet", ".pq")

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        """All of the file."""
        layout, blocks = self._opened(path, options)
        return gathered(layout, blocks, str(path))

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        """A batch of rows at a time, decoding only the columns that have a part."""
        layout, blocks = self._opened(path, options)
        return Stream(layout.feature_names, blocks)

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """One row group a block; comments are not kept."""
        write_tables(stream, lambda schema: library("pyarrow.parquet").ParquetWriter(file, schema))

    def _opened(self, path: Path, options: ReadOptions) -> tuple[Layout, Iterator[Block]]:
        with arrow_errors(path):
            schema = with_names(library("pyarrow.parquet").read_schema(path))
        layout = layout_of(table_of(schema.empty_table(), str(path)), options.columns, str(path))
        tables = tables_of(_parquet_batches(path, layout, options.threads), layout, str(path))
        return layout, blocks_of(tables, layout, str(path))


def _parquet_batches(path: Path, layout: Layout, threads: int | None) -> Iterator[Any]:
    bounded: dict[str, Any] = {"pre_buffer": False, "buffer_size": 1 << 16}  # else Arrow reads far ahead of the batches
    with arrow_errors(path), library("pyarrow.parquet").ParquetFile(path, **bounded) as file:
        yield from file.iter_batches(block_rows(layout), columns=layout.used, use_threads=thread_count(threads) > 1)
