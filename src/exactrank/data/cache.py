"""The binary cache, ``.xr``: arrays as they lie in memory, so that opening a file is mapping it.

Layout, little-endian:

    0      preamble: magic, format version, where the footer is, its checksum, the file's length, the preamble's checksum
    4096   X, then the other sections, each aligned to 64 bytes; one of them may be X again, column by column, for line searches
    end    footer: JSON with every section's dtype, shape, offset and xxh3 checksum, the feature names, and levels of categories

A truncated file fails by its length, a damaged one by a checksum, and a forged one by the checks of `cache_footer.py`, `TextColumn`
and `RankingData`. Opening checks the preamble, the footer, and every section of a file up to 64 MiB; of a larger
file it leaves out the values of X and the strings of documents (``verify=True`` checks those too), so it reads little of it.
"""

import mmap
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import xxhash

from exactrank import _core
from exactrank.arrays import Boundaries, Ids, Matrix, Rows
from exactrank.data.cache_footer import ALIGNMENT, KEPT, PAIRS, X_OFFSET, Footer, Section, parsed_footer
from exactrank.data.format import ReadOptions
from exactrank.data.given import check_numbers, group_rows, infinite_cell, missing_ids, per_query_weight
from exactrank.data.kept import kept_in_all, kept_rows
from exactrank.data.levels import Levels
from exactrank.data.preferences import Preferences
from exactrank.data.ranking_data import ARRAYS, RankingData
from exactrank.data.room import FeatureColumns
from exactrank.data.stream import Block, Stream, stream_of
from exactrank.data.text_column import TextColumn, rows_of
from exactrank.errors import DataError
from exactrank.files import allocate
from exactrank.threads import thread_count

MAGIC = b"exactrnk"
VERSION = 2
PREAMBLE = struct.Struct("<8sIxxxxQQQQ")  # magic, version, footer's offset, length and checksum, the file's length
CHECKSUM = struct.Struct("<Q")
VERIFIED_WHOLE = 64 << 20
READ_WHOLE = 4 << 20


class CacheFormat:
    """The format's reader and writer."""

    name = "exactrank cache"

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        """Map a large file, so that nothing of X is read until it is used; read a small one, so that later changes do not matter."""
        try:
            with open(path, "rb") as file:
                size = file.seek(0, 2)
                if size < PREAMBLE.size + CHECKSUM.size:
                    raise DataError(f"{size} bytes are too few for an exactrank cache")
                file.seek(0)
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size > READ_WHOLE else file.read()
            return _data_in(content, len(content) <= VERIFIED_WHOLE if options.verify is None else options.verify)
        except DataError as error:
            raise DataError(f"{path}: {error}; convert the source again") from None

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        """Blocks of the mapped file."""
        return stream_of(self.read(path, options))

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """Append X as it comes; once all rows are there, group them by query in place."""
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
            pairs = stream.preferences if order is None else stream.preferences.moved(np.argsort(order))
            sections |= {f"pairs.{name}": getattr(pairs, name) for name in PAIRS}
        table = {"X": Section(np.dtype("<f4"), (int(indptr[-1]), width), X_OFFSET, 0)}
        if stream.columns and width:
            table["columns"] = _with_columns(file, table["X"])
        _finish(file, table, sections, stream.feature_names, stream.levels)


def _sections_of(blocks: list[Block], order: Rows | None, indptr: Boundaries, qid: Ids) -> dict[str, npt.NDArray[Any]]:
    sections = {"y": rows_of(np.concatenate([b.y for b in blocks]), order), "indptr": indptr}
    if order is not None:
        sections["order"] = order
    sections |= {KEPT + name: values for name, values in kept_rows(kept_in_all([b.kept for b in blocks]), order).items()}
    if len(weights := [b.sample_weight for b in blocks if b.sample_weight is not None]) == len(blocks):
        sections["sample_weight"] = rows_of(np.concatenate(weights), order)
        check_numbers("sample_weight", sections["sample_weight"])
    if len(weights := [b.query_weight for b in blocks if b.query_weight is not None]) == len(blocks):
        sections["query_weight"] = per_query_weight(np.concatenate(weights), order, indptr)
    texts: dict[str, TextColumn] = {}
    for name in ("docid", "comment"):
        if any(getattr(b, name) is not None for b in blocks):
            columns = [getattr(b, name) or TextColumn.of([b""] * len(b.y)) for b in blocks]
            texts[name] = rows_of(TextColumn.concatenated(columns), order)
    if qid.dtype.kind not in "iufbmM":
        for q in qid.tolist():
            if not isinstance(q, str):
                raise DataError(f"query id {q!r} is a {type(q).__name__}; a cache holds query ids that are numbers, dates or strings")
        texts["qid"] = TextColumn.of(qid.tolist())
    for name, column in texts.items():
        packed = column.packed()
        sections |= {f"{name}.text": packed.buffer, f"{name}.offsets": np.append(packed.start, len(packed.buffer))}
    return sections if "qid" in texts else sections | {"qid": qid}


def _with_columns(file: BinaryIO, X: Section) -> Section:
    """Write X again, column by column, after it."""
    columns = Section(X.dtype, X.shape[::-1], -(-X.place.stop // ALIGNMENT) * ALIGNMENT, 0)
    file.flush()
    allocate(file.fileno(), columns.place.stop)
    with mmap.mmap(file.fileno(), 0) as content:
        rows, written = X.array(content), columns.array(content)
        _core.transpose(rows, written, thread_count(None))
        del rows, written
    return columns


def _finish(
    file: BinaryIO,
    table: dict[str, Section],
    sections: dict[str, npt.NDArray[Any]],
    feature_names: tuple[str, ...],
    levels: Levels,
) -> None:
    """Write the sections after those in the ``table``, the footer after them, and the preamble last."""
    end = max(section.place.stop for section in table.values())
    for name, array in sections.items():
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        file.seek(offset)
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        file.write(little.tobytes() if little.dtype.kind in "mM" else little.data)
        table[name] = Section(little.dtype, little.shape, offset, 0)
        end = table[name].place.stop
    file.truncate(end)
    file.flush()
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content, memoryview(content) as view:
        summed = {name: replace(section, xxh3=_checksum(view[section.place])) for name, section in table.items()}
    footer = Footer(feature_names, summed, levels).written()
    file.seek(end)
    file.write(footer)
    preamble = PREAMBLE.pack(MAGIC, VERSION, end, len(footer), _checksum(footer), end + len(footer))
    file.seek(0)
    file.write(preamble + CHECKSUM.pack(_checksum(preamble)))


def _footer(content: mmap.mmap | bytes) -> Footer:
    """The footer, once the preamble, the file's length and the footer's checksum are found right."""
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
    return parsed_footer(footer, offset)


def _data_in(content: mmap.mmap | bytes, verify: bool) -> RankingData:
    footer, view, arrays = _footer(content), memoryview(content), {}
    for name, section in footer.sections.items():
        bulk = name in ("X", "columns", "docid.text", "comment.text")
        if (verify or not bulk) and _checksum(view[section.place]) != section.xxh3:
            raise DataError(f"its section {name!r} is damaged (checksum)")
        arrays[name] = section.array(content)
    plain: dict[str, Any] = {name: arrays.get(name) for name in ARRAYS}
    qid, docid, comment = _query_ids(arrays), _text(arrays, "docid"), _text(arrays, "comment")
    plain["kept"] = {name.removeprefix(KEPT): values for name, values in arrays.items() if name.startswith(KEPT)}
    pairs = Preferences(*(arrays[f"pairs.{name}"] for name in PAIRS)) if "pairs.weight" in arrays else None
    named: dict[str, Any] = {"feature_names": footer.feature_names, "levels": footer.levels, "preferences": pairs}
    data = RankingData(qid=qid, docid=docid, comment=comment, **named, **plain)
    for name in ("sample_weight", "query_weight"):
        if name in arrays:
            check_numbers(name, arrays[name])
    if verify and (cell := infinite_cell(data.X)) is not None:
        raise DataError(f"X[{cell[0]}, {cell[1]}] is infinite; features must be finite or NaN")
    if "columns" not in arrays:
        return data
    if verify and not _are_columns(arrays["columns"], data.X):
        raise DataError("its section 'columns' holds other numbers than its section 'X'")
    return data.with_columns(FeatureColumns(arrays["columns"].T))


def _are_columns(columns: Matrix, X: Matrix) -> bool:
    """Are they those of ``X``, to the bit?"""
    step = max(1, READ_WHOLE // max(1, 4 * X.shape[1]))
    blocks = (slice(first, first + step) for first in range(0, len(X), step))
    return all(np.array_equal(columns[:, rows].view(np.int32), X[rows].view(np.int32).T) for rows in blocks)


def _text(arrays: dict[str, npt.NDArray[Any]], name: str) -> TextColumn | None:
    """Strings that lie one after the other and fill their text, so that they are never longer than the file."""
    if f"{name}.text" not in arrays:
        return None
    text, offsets = arrays[f"{name}.text"], arrays[f"{name}.offsets"]
    if offsets[0] != 0 or offsets[-1] != len(text) or not np.all(offsets[1:] >= offsets[:-1]):
        raise DataError(f"its section '{name}.offsets' must rise from 0 to the {len(text)} bytes of '{name}.text'")
    return TextColumn.between(text, offsets)


def _query_ids(arrays: dict[str, npt.NDArray[Any]]) -> Ids:
    """One id per query, none missing, each once."""
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
