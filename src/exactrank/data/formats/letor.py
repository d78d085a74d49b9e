"""LETOR / SVMlight ranking text: ``2 qid:10 1:0.5 7:1e-3 # docid = GX1``, plain or gzip.

A row is a grade, a query id and features with increasing ids; an absent feature is 0. Ids count from 1, or from 0 if the id 0 occurs. The
comment is stored, and the document id in it. See `src/native/data/letor.hpp` for the parser.

Text without query ids can be read if there is a file beside it with the suffix of LightGBM (``.query``) or XGBoost (``.group``), which
holds the size of each query, one per line.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import Ids, Matrix, PerDocument, Rows, group_numbers
from exactrank._support.files import open_bytes, read_small_file
from exactrank._support.threads import Pool, thread_count
from exactrank.data.formats.base import Block, ReadOptions, Stream
from exactrank.data.formats.text_column import TextColumn, rows_of
from exactrank.data.immutable import seal
from exactrank.data.precision import SAMPLE_CELLS, best_offset, subtract_offset, suspects
from exactrank.data.ranking_data import RankingData
from exactrank.data.validation import boundaries, group_rows
from exactrank.errors import DataError, IncompatibleError

TEXT_BLOCK = 1 << 22
SIZES = 1 << 30  #: maximum bytes of a file of query sizes
SAMPLE_BYTES = 1 << 20  #: examined for features that single precision cannot hold
#: Features, grades, numbers of queries, document ids and comments.
_ParsedRows = tuple[Matrix, PerDocument, Rows, TextColumn | None, TextColumn | None]


class LetorFormat:
    """LETOR text."""

    name = "LETOR text"

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        """Parse the text into one matrix; peak memory is that matrix and two blocks of text."""
        text = _Text(path, options, _sizes_beside(path))
        with open_bytes(path) as file:
            size = path.stat().st_size if isinstance(file, io.FileIO) else 0  # unknown for compressed files
        parser = text.parser(expected_bytes=size)
        _feed(parser, path, thread_count(options.threads))
        X, y, query, docid, comment = _take_rows(parser)
        query, ids = text.queries(parser, query)
        order, indptr, numbers = group_rows(query)
        if order is not None:
            _core.permute_rows(X, order)
        typed = text.with_features_of(parser, X.shape[1])
        return RankingData(
            offset=best_offset(typed.doubles(query, order), indptr, typed.names, X),
            X=seal(X),
            y=seal(rows_of(y, order)),
            indptr=indptr,
            qid=ids[numbers],
            feature_names=typed.names,
            docid=rows_of(docid, order),
            comment=rows_of(comment, order),
            order=order,
        )

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        """Read the text once for its width, its query ids and the presence of comments, then again for the blocks."""
        text = _Text(path, options, _sizes_beside(path))
        scan = text.parser()
        width, queries, has_docid, has_comment = 0, [np.empty(0, np.int64)], False, False
        for X, _, query, docid, comment in text.parse(scan):
            width = max(width, X.shape[1])
            queries.append(query)
            has_docid, has_comment = has_docid or docid is not None, has_comment or comment is not None
        query_of_row, ids = text.queries(scan, np.concatenate(queries))
        order, indptr, _ = group_rows(query_of_row)
        typed = text.with_features_of(scan, width)
        offset = best_offset(typed.doubles(query_of_row, order), indptr, typed.names)
        exact = [] if offset is None else np.flatnonzero(offset).tolist()

        def blocks() -> Iterator[Block]:
            first, parser = 0, typed.parser(exact)
            for X, y, _, docid, comment in typed.parse(parser):
                if offset is not None:
                    subtract_offset(X, dict(zip(exact, _exact(parser, exact), strict=True)), offset)
                none = TextColumn.of([b""] * len(y)) if has_comment else None
                qid = ids[query_of_row[first : first + len(y)]]
                first += len(y)
                yield Block(X, y, qid, docid or none if has_docid else None, comment or none)

        return Stream(typed.names, blocks(), offset)

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """Write the shortest numbers that read back the same; features are numbered from 1."""
        if stream.levels:
            categories = ", ".join(map(repr, stream.levels))
            raise IncompatibleError(
                f"LETOR text holds numbers, and {categories} are categories; write .xr, .parquet or .csv, or leave them out by"
                " Columns(features=...) (--feature-columns)"
            )
        for block in stream.blocks:
            if block.sample_weight is not None or block.query_weight is not None:
                raise IncompatibleError("LETOR text has no place for weights; write .xr or .parquet, or drop the weights first")
            if block.extra_columns:
                extra = ", ".join(map(repr, block.extra_columns))
                raise IncompatibleError(f"LETOR text has no place for the extra column {extra}; write .xr or .parquet, or do not keep it")
            comment, docid = block.comment, block.docid
            if comment is None and docid is not None:
                comment = TextColumn.of(b"docid = " + docid.bytes_at(i) if docid[i] else b"" for i in range(len(docid)))
            starts = np.concatenate([[0], np.flatnonzero(block.qid[1:] != block.qid[:-1]) + 1])
            query = group_numbers(np.diff(np.append(starts, len(block.qid))))
            ids = block.qid[starts].tolist()
            names = [str(qid).encode("utf-8", "surrogateescape") for qid in ids]
            for qid, name in zip(ids, names, strict=True):
                if not name or any(c in name for c in b" \t\r\n#"):
                    why = "cannot be written in LETOR text, where blanks and '#' end it"
                    raise DataError(f"query id {qid!r} {why}; rename it or write .parquet or .xr")
            text, start, stop = (None, None, None) if comment is None else (comment.buffer, comment.start, comment.stop)
            file.write(_core.letor_text(block.X, stream.offset, block.y, query, names, text, start, stop, thread_count(None)))


@dataclass(frozen=True, eq=False)
class _Text:
    """A file of text that can be read several times; ``sizes`` are the sizes of queries if the text has no query ids."""

    path: Path
    options: ReadOptions
    sizes: Rows | None

    def parser(self, exact: Sequence[int] = (), expected_bytes: int = 0) -> _core.LetorParser:
        """Return a parser that also stores the columns ``exact`` in double precision."""
        allowed = {"first_feature": (range(2), "0 or 1"), "n_features": (range(1, 2**63), "a positive whole number of 64 bits")}
        for name, (numbers, what) in allowed.items():
            value = getattr(self.options, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or int(value) not in numbers):
                raise DataError(f"{name} must be {what}, got {value!r}")
        options, threads = self.options, thread_count(self.options.threads)
        features, first = (-1 if number is None else number for number in (options.n_features, options.first_feature))
        return _core.LetorParser(options.keep_missing, self.sizes is None, features, first, expected_bytes, threads, list(exact))

    def parse(self, parser: _core.LetorParser) -> Iterator[_ParsedRows]:
        """Yield the rows of the text, block by block."""
        buffer = np.empty(TEXT_BLOCK, np.uint8)
        with _located_errors(self.path), open_bytes(self.path) as file:
            size = -1
            while size:
                if size := file.readinto(buffer):
                    parser.feed(buffer[:size])
                else:
                    parser.finish()
                rows = _take_rows(parser)
                if len(rows[1]):
                    yield rows

    def queries(self, parser: _core.LetorParser, query: Rows) -> tuple[Rows, Ids]:
        """Return the number of each row's query and the ids of the queries.

        Ids are integers if all of them look like integers, otherwise strings.
        """
        if len(query) == 0:
            raise DataError(f"{self.path}: holds no documents; expected lines such as '2 qid:7 1:0.5'")
        if (sizes := self.sizes) is not None:
            if boundaries(sizes, len(query)) is None:
                total = f"the query sizes beside it add up to {sum(sizes.tolist()):,}"
                raise DataError(f"{self.path}: has {len(query):,} rows but {total}; they must agree")
            return group_numbers(sizes), np.arange(len(sizes))
        names = [name.decode("utf-8", "surrogateescape") for name in parser.query_names()]
        if all(name.isascii() and name.isdigit() and len(name) < 19 and (name[0] != "0" or name == "0") for name in names):
            return query, np.array([int(name) for name in names], np.int64)
        return query, np.array(names, dtype=object)

    def with_features_of(self, parser: _core.LetorParser, width: int) -> "_Text":
        """Return the same text with a fixed number of features, to be read again."""
        return replace(self, options=replace(self.options, n_features=width or None, first_feature=parser.first_feature))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, if their number is fixed."""
        return tuple(str((self.options.first_feature or 0) + j) for j in range(self.options.n_features or 0))

    def doubles(self, query: Rows, order: Rows | None) -> dict[int, PerDocument]:
        """Return the features that may need an offset, judging by the first rows, in double precision.

        ``query`` is the number of each row's query, and ``order`` the order of the rows in the result.
        """
        features = list(range(self.options.n_features or 0))
        with open_bytes(self.path) as file:
            lines = file.read(SAMPLE_BYTES).splitlines(keepends=True)[: SAMPLE_CELLS // max(1, len(features))]
        parser = self.parser(features)
        parser.feed(np.frombuffer(b"".join(lines), np.uint8))
        sample = _exact(parser, features).T
        if sample.size == 0:
            return {}
        sample_order, indptr, _ = group_rows(query[: len(sample)])
        exact = suspects(rows_of(sample, sample_order), indptr, decimals=True)
        if not exact:
            return {}
        parser = self.parser(exact)
        columns = np.concatenate([_exact(parser, exact) for _ in self.parse(parser)], axis=1)
        return {j: rows_of(column, order) for j, column in zip(exact, columns, strict=True)}


def _exact(parser: _core.LetorParser, columns: list[int]) -> npt.NDArray[np.float64]:
    """Return the columns that the parser has stored in double precision since the last call."""
    return parser.take_exact().reshape(-1, max(1, len(columns))).T[: len(columns)]


def _sizes_beside(path: Path) -> Rows | None:
    """Return the query sizes in a file beside text without query ids; None if there is no such file or the text has ids."""
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    candidates = [plain.with_name(plain.name + suffix) for suffix in (".query", ".query.gz", ".group", ".group.gz")]
    side = next((file for file in candidates if file.exists()), None)
    if side is None:
        return None
    with open_bytes(path) as text:
        first = next((line for line in text.read(1 << 16).splitlines() if line.strip() and not line.lstrip().startswith(b"#")), b"")
    if first.split()[1:2] and first.split()[1].startswith(b"qid:"):
        return None
    words = bytes(read_small_file(side, SIZES)).split()
    wrong = next((word for word in words if not word.isdigit() or len(word) > 18 or int(word) == 0), None)
    if wrong is not None:
        raise DataError(f"{side}: {wrong.decode('utf-8', 'backslashreplace')!r} is not the size of a query; give one whole number per line")
    return np.array(words, np.int64)


@contextmanager
def _located_errors(path: Path) -> Iterator[None]:
    """Turn the parser's (line, message) into a `DataError` that names the file."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        line, message = error.args
        advice = f"; or give the query sizes in {path.name.removesuffix('.gz')}.query" if message.startswith(b"no query id") else ""
        raise DataError(f"{path}:{line}: {message.decode('utf-8', 'backslashreplace')}{advice}") from None


def _feed(parser: _core.LetorParser, path: Path, threads: int) -> None:
    """Feed the file to the parser; with several threads, the next block is read and decompressed while one is parsed."""
    block, next_block = np.empty(TEXT_BLOCK, np.uint8), np.empty(TEXT_BLOCK, np.uint8)
    with _located_errors(path), open_bytes(path) as file, Pool(1) as reader:
        size = file.readinto(block)
        while size:
            if threads == 1:
                parser.feed(block[:size])
                size = file.readinto(next_block)
            elif isinstance(file, io.FileIO):
                size = parser.feed_while_reading(block[:size], file.fileno(), next_block)
            else:
                next_size = reader.submit(file.readinto, next_block)
                parser.feed(block[:size])
                size = next_size.result()
            block, next_block = next_block, block
        parser.finish()


def _take_rows(parser: _core.LetorParser) -> _ParsedRows:
    X, y, query, comments, comment, docid = parser.take()
    if comments is None or comment is None or docid is None:
        return X, y, query, None, None
    text = seal(comments)
    ids = TextColumn(text, *map(seal, docid))
    return X, y, query, ids if np.any(ids.stop > ids.start) else None, TextColumn(text, *map(seal, comment))
