"""LETOR / SVMlight ranking text: ``2 qid:10 1:0.5 7:1e-3 # docid = GX1``, plain or gzip.

A row is a grade, a query id and features with increasing ids; an absent feature is 0. Ids count from 1, or from 0 if
that id occurs. The comment is kept, and the document id in it. See `src/native/letor.hpp` for the parser.

Text without query ids is read if a file beside it, named as LightGBM (``.query``) and XGBoost (``.group``) expect it, holds the
size of each query, one a line.
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
from exactrank.arrays import Ids, Matrix, PerDocument, Rows
from exactrank.data.format import ReadOptions
from exactrank.data.grouping import boundaries, group_rows
from exactrank.data.immutable import sealed
from exactrank.data.precision import LOOKED_AT, Offset, best_offset, put, suspects
from exactrank.data.ranking_data import RankingData
from exactrank.data.stream import Block, Stream
from exactrank.data.text_column import TextColumn
from exactrank.errors import DataError, IncompatibleError
from exactrank.files import open_bytes, read_bounded
from exactrank.threads import Pool, thread_count

TEXT_BLOCK = 1 << 22
SIZES = 1 << 30  #: bytes of a file of query sizes
LOOKED_AT_FIRST = 1 << 20  # bytes, for features that single precision cannot hold


class LetorFormat:
    """The format's reader and writer."""

    name = "LETOR text"

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        """Parse straight into one matrix; peak memory is that matrix and two blocks of text."""
        sizes = _sizes_beside(path)
        parser = _parser(options, queries=sizes is None, expected_bytes=_plain_size(path))
        with _located(path):
            _feed(parser, path, thread_count(options.threads))
        X, y, query, docid, comment = _taken(parser)
        query, ids = _queries(path, parser, query, sizes)
        order, indptr, numbers = group_rows(query)
        if order is not None:
            _core.permute_rows(X, order)
        again = _Again(path, _fixed(options, parser, X.shape[1]), sizes is None, query)
        doubles = {j: column if order is None else column[order] for j, column in again.doubles().items()}
        offset = best_offset(doubles, indptr, _feature_names(parser, X.shape[1]))
        put(X, doubles, offset)
        return RankingData(
            X=sealed(X),
            offset=offset,
            y=sealed(y if order is None else y[order]),
            indptr=indptr,
            qid=ids[numbers],
            feature_names=_feature_names(parser, X.shape[1]),
            docid=docid if order is None or docid is None else docid.take(order),
            comment=comment if order is None or comment is None else comment.take(order),
            order=order,
        )

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        """Read the text once for its width, its query ids and whether it has comments, then again for the blocks."""
        sizes = _sizes_beside(path)
        scan = _parser(options, queries=sizes is None)
        width, queries, has_docid, has_comment = 0, [], False, False
        for X, _, query, docid, comment in _parsed(path, scan):
            width = max(width, X.shape[1])
            queries.append(query)
            has_docid, has_comment = has_docid or docid is not None, has_comment or comment is not None
        every, ids = _queries(path, scan, np.concatenate(queries) if queries else np.empty(0, np.int64), sizes)
        fixed, names = _fixed(options, scan, width), _feature_names(scan, width)
        again = _Again(path, fixed, sizes is None, every)
        offset = again.offset(names)
        kept = [] if offset is None else np.flatnonzero(offset).tolist()

        def blocks() -> Iterator[Block]:
            first, parser = 0, _parser(fixed, queries=sizes is None, exact=kept)
            for X, y, _, docid, comment in _parsed(path, parser):
                put(X, dict(zip(kept, _exact(parser, kept), strict=True)), offset)
                none = TextColumn.of([b""] * len(y)) if has_comment else None
                qid = ids[every[first : first + len(y)]]
                first += len(y)
                yield Block(X, y, qid, docid or none if has_docid else None, comment or none)

        return Stream(names, blocks(), offset)

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """Write the shortest numbers that read back alike; features are numbered from 1."""
        for block in stream.blocks:
            if block.sample_weight is not None or block.query_weight is not None:
                raise IncompatibleError("LETOR text has no place for weights; write .xr or .parquet, or drop the weights first")
            comment = block.comment or _docid_comment(block.docid)
            starts = np.concatenate([[0], np.flatnonzero(block.qid[1:] != block.qid[:-1]) + 1])
            query = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(block.qid))))
            names = [_query_token(q) for q in block.qid[starts].tolist()]
            text, start, stop = (None, None, None) if comment is None else (comment.buffer, comment.start, comment.stop)
            file.write(_core.letor_text(block.X, stream.offset, block.y, query, names, text, start, stop, thread_count(None)))


@dataclass(frozen=True, eq=False)
class _Again:
    """Text that was read and is read again, for features in double precision: its rows belong to the queries numbered ``query``."""

    path: Path
    options: ReadOptions  # with the number and the first of the features
    queries: bool  # whether the text names them
    query: Rows

    def offset(self, names: tuple[str, ...]) -> Offset | None:
        """That of its features."""
        doubles = self.doubles()
        if not doubles:
            return None
        order, indptr, _ = group_rows(self.query)
        return best_offset({j: column if order is None else column[order] for j, column in doubles.items()}, indptr, names)

    def doubles(self) -> dict[int, PerDocument]:
        """The features that may need an offset, going by the first rows, in double precision and the order of the text."""
        chosen = self._suspects()
        if not chosen:
            return {}
        parser = _parser(self.options, queries=self.queries, exact=chosen)
        blocks = [_exact(parser, chosen) for _ in _parsed(self.path, parser)]
        return dict(zip(chosen, np.concatenate(blocks, axis=1), strict=True))

    def _suspects(self) -> list[int]:
        width = self.options.n_features or 0
        every = list(range(width))
        parser = _parser(self.options, queries=self.queries, exact=every)
        with open_bytes(self.path) as file:
            lines = file.read(LOOKED_AT_FIRST).splitlines(keepends=True)[: LOOKED_AT // max(1, width)]
        parser.feed(np.frombuffer(b"".join(lines), np.uint8))
        sample = _exact(parser, every).T
        if sample.size == 0:
            return []
        order, indptr, _ = group_rows(self.query[: len(sample)])
        return suspects(sample if order is None else sample[order], indptr, decimals=True)


def _exact(parser: _core.LetorParser, columns: list[int]) -> npt.NDArray[np.float64]:
    """The columns that the parser has kept in double precision, one after the other, since it was last asked."""
    return parser.take_exact().reshape(-1, max(1, len(columns))).T[: len(columns)]


def _fixed(options: ReadOptions, parser: _core.LetorParser, width: int) -> ReadOptions:
    """How to read the same text again, once its features are known."""
    return replace(options, n_features=width or None, first_feature=parser.first_feature)


def _parser(options: ReadOptions, *, queries: bool = True, expected_bytes: int = 0, exact: Sequence[int] = ()) -> _core.LetorParser:
    if options.first_feature is not None and (not _is_whole(options.first_feature) or options.first_feature not in (0, 1)):
        raise DataError(f"first_feature must be 0 or 1, got {options.first_feature!r}")
    if options.n_features is not None and (not _is_whole(options.n_features) or not 1 <= options.n_features < 2**63):
        raise DataError(f"n_features must be a positive whole number of 64 bits, got {options.n_features!r}")
    features = -1 if options.n_features is None else options.n_features
    first = -1 if options.first_feature is None else options.first_feature
    return _core.LetorParser(options.keep_missing, queries, features, first, expected_bytes, thread_count(options.threads), list(exact))


def _is_whole(number: object) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _sizes_beside(path: Path) -> Rows | None:
    """The query sizes in a file beside text that names no queries, or None where there is none."""
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    beside = [plain.with_name(plain.name + suffix) for suffix in (".query", ".query.gz", ".group", ".group.gz")]
    side = next((file for file in beside if file.exists()), None)
    if side is None:
        return None
    with open_bytes(path) as text:
        first = next((line for line in text.read(1 << 16).splitlines() if line.strip() and not line.lstrip().startswith(b"#")), b"")
    if first.split()[1:2] and first.split()[1].startswith(b"qid:"):
        return None
    words = bytes(read_bounded(side, SIZES)).split()
    wrong = next((word for word in words if not word.isdigit() or len(word) > 18 or int(word) == 0), None)
    if wrong is not None:
        raise DataError(f"{side}: {wrong.decode('utf-8', 'backslashreplace')!r} is not the size of a query; give one whole number a line")
    return np.array(words, np.int64)


def _queries(path: Path, parser: _core.LetorParser, query: Rows, sizes: Rows | None) -> tuple[Rows, Ids]:
    """The number of each row's query, from the text or from the sizes beside it, and the ids of the queries."""
    if len(query) == 0:
        raise DataError(f"{path}: holds no documents; expected lines such as '2 qid:7 1:0.5'")
    if sizes is None:
        return query, _query_ids(parser)
    if boundaries(sizes, len(query)) is None:
        total = sum(sizes.tolist())
        raise DataError(f"{path}: has {len(query):,} rows but the query sizes beside it add up to {total:,}; they must agree")
    return np.repeat(np.arange(len(sizes)), sizes), np.arange(len(sizes))


@contextmanager
def _located(path: Path) -> Iterator[None]:
    """Turns the parser's (line, message) into a `DataError` that names the file."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        line, message = error.args
        advice = f"; or give the query sizes in {path.name.removesuffix('.gz')}.query" if message.startswith(b"no query id") else ""
        raise DataError(f"{path}:{line}: {message.decode('utf-8', 'backslashreplace')}{advice}") from None


def _feed(parser: _core.LetorParser, path: Path, threads: int) -> None:
    """Feed all of the file; with several threads, the next block is read (and decompressed) while this one is parsed."""
    if threads == 1:
        for text in _text_blocks(path):
            parser.feed(text)
        return parser.finish()
    here, there = np.empty(TEXT_BLOCK, np.uint8), np.empty(TEXT_BLOCK, np.uint8)
    with open_bytes(path) as file, Pool(1) as reader:
        size = file.readinto(here)
        while size:
            if isinstance(file, io.FileIO):
                size = parser.feed_while_reading(here[:size], file.fileno(), there)
            else:
                coming = reader.submit(file.readinto, there)
                parser.feed(here[:size])
                size = coming.result()
            here, there = there, here
    return parser.finish()


def _plain_size(path: Path) -> int:
    """How many bytes of text the file holds, or 0 where compression hides it."""
    with open_bytes(path) as file:
        return path.stat().st_size if isinstance(file, io.FileIO) else 0


def _text_blocks(path: Path) -> Iterator[npt.NDArray[np.uint8]]:
    with open_bytes(path) as file:
        buffer = np.empty(TEXT_BLOCK, np.uint8)
        while size := file.readinto(buffer):
            yield buffer[:size]


_Taken = tuple[Matrix, PerDocument, Rows, TextColumn | None, TextColumn | None]


def _taken(parser: _core.LetorParser) -> _Taken:
    X, y, query, comments, comment, docid = parser.take()
    if comments is None or comment is None or docid is None:
        return X, y, query, None, None
    text = sealed(comments)
    ids = TextColumn(text, *map(sealed, docid))
    return X, y, query, ids if np.any(ids.stop > ids.start) else None, TextColumn(text, *map(sealed, comment))


def _parsed(path: Path, parser: _core.LetorParser) -> Iterator[_Taken]:
    with _located(path):
        for text in _text_blocks(path):
            parser.feed(text)
            taken = _taken(parser)
            if len(taken[1]):
                yield taken
        parser.finish()
        taken = _taken(parser)
        if len(taken[1]):
            yield taken


def _feature_names(parser: _core.LetorParser, width: int) -> tuple[str, ...]:
    return tuple(str(parser.first_feature + j) for j in range(width))


def _query_ids(parser: _core.LetorParser) -> Ids:
    """The query ids as integers if all of them are written so, else as strings."""
    names = [name.decode("utf-8", "surrogateescape") for name in parser.query_names()]
    if all(name.isascii() and name.isdigit() and len(name) < 19 and (name[0] != "0" or name == "0") for name in names):
        return np.array([int(name) for name in names], np.int64)
    return np.array(names, dtype=object)


def _query_token(qid: object) -> bytes:
    token = str(qid).encode("utf-8", "surrogateescape")
    if not token or any(c in token for c in b" \t\r\n#"):
        raise DataError(f"query id {qid!r} cannot stand in LETOR text, where blanks and '#' end it; rename it or write .parquet or .xr")
    return token


def _docid_comment(docid: TextColumn | None) -> TextColumn | None:
    return None if docid is None else TextColumn.of(b"docid = " + docid.encoded(i) if docid[i] else b"" for i in range(len(docid)))
