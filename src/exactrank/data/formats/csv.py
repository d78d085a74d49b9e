"""Values separated by commas or tabs under a line of column names, plain or gzip.

CSV has no types. Features are parsed as float32 and grades as float64, so that values come back to the bit; features that need an offset
are parsed as float64. Query ids are whole numbers if all of them look like whole numbers (``7``, not ``07``) and the first is not in
quotes; otherwise they are strings. The first 2 MiB decide which columns hold numbers.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from exactrank._support.arrays import Ids
from exactrank._support.files import open_bytes
from exactrank._support.libraries import library
from exactrank._support.threads import thread_count
from exactrank.data.formats.arrow import arrow_errors, tables_of, write_tables
from exactrank.data.formats.base import Columns, ReadOptions, Stream
from exactrank.data.frame import Label, Source, TableLayout, layout_of, table_of
from exactrank.data.ranking_data import RankingData

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

CSV_BLOCK = 1 << 21  #: bytes; Arrow reads up to 32 such blocks ahead
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,19}")
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


class CsvFormat:
    """Comma-separated values under a line of column names, plain or gzip."""

    name = "CSV"
    delimiter = ","

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        source, may_be_numbers = _source(path, options, self.delimiter)
        data = source.data()
        numbers = _whole_numbers(data.qid.tolist()) if may_be_numbers else None
        return data if numbers is None else replace(data, qid=numbers)

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        """Read the query ids first, which must have one type in all blocks, then the blocks."""
        source, may_be_numbers = _source(path, options, self.delimiter)
        names: dict[str, None] = {}
        for ids in source.tables(source.only([]), []) if may_be_numbers else ():
            for chunk in ids.to_native().column(0).chunks:
                names.update(dict.fromkeys(chunk.dictionary.to_pylist()))
        numbers, stream = _whole_numbers(list(names)) if names else None, source.stream()
        if numbers is None:
            return stream
        number_of, kind = dict(zip(names, numbers.tolist(), strict=True)), numbers.dtype
        numbered = (replace(block, qid=np.array([number_of[name] for name in block.qid.tolist()], kind)) for block in stream.blocks)
        return replace(stream, blocks=numbered)

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """Write the shortest numbers that read back to the same value, and strings in quotes; comments are lost."""
        csv = library("pyarrow.csv")
        settings = csv.WriteOptions(delimiter=self.delimiter)
        write_tables(stream, lambda schema: csv.CSVWriter(file, schema, write_options=settings), plain_text=True)


class TsvFormat(CsvFormat):
    """Tab-separated values under a line of column names, plain or gzip."""

    name = "TSV"
    delimiter = "\t"


def _source(path: Path, options: ReadOptions, delimiter: str) -> tuple[Source, bool]:
    """Return the file as a table, with types by its first block, and whether its query ids may be numbers."""
    arrow, columns, place, may_be_numbers = library("pyarrow"), options.columns, str(path), False
    text = {columns.query: arrow.string()}
    with csv_batches(path, options.threads, delimiter=delimiter, column_types=text) as (schema, batches):
        first = next(batches, None)
    rows = table_of(schema.empty_table() if first is None else arrow.Table.from_batches([first]), place)
    if first is not None:
        schema = _intended_schema(first, columns)
    layout = layout_of(table_of(schema.empty_table(), place), columns, place, rows)
    if first is not None and _whole_numbers([name := first[columns.query][0].as_py()]) is not None:
        # Find out whether the first query id is in quotes: Arrow reads it as null only without quotes.
        as_null: dict[str, Any] = {"null_values": [name], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
        with csv_batches(path, 1, delimiter=delimiter, column_types=text, include_columns=[columns.query], **as_null) as (_, batches):
            may_be_numbers = not next(batches)[0][0].is_valid
    # Numbers in their final precision; query ids as dictionaries, which hold each string once per block.
    types = {layout.doc: arrow.string(), layout.query: arrow.dictionary(arrow.int32(), arrow.string())}
    for labels, kind in ((layout.numbers, arrow.float64()), (layout.features, arrow.float32())):
        types |= {label: arrow.bool_() if schema.field(label).type == arrow.bool_() else kind for label in labels}
    types |= dict.fromkeys(layout.categories, types[layout.query])

    def tables(layout: TableLayout, exact: Sequence[Label]) -> "Iterator[nw.DataFrame[Any]]":
        parsed = {label: arrow.float64() if label in exact else types[label] for label in layout.labels}
        selection = {"column_types": parsed, "include_columns": list(parsed)}
        with csv_batches(path, options.threads, schema.names, delimiter=delimiter, **selection) as (_, batches):
            yield from tables_of(batches, layout, place)

    return Source(layout, place, tables, lambda: rows, decimals=True), may_be_numbers


@contextmanager
def csv_batches(
    path: Path, threads: int | None, header: list[str] | None = None, *, delimiter: str = ",", **convert: object
) -> "Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]":
    """Yield the schema that Arrow infers from the first block, and the batches that have rows; ``convert`` are Arrow's options."""
    csv = library("pyarrow.csv")
    with arrow_errors(path, header), open_bytes(path) as file:
        reader = csv.open_csv(
            file,
            read_options=csv.ReadOptions(block_size=CSV_BLOCK, use_threads=thread_count(threads) > 1),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(**convert),
        )
        with reader:
            _ = reader.schema.names  # Arrow checks that they are UTF-8 only when they are read
            yield reader.schema, (batch for batch in reader if batch.num_rows)


def _intended_schema(first: "pa.RecordBatch", columns: Columns) -> "pa.Schema":
    """Return the schema of the first batch with numbers in every column that should hold numbers, so that parsing finds wrong cells.

    A column of text should hold numbers if most of its first thousand cells are numbers.
    """
    arrow, fields = library("pyarrow"), []
    numbers, ids = {columns.relevance, columns.sample_weight, columns.query_weight, *columns.keep}, (columns.query, columns.doc)
    for field, cells in zip(first.schema, first.columns, strict=True):
        text = not arrow.types.is_primitive(field.type) or arrow.types.is_temporal(field.type)
        is_number = field.name in numbers
        if arrow.types.is_temporal(field.type):
            is_number = is_number or field.name in (columns.features or ())
        elif text and (field.name not in ids if columns.features is None else field.name in columns.features):
            sample = [cell for cell in cells[:1000].to_pylist() if isinstance(cell, str) and cell]
            is_number = is_number or 2 * sum(NUMBER.fullmatch(cell) is not None for cell in sample) > len(sample)
        fields.append(field.with_type(arrow.float64()) if text and is_number else field)
    return arrow.schema(fields)


def _whole_numbers(names: list[str]) -> Ids | None:
    """Return the ids as whole numbers, if all of them look like whole numbers and fit 64 bits.

    >>> _whole_numbers(["7", "-12"]), _whole_numbers(["7", "07"])
    (array([  7, -12]), None)
    """
    if not all(WHOLE_NUMBER.fullmatch(name) for name in names):
        return None
    numbers = [int(name) for name in names]
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= min(numbers) and max(numbers) <= np.iinfo(kind).max:
            return np.array(numbers, kind)
    return None
