"""The binary cache, ``.xr``: arrays in their form in memory, so that opening a file only maps it.

Layout, little-endian:

    0      preamble: magic, format version, place and checksum of the footer, the file's length, the preamble's checksum
    4096   X, then the other sections, each aligned to 64 bytes; one of them may be X by columns, for line searches
    end    footer: JSON with the dtype, shape and offset of each section, the xxh3 checksum of each of its blocks of 4 MiB, the
           feature names, and the levels of categories

A truncated file is refused by its length, a damaged file by a checksum, and a forged file by the checks of `cache_footer.py`, `TextColumn`
and `RankingData`. Opening checks the whole file. For some queries only, it checks their features and strings, and everything else. With
``verify=False`` it checks no features and strings, so that it reads little of a large file.
"""

import mmap
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import xxhash

from exactrank import _core
from exactrank._support.arrays import AnyArray, Boundaries, Ids, Matrix, Rows
from exactrank._support.files import allocate
from exactrank._support.threads import thread_count
from exactrank.data.extra_columns import concatenate_extra_columns, take_extra_columns
from exactrank.data.formats.base import Block, ReadOptions, Stream, stream_of
from exactrank.data.formats.cache_footer import ALIGNMENT, BLOCK, EXTRA, PAIRS, X_OFFSET, Footer, Section, parse_footer
from exactrank.data.formats.text_column import TextColumn, rows_of
from exactrank.data.levels import Levels, check_codes
from exactrank.data.preferences import Preferences
from exactrank.data.ranking_data import ARRAYS, RankingData
from exactrank.data.scratch_arrays import FeatureColumns
from exactrank.data.validation import check_numbers, group_rows, infinite_cell, missing_ids, per_query_weight
from exactrank.errors import DataError

Arrays: TypeAlias = dict[str, AnyArray]  #: by the names of their sections
MAGIC = b"exactrnk"
VERSION = 3
PREAMBLE = struct.Struct("<8sIxxxxQQQQ")  # magic, version, footer's offset, length and checksum, the file's length
CHECKSUM = struct.Struct("<Q")
SMALL_FILE = 4 << 20  #: bytes of a file that is read rather than mapped
#: Large sections, which are checked only for the documents that are used.
BULK = ("X", "columns", "docid.text", "comment.text")


class CacheFormat:
    """The cache format."""

    name = "exactrank cache"

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        """Map a large file, so that it takes no memory; read a small file, so that later changes do not matter."""
        try:
            with open(path, "rb") as file:
                size = file.seek(0, 2)
                if size < PREAMBLE.size + CHECKSUM.size:
                    raise DataError(f"{size} bytes are too few for an exactrank cache")
                file.seek(0)
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size > SMALL_FILE else file.read()
            return _data_in(content, options.verify)
        except DataError as error:
            raise DataError(f"{path}: {error}; convert the source again") from None

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        return stream_of(self.read(path, options))

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """Append the blocks of X; when all rows are written, group them by query in place."""
        file.seek(X_OFFSET)
        blocks, width = [], len(stream.feature_names)
        for block in stream.blocks:
            file.write(np.ascontiguousarray(block.X, dtype="<f4").data)
            blocks.append(replace(block, X=np.empty((0, 0), np.float32)))
        if not blocks:
            raise DataError("there are no documents to write")
        order, indptr, qid = group_rows(np.concatenate([b.qid for b in blocks]))
        if order is not None and width:
            file.flush()
            with mmap.mmap(file.fileno(), 0) as content:
                X = np.frombuffer(content, "<f4", len(order) * width, X_OFFSET).reshape(len(order), width)
                _core.permute_rows(X, order)
                del X
        sections = _sections_of(blocks, order, indptr, qid)
        if stream.offset is not None:
            sections["offset"] = stream.offset
        if stream.preferences is not None:
            pairs = stream.preferences if order is None else stream.preferences.renumber(np.argsort(order))
            sections |= {f"pairs.{name}": getattr(pairs, name) for name in PAIRS}
        table = {"X": Section(np.dtype("<f4"), (int(indptr[-1]), width), X_OFFSET)}
        if stream.columns and width:
            table["columns"] = _with_columns(file, table["X"])
        _finish(file, table, sections, stream.feature_names, stream.levels)


def _sections_of(blocks: list[Block], order: Rows | None, indptr: Boundaries, qid: Ids) -> Arrays:
    sections = {"y": rows_of(np.concatenate([b.y for b in blocks]), order), "indptr": indptr}
    if order is not None:
        sections["order"] = order
    sections |= {
        EXTRA + name: values
        for name, values in take_extra_columns(concatenate_extra_columns([b.extra_columns for b in blocks]), order).items()
    }
    if len(weights := [b.sample_weight for b in blocks if b.sample_weight is not None]) == len(blocks):
        sections["sample_weight"] = rows_of(np.concatenate(weights), order)
        check_numbers("sample_weight", sections["sample_weight"])
    if len(weights := [b.query_weight for b in blocks if b.query_weight is not None]) == len(blocks):
        sections["query_weight"] = per_query_weight(np.concatenate(weights), order, indptr)
    texts: dict[str, TextColumn] = {}
    for name in ("docid", "comment"):
        if any(getattr(b, name) is not None for b in blocks):
            columns = [getattr(b, name) or TextColumn.of([b""] * len(b.y)) for b in blocks]
            texts[name] = rows_of(TextColumn.concatenate(columns), order)
    if qid.dtype.kind not in "iufbmM":
        for q in qid.tolist():
            if not isinstance(q, str):
                raise DataError(f"query id {q!r} is a {type(q).__name__}; a cache holds query ids that are numbers, dates or strings")
        texts["qid"] = TextColumn.of(qid.tolist())
    for name, column in texts.items():
        packed = column.pack()
        sections |= {f"{name}.text": packed.buffer, f"{name}.offsets": np.append(packed.start, len(packed.buffer))}
    return sections if "qid" in texts else sections | {"qid": qid}


def _with_columns(file: BinaryIO, X: Section) -> Section:
    """Write the columns of X after it, and return their section."""
    columns = Section(X.dtype, X.shape[::-1], -(-X.place.stop // ALIGNMENT) * ALIGNMENT)
    file.flush()
    allocate(file.fileno(), columns.place.stop)
    with mmap.mmap(file.fileno(), 0) as content:
        rows, transposed = X.array(content), columns.array(content)
        _core.transpose(rows, transposed, thread_count(None))
        del rows, transposed  # of which the map would otherwise complain
    return columns


def _finish(
    file: BinaryIO,
    table: dict[str, Section],
    sections: Arrays,
    feature_names: tuple[str, ...],
    levels: Levels,
) -> None:
    """Write the sections after those in ``table``, then the footer, and the preamble last."""
    end = max(section.place.stop for section in table.values())
    for name, array in sections.items():
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        file.seek(offset)
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        file.write(little.tobytes() if little.dtype.kind in "mM" else little.data)
        table[name] = Section(little.dtype, little.shape, offset)
        end = table[name].place.stop
    file.truncate(end)
    file.flush()
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content, memoryview(content) as view:
        checked_table = {name: replace(section, xxh3=block_checksums(view[section.place])) for name, section in table.items()}
    footer = Footer(feature_names, checked_table, levels).to_bytes()
    file.seek(end)
    file.write(footer)
    preamble = PREAMBLE.pack(MAGIC, VERSION, end, len(footer), _checksum(footer), end + len(footer))
    file.seek(0)
    file.write(preamble + CHECKSUM.pack(_checksum(preamble)))


def _footer(content: mmap.mmap | bytes) -> Footer:
    """Return the footer, after checks of the preamble, the file's length and the footer's checksum."""
    magic, version, offset, length, checksum, size = PREAMBLE.unpack_from(content)
    if magic != MAGIC:
        raise DataError("is not an exactrank cache")
    if CHECKSUM.unpack_from(content, PREAMBLE.size)[0] != _checksum(content[: PREAMBLE.size]):
        raise DataError("its preamble is damaged (checksum)")
    if version != VERSION:
        raise DataError(f"has cache format {version}, but this version of exactrank reads {VERSION}")
    if size != len(content):
        raise DataError(f"has {len(content)} bytes where {size} were written, so it was cut short")
    if offset < X_OFFSET or offset + length != size:
        raise DataError(f"its preamble places {length} bytes of footer at byte {offset}; expected the end of the file")
    footer = content[offset : offset + length]
    if _checksum(footer) != checksum:
        raise DataError("its footer is damaged (checksum)")
    return parse_footer(footer, offset)


def _data_in(content: mmap.mmap | bytes, verify: bool | slice) -> RankingData:
    """Return the data, after checks of the features and strings that ``verify`` selects, and of everything else."""
    footer, view, arrays = _footer(content), memoryview(content), {}
    for name, section in footer.sections.items():
        if name not in BULK:
            _check_blocks(view, name, section)
        arrays[name] = section.array(content)
    plain: dict[str, Any] = {name: arrays.get(name) for name in ARRAYS}
    qid, docid, comment = _query_ids(arrays), _text(arrays, "docid"), _text(arrays, "comment")
    plain["extra_columns"] = {name.removeprefix(EXTRA): values for name, values in arrays.items() if name.startswith(EXTRA)}
    pairs = Preferences(*(arrays[f"pairs.{name}"] for name in PAIRS)) if "pairs.weight" in arrays else None
    named: dict[str, Any] = {"feature_names": footer.feature_names, "levels": footer.levels, "preferences": pairs}
    data = RankingData(qid=qid, docid=docid, comment=comment, **named, **plain)
    for name in ("sample_weight", "query_weight"):
        if name in arrays:
            check_numbers(name, arrays[name])
    queries = verify if isinstance(verify, slice) else slice(data.n_queries if verify else 0)
    first, last, _ = queries.indices(data.n_queries)
    _check_documents(view, footer, arrays, slice(int(data.indptr[first]), int(data.indptr[last])))
    if "columns" not in arrays or isinstance(verify, slice):
        return data
    if verify:
        _check_blocks(view, "columns", footer.sections["columns"])
        if not _are_columns(arrays["columns"], data.X):
            raise DataError("its section 'columns' holds other numbers than its section 'X'")
    return data.with_columns(FeatureColumns(arrays["columns"].T))


def _check_documents(view: memoryview, footer: Footer, arrays: Arrays, rows: slice) -> None:
    """Raise if features or strings of these documents are damaged, or if features are invalid."""
    X, width = arrays["X"], arrays["X"][:1].nbytes
    _check_blocks(view, "X", footer.sections["X"], slice(rows.start * width, rows.stop * width))
    for name in ("docid", "comment"):
        if (text := f"{name}.text") in arrays:
            offsets = arrays[f"{name}.offsets"]
            _check_blocks(view, text, footer.sections[text], slice(int(offsets[rows.start]), int(offsets[rows.stop])))
    if (cell := infinite_cell(X[rows])) is not None:
        raise DataError(f"X[{rows.start + cell[0]}, {cell[1]}] is infinite; features must be finite or NaN")
    check_codes(X, rows, footer.feature_names, footer.levels, arrays.get("offset"))


def _check_blocks(view: memoryview, name: str, section: Section, used: slice | None = None) -> None:
    """Raise if a block of ``section`` is damaged, of those that hold the bytes ``used``, or of all."""
    content = view[section.place]
    used = slice(len(content)) if used is None else used
    blocks = range((used.start or 0) // BLOCK, -(-used.stop // BLOCK))
    for number in blocks:
        if _block_checksum(content, number) != section.xxh3[number]:
            raise DataError(f"its section {name!r} is damaged (checksum of the block at byte {section.offset + number * BLOCK})")


def block_checksums(content: memoryview) -> tuple[int, ...]:
    """Return the checksum of each block of a section."""
    return tuple(_block_checksum(content, number) for number in range(-(-len(content) // BLOCK)))


def _block_checksum(content: memoryview, number: int) -> int:
    return _checksum(content[number * BLOCK : (number + 1) * BLOCK])


def _are_columns(columns: Matrix, X: Matrix) -> bool:
    """Return whether ``columns`` are the columns of ``X``, to the bit."""
    step = max(1, SMALL_FILE // max(1, 4 * X.shape[1]))
    blocks = (slice(first, first + step) for first in range(0, len(X), step))
    return all(np.array_equal(columns[:, rows].view(np.int32), X[rows].view(np.int32).T) for rows in blocks)


def _text(arrays: Arrays, name: str) -> TextColumn | None:
    """Return strings that lie one after the other and fill their text, so that they are never longer than the file."""
    if f"{name}.text" not in arrays:
        return None
    text, offsets = arrays[f"{name}.text"], arrays[f"{name}.offsets"]
    if offsets[0] != 0 or offsets[-1] != len(text) or not np.all(offsets[1:] >= offsets[:-1]):
        raise DataError(f"its section '{name}.offsets' must rise from 0 to the {len(text)} bytes of '{name}.text'")
    return TextColumn.between(text, offsets)


def _query_ids(arrays: Arrays) -> Ids:
    """Return one id per query; raise if one is missing or occurs twice."""
    names = _text(arrays, "qid")
    qid = arrays["qid"] if names is None else np.array([*names, None], dtype=object)[:-1]
    if qid.dtype == bool and np.any(qid.view(np.uint8) > 1):
        raise DataError("its section 'qid' holds bytes that are neither false nor true")
    missing = missing_ids(qid)
    if len(missing):
        raise DataError(f"its section 'qid' has no id for query {missing[0]}")
    rising = qid.dtype != object and np.all(qid[1:] > qid[:-1])
    if not rising and len(set(qid.tolist())) != len(qid):
        raise DataError("its section 'qid' has the same query id twice")
    return qid


def _checksum(content: bytes | memoryview) -> int:
    return int(xxhash.xxh3_64_intdigest(content))
