"""The binary cache, ``.xr``: arrays as they lie in memory, so that opening a file is mapping it.

Layout, little-endian:

    0      preamble: magic, format version, where the footer is, its checksum, the file's length, the preamble's checksum
    4096   X, then the other sections, each aligned to 64 bytes
    end    footer: JSON with every section's dtype, shape, offset and xxh3 checksum, and the feature names

A truncated file fails by its length, a damaged one by a checksum. Opening checks the preamble, the footer, and every
section of a file up to 64 MiB; of a larger file it leaves out X and the strings (``verify=True`` checks those too), so it
takes milliseconds whatever the size.
"""

import json
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import xxhash

from exactrank import _core
from exactrank.arrays import Ids
from exactrank.data.format import ReadOptions
from exactrank.data.ranking_data import RankingData, group_rows, per_query_weight
from exactrank.data.stream import Block, Stream, stream_of
from exactrank.data.text_column import TextColumn
from exactrank.errors import DataError

MAGIC = b"exactrnk"
VERSION = 1
PREAMBLE = struct.Struct("<8sIxxxxQQQQ")  # magic, version, footer's offset, length and checksum, the file's length
CHECKSUM = struct.Struct("<Q")
X_OFFSET = 4096
ALIGNMENT = 64
VERIFIED_WHOLE = 64 << 20


class CacheFormat:
    """The format's reader and writer."""

    name = "exactrank cache"
    suffixes: tuple[str, ...] = (".xr",)

    def read(self, path: Path, options: ReadOptions) -> RankingData:
        """Map the file; nothing of X is read until it is used."""
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            if size < PREAMBLE.size + CHECKSUM.size:
                raise DataError(f"{path}: {size} bytes are too few for an exactrank cache; convert the source again")
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return _data_in(path, content, options.verify)

    def stream(self, path: Path, options: ReadOptions) -> Stream:
        """Blocks of the mapped file."""
        return stream_of(self.read(path, options))

    def write(self, file: BinaryIO, stream: Stream) -> None:
        """Append X as it comes; once all rows are there, group them by query in place."""
        file.seek(X_OFFSET)
        gathered = [_without_features(file, block) for block in stream.blocks]
        if not gathered:
            raise DataError("there are no documents to write")
        order, indptr, qid = group_rows(_concatenated([b.qid for b in gathered]))
        if order is not None and stream.feature_names:
            _permute(file, order, len(stream.feature_names))
        sections = _sections_of(gathered, order, indptr) | _id_sections(qid)
        shape = (int(indptr[-1]), len(stream.feature_names))
        _finish(file, shape, sections, list(stream.feature_names))


def _without_features(file: BinaryIO, block: Block) -> Block:
    file.write(np.ascontiguousarray(block.X, dtype="<f4").data)
    nothing = np.empty((0, 0), np.float32)
    return Block(nothing, block.y, block.qid, block.docid, block.comment, block.sample_weight, block.query_weight)


def _permute(file: BinaryIO, order: npt.NDArray[np.int64], width: int) -> None:
    file.flush()
    with mmap.mmap(file.fileno(), 0) as content:
        X = np.frombuffer(content, "<f4", len(order) * width, X_OFFSET).reshape(len(order), width)
        _core.permute_rows(X, order)
        del X


def _sections_of(blocks: list[Block], order: npt.NDArray[np.int64] | None, indptr: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    def grouped(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values if order is None else values[order]

    sections = {"y": grouped(_concatenated([b.y for b in blocks])), "indptr": indptr}
    if order is not None:
        sections["order"] = order
    if (weights := [b.sample_weight for b in blocks if b.sample_weight is not None]) and len(weights) == len(blocks):
        sections["sample_weight"] = grouped(_concatenated(weights))
    if (weights := [b.query_weight for b in blocks if b.query_weight is not None]) and len(weights) == len(blocks):
        sections["query_weight"] = per_query_weight(_concatenated(weights), order, indptr)
    for name in ("docid", "comment"):
        columns = [getattr(b, name) or TextColumn.of([b""] * len(b.y)) for b in blocks]
        if any(getattr(b, name) is not None for b in blocks):
            sections |= _text_sections(name, TextColumn.concatenated(columns), order)
    return sections


def _text_sections(name: str, column: TextColumn, order: npt.NDArray[np.int64] | None = None) -> dict[str, npt.NDArray[Any]]:
    column = column if order is None else column.take(order)
    return {f"{name}.text": column.buffer, f"{name}.start": column.start, f"{name}.stop": column.stop}


def _id_sections(qid: Ids) -> dict[str, npt.NDArray[Any]]:
    if qid.dtype.kind in "iufbmM":
        return {"qid": qid}
    for q in qid.tolist():
        if not isinstance(q, str):
            raise DataError(f"query id {q!r} is a {type(q).__name__}; a cache holds query ids that are numbers, dates or strings")
    return _text_sections("qid", TextColumn.of(qid.tolist()))


def _finish(file: BinaryIO, shape: tuple[int, int], sections: dict[str, npt.NDArray[Any]], feature_names: list[str]) -> None:
    """Write the sections after X, the footer after them, and the preamble last."""
    end = X_OFFSET + 4 * shape[0] * shape[1]
    table: dict[str, dict[str, Any]] = {"X": {"dtype": "<f4", "shape": shape, "offset": X_OFFSET}}
    for name, array in sections.items():
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        file.seek(offset)
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        file.write(little.tobytes() if little.dtype.kind in "mM" else little.data)
        table[name] = {"dtype": little.dtype.str, "shape": little.shape, "offset": offset}
        end = offset + little.nbytes
    file.truncate(end)
    file.flush()
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content, memoryview(content) as view:
        for entry in table.values():
            entry["xxh3"] = _checksum(view[entry["offset"] : entry["offset"] + _size(entry)])
    footer = json.dumps({"feature_names": feature_names, "sections": table}).encode()
    file.seek(end)
    file.write(footer)
    preamble = PREAMBLE.pack(MAGIC, VERSION, end, len(footer), _checksum(footer), end + len(footer))
    file.seek(0)
    file.write(preamble + CHECKSUM.pack(_checksum(preamble)))


def _data_in(path: Path, content: mmap.mmap, verify: bool | None) -> RankingData:
    footer = _footer(path, content)
    whole = verify if verify is not None else len(content) <= VERIFIED_WHOLE
    arrays = dict(_arrays(path, content, footer["sections"], whole))

    def text(name: str) -> TextColumn | None:
        return TextColumn(arrays[f"{name}.text"], arrays[f"{name}.start"], arrays[f"{name}.stop"]) if f"{name}.text" in arrays else None

    names = text("qid")
    return RankingData(
        X=arrays["X"],
        y=arrays["y"],
        indptr=arrays["indptr"],
        qid=arrays["qid"] if names is None else np.array(names.tolist(), dtype=object),
        feature_names=tuple(footer["feature_names"]),
        docid=text("docid"),
        comment=text("comment"),
        sample_weight=arrays.get("sample_weight"),
        query_weight=arrays.get("query_weight"),
        order=arrays.get("order"),
    )


def _footer(path: Path, content: mmap.mmap) -> dict[str, Any]:
    """The footer, once the preamble, the file's length and the footer's checksum are found right."""
    magic, version, offset, length, checksum, size = PREAMBLE.unpack_from(content)
    if magic != MAGIC:
        raise DataError(f"{path}: is not an exactrank cache; pass the file it was made from, or convert that again")
    if CHECKSUM.unpack_from(content, PREAMBLE.size)[0] != _checksum(content[: PREAMBLE.size]):
        raise DataError(f"{path}: its preamble is damaged (checksum); convert the source again")
    if version != VERSION:
        raise DataError(f"{path}: has cache format {version} but this exactrank reads {VERSION}; convert the source again")
    if size != len(content):
        raise DataError(
            f"{path}: has {len(content)} bytes where {size} were written; it was cut short, so copy it or convert the source again"
        )
    footer = content[offset : offset + length]
    if len(footer) != length or _checksum(footer) != checksum:
        raise DataError(f"{path}: its footer is damaged (checksum); convert the source again")
    read: dict[str, Any] = json.loads(footer)
    return read


def _arrays(path: Path, content: mmap.mmap, sections: dict[str, Any], whole: bool) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    view = memoryview(content)
    for name, entry in sections.items():
        start, size = entry["offset"], _size(entry)
        bulk = name == "X" or name.endswith(".text")
        if (whole or not bulk) and _checksum(view[start : start + size]) != entry["xxh3"]:
            raise DataError(f"{path}: its section {name!r} is damaged (checksum); convert the source again")
        count = int(np.prod(entry["shape"], dtype=np.int64))
        yield name, np.frombuffer(content, entry["dtype"], count, start if count else 0).reshape(entry["shape"])


def _size(entry: dict[str, Any]) -> int:
    return int(np.prod(entry["shape"], dtype=np.int64) * np.dtype(entry["dtype"]).itemsize)


def _checksum(content: bytes | memoryview) -> int:
    return int(xxhash.xxh3_64_intdigest(content))


def _concatenated(arrays: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate(arrays)
