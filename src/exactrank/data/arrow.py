"""What Parquet and CSV share: Arrow's batches as tables, blocks as Arrow tables, Arrow's errors as ours."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from exactrank.arrays import Ids
from exactrank.data.format import Columns
from exactrank.data.frame import PARTS, ROW_LABEL, Layout, library, table_of
from exactrank.data.stream import BLOCK_CELLS, Block, Stream
from exactrank.errors import DataError

if TYPE_CHECKING:
    import narwhals as nw


@contextmanager
def arrow_errors(path: Path, header: list[str] | None = None) -> Iterator[None]:
    """Turns Arrow's errors about a file into a `DataError` that names it, and the column where Arrow counts it."""
    arrow = library("pyarrow")
    try:
        yield
    except arrow.ArrowException as error:
        raise DataError(f"{path}: {_with_column_name(str(error), header)}; mend the file or write it again") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: the name of a column is not UTF-8 ({error}); write the file again in UTF-8") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise DataError(f"{path}: {error}; the file is damaged, so copy it or write it again") from None


def _with_column_name(message: str, header: list[str] | None) -> str:
    if "Empty CSV file or block" in message:
        return "its first 2 MiB hold no line of column names"
    if "straddl" in message:
        return "a row is longer than 2 MiB, or has a quote without its counterpart"
    found = re.match(r"In CSV column #(\d+): ", message)
    if found is None or header is None or int(found[1]) >= len(header):
        return message
    return f"column {header[int(found[1])]!r}: {message[found.end() :]}"


def with_names(schema: Any) -> Any:
    """``schema``, once the name of each column is seen to be text, which Arrow looks at only when it is asked for one."""
    _ = schema.names
    return schema


def tables_of(batches: Iterable[Any], layout: Layout, place: str) -> "Iterator[nw.DataFrame[Any]]":
    """Arrow's batches, put together to tables of about `BLOCK_CELLS` cells."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= block_rows(layout):
            yield table_of(library("pyarrow").Table.from_batches(waiting), place)
            waiting = []
    if waiting:
        yield table_of(library("pyarrow").Table.from_batches(waiting), place)


def block_rows(layout: Layout) -> int:
    """How many rows make a block."""
    return max(1, BLOCK_CELLS // max(1, len(layout.features)))


def write_tables(stream: Stream, open_writer: Callable[[Any], Any]) -> None:
    """Write each block through the writer that is opened once the columns are known."""
    _check_names(stream.feature_names)
    tables = _arrow_tables(stream)
    first = next(tables, None)
    if first is None:
        raise DataError("there are no documents to write")
    with open_writer(first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def _check_names(feature_names: tuple[str, ...]) -> None:
    """Each name must stand for one column, and for a feature when the table is read again."""
    reserved = {getattr(Columns(), part) for part in PARTS}
    for name, times in Counter(feature_names).items():
        if times > 1 or name in reserved or ROW_LABEL.fullmatch(name):
            why = (
                f"{times} features have it"
                if times > 1
                else "it stands for another part of a table"
                if name in reserved
                else "it is where pandas leaves row labels"
            )
            raise DataError(f"feature name {name!r} cannot be a column's: {why}; rename the feature or write .xr")


def _arrow_tables(stream: Stream) -> Iterator[Any]:
    """Each block as an Arrow table; all of them have the columns of the first."""
    schema: Any = None
    for block in stream.blocks:
        with_ids = schema is not None and Columns().doc in schema.names
        table = _arrow_table(block, stream, with_ids=with_ids)
        if schema is not None and table.schema != schema:
            changed = ", ".join(sorted(set(map(str, table.schema)) ^ set(map(str, schema))))
            raise DataError(f"the columns of a table must be alike in all rows but these come or change on the way: {changed}; write .xr")
        schema = table.schema
        yield table


def _arrow_table(block: Block, stream: Stream, *, with_ids: bool) -> Any:
    """A block of ``stream`` as a table; ``with_ids`` gives it a column of document ids even if it has none.

    Features with an offset are float64.
    """
    arrow, names = library("pyarrow"), Columns()
    _check_query_ids(block.qid)
    parts = {
        names.query: block.qid.tolist() if block.qid.dtype.kind in "OU" else block.qid,
        names.doc: block.docid.tolist() if block.docid is not None else [""] * len(block.y) if with_ids else None,
        names.relevance: block.y,
        names.sample_weight: block.sample_weight,
        names.query_weight: block.query_weight,
    }
    features: dict[str, Any] = dict(zip(stream.feature_names, np.ascontiguousarray(block.X.T), strict=True))
    for j, (name, offset) in enumerate(zip(stream.feature_names, () if stream.offset is None else stream.offset, strict=False)):
        if offset:
            features[name] = block.X[:, j] + offset
    try:
        return arrow.table({name: arrow.array(values) for name, values in (parts | features).items() if values is not None})
    except UnicodeEncodeError as error:
        raise DataError(f"{error.object!r} is not UTF-8, which is all that the strings of a table may be; write .xr or .txt") from None
    except arrow.ArrowException as error:
        raise DataError(f"query ids cannot be the column of a table: {error}; give all of them one kind, or write .txt") from None


def _check_query_ids(qid: Ids) -> None:
    if qid.dtype.kind in "OU" and np.any(qid == ""):
        raise DataError("query id '' would read back as missing from a table; rename it or write .xr")
