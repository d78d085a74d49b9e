"""Comma-separated values under a line of column names, plain or gzip.

CSV does not say what its columns hold. Features are parsed as float32 and grades as float64, so that what was written
comes back to the bit; features that need an offset are parsed as float64. Query ids are whole numbers if all of them
are written so (``7``, not ``07``) and the first is not in quotes; otherwise they are strings. Which columns hold
numbers shows in the first 2 MiB.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from exactrank.arrays import Ids
from exactrank.data.arrow import arrow_errors, tables_of, with_names, write_tables
from exactrank.data.format import Columns, ReadOptions
from exactrank.data.frame import Layout, Source, gathered, layout_of, library, table_of
from exactrank.data.ranking_data import RankingData
from exactrank.data.stream import Block, Stream
from exactrank.files import open_bytes
from exactrank.threads import thread_count

if TYPE_CHECKING:
    import narwhals as nw

CSV_BLOCK = 1 << 21  # bytes; Arrow reads up to 32 such blocks ahead
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,19}")
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


class CsvFormat:
    """Comma-separated values under a line of column names, plain or gzip."""

    name = "CSV"

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        """All of the file in one pass."""
        source = _csv_source(path, options)
        data = gathered(source.source())
        numbers = _whole_numbers(data.qid.tolist()) if source.ids_may_be_numbers else None
        return data if numbers is None else replace(data, qid=numbers)

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        """One pass over the query ids, which must be of one kind in all blocks, then one for the blocks."""
        source = _csv_source(path, options)
        names = source.query_names() if source.ids_may_be_numbers else []
        numbers = _whole_numbers(names) if names else None
        stream = source.source().stream()
        return stream if numbers is None else replace(stream, blocks=_numbered(stream.blocks, names, numbers))

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """The shortest numbers that read back alike, strings in quotes; comments are not kept."""
        write_tables(stream, lambda schema: library("pyarrow.csv").CSVWriter(file, schema))


@dataclass(frozen=True)
class _CsvSource:
    """A CSV file whose header and first block were looked at."""

    path: Path
    header: list[str]
    layout: Layout
    types: dict[str, Any]  # what to parse, and as what
    ids_may_be_numbers: bool
    first: "nw.DataFrame[Any]"  # rows, with the types that Arrow finds in them
    threads: int | None

    def source(self) -> Source:
        return Source(self.layout, str(self.path), self._tables, lambda: self.first, decimals=True)

    def _tables(self, layout: Layout, exact: Sequence[Any]) -> "Iterator[nw.DataFrame[Any]]":
        types = {label: library("pyarrow").float64() if label in exact else self.types[label] for label in layout.used}
        return tables_of(self._batches(types), layout, str(self.path))

    def query_names(self) -> list[str]:
        """Each query id once."""
        names: dict[str, None] = {}
        for batch in self._batches({self.layout.query: self.types[self.layout.query]}):
            names.update(dict.fromkeys(batch.column(0).dictionary.to_pylist()))
        return list(names)

    def _batches(self, types: dict[str, Any]) -> Iterator[Any]:
        with _csv_batches(self.path, self.threads, self.header, column_types=types, include_columns=list(types)) as (_, batches):
            yield from batches


@contextmanager
def _csv_batches(path: Path, threads: int | None, header: list[str] | None = None, **convert: Any) -> Iterator[tuple[Any, Iterator[Any]]]:
    """The schema that Arrow finds in the first block, and the batches of rows that are not empty."""
    csv = library("pyarrow.csv")
    with arrow_errors(path, header), open_bytes(path) as file:
        reader = csv.open_csv(
            file,
            read_options=csv.ReadOptions(block_size=CSV_BLOCK, use_threads=thread_count(threads) > 1),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(**convert),
        )
        with reader:
            yield with_names(reader.schema), (batch for batch in reader if batch.num_rows)


def _csv_source(path: Path, options: ReadOptions) -> _CsvSource:
    columns, place = options.columns, str(path)
    with _csv_batches(path, options.threads, column_types={columns.query: library("pyarrow").string()}) as (found, batches):
        first = next(batches, None)
    schema = found if first is None else _csv_schema(first, columns)
    layout = layout_of(table_of(schema.empty_table(), place), columns, place)
    name = "" if first is None else first[columns.query][0].as_py()
    may_be_numbers = _whole_numbers([name]) is not None and not _quoted(path, columns.query, name)
    rows = schema.empty_table() if first is None else library("pyarrow").Table.from_batches([first])
    return _CsvSource(path, schema.names, layout, _csv_types(schema, layout), may_be_numbers, table_of(rows, place), options.threads)


def _csv_schema(first: Any, columns: Columns) -> Any:
    """The first batch's schema, with numbers in every column that should hold them, so that parsing finds the cell that does not."""
    arrow = library("pyarrow")
    parts = {columns.query, columns.doc}
    numbers = {columns.relevance, columns.sample_weight, columns.query_weight, *(columns.features or ())}

    def meant(field: Any, cells: Any) -> Any:
        text = not arrow.types.is_primitive(field.type) or arrow.types.is_temporal(field.type)
        guessed = columns.features is None and field.name not in parts and text and _mostly_numbers(cells)
        return field.with_type(arrow.float64()) if text and (field.name in numbers or guessed) else field

    return arrow.schema([meant(field, cells) for field, cells in zip(first.schema, first.columns, strict=True)])


def _mostly_numbers(cells: Any) -> bool:
    """Whether a column of text is one of numbers with a slip in it, going by its first thousand cells."""
    sample = [cell for cell in cells[:1000].to_pylist() if isinstance(cell, str) and cell]
    return 2 * sum(NUMBER.fullmatch(cell) is not None for cell in sample) > len(sample)


def _csv_types(schema: Any, layout: Layout) -> dict[str, Any]:
    """Numbers in the precision in which they are kept; query ids as strings, each of which exists once a block."""
    arrow = library("pyarrow")

    def number(label: str, kind: Any) -> Any:
        return arrow.bool_() if schema.field(label).type == arrow.bool_() else kind

    types = {layout.query: arrow.dictionary(arrow.int32(), arrow.string())}
    types |= {label: arrow.string() for label in (layout.doc,) if label is not None}
    types |= {label: number(label, arrow.float64()) for label in layout.numbers}
    return types | {label: number(label, arrow.float32()) for label in layout.features}


def _quoted(path: Path, query: str, name: str) -> bool:
    """Whether the first query id, ``name``, stands in quotes: told to read ``name`` as null, Arrow does so only without them."""
    types = {query: library("pyarrow").string()}
    as_null: dict[str, Any] = {"null_values": [name], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
    with _csv_batches(path, 1, column_types=types, include_columns=[query], **as_null) as (_, batches):
        return bool(next(batches)[0][0].is_valid)


def _whole_numbers(names: list[str]) -> Ids | None:
    """The ids as whole numbers, if all of them are written so and fit an integer of 64 bits.

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


def _numbered(blocks: Iterator[Block], names: list[str], numbers: Ids) -> Iterator[Block]:
    """The blocks with the number of each query id in the place of its name."""
    number_of = dict(zip(names, numbers.tolist(), strict=True))
    return (replace(block, qid=np.array([number_of[name] for name in block.qid.tolist()], numbers.dtype)) for block in blocks)
