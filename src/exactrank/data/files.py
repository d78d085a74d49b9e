"""Read and write files in any format, by their name or their content."""

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

from exactrank._support.files import checked_path, is_stream, missing_file, open_bytes, whole_file
from exactrank._support.registry import Registry
from exactrank.data.formats.base import Block, Columns, Format, ReadOptions, Stream, stream_of
from exactrank.data.formats.cache import MAGIC
from exactrank.data.formats.trec import looks_like_qrels
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError

_TEXT = "exactrank.data.formats.letor:LetorFormat"
#: Formats by the suffixes that name them; those of other packages are classes, too.
FORMATS: Registry[type[Format]] = Registry("format", {
    "txt": _TEXT, "letor": _TEXT, "svm": _TEXT, "dat": _TEXT, "xr": "exactrank.data.formats.cache:CacheFormat",
    "parquet": "exactrank.data.formats.arrow:ParquetFormat", "pq": "exactrank.data.formats.arrow:ParquetFormat",
    "csv": "exactrank.data.formats.csv:CsvFormat", "tsv": "exactrank.data.formats.csv:TsvFormat",
    "qrels": "exactrank.data.formats.trec:QrelsFormat",
}, "exactrank.formats", lambda value: all(callable(getattr(value, part, None)) for part in ("read", "stream", "write")))  # fmt: skip
TEXT, UNZIPPED = ("txt", "letor", "svm", "dat"), ("xr", "parquet", "pq")  #: LETOR text; formats that gzip would make unreadable
MANIFEST = "shards.json"  #: lists several files of one dataset (`exactrank.data.shards`)
#: First bytes of files in some formats.
MAGIC_BYTES = {MAGIC: "xr", b"PAR1": "parquet"}


def read(
    path: str | os.PathLike[str],
    *,
    keep_missing: bool = False,
    n_features: int | None = None,
    first_feature: int | None = None,
    columns: Columns | None = None,
    verify: bool = True,
    threads: int | None = None,
) -> RankingData:
    """Read ranking data from LETOR text, an ``.xr`` cache, Parquet, CSV, TSV or TREC qrels, by the file's name.

    ``keep_missing`` keeps nan, inf and NULL in text as missing values (NaN); ``n_features`` and ``first_feature`` fix the
    number of features of text and whether their ids count from 0 or 1; ``columns`` names the columns of a table; ``verify=False`` opens a
    large cache at once, without a check of its features and strings. A file with an unknown suffix is read as LETOR text, or as
    qrels if its first line has four columns.
    """
    return read_with(path, ReadOptions(keep_missing, n_features, first_feature, columns or Columns(), verify, threads))


def read_with(path: str | os.PathLike[str], options: ReadOptions) -> RankingData:
    """Read ranking data from ``path`` with these ``options``; see `read`."""
    source = existing(path)
    return _input_format(source).read(source, options)


def write(data: RankingData, path: str | os.PathLike[str], *, columns: bool = False, force: bool = False) -> None:
    """Write ``data`` in the format of the path's suffix; an existing file is replaced only with ``force``.

    With ``columns`` an ``.xr`` cache also holds the features column by column, for line searches on data larger than memory.
    """
    check_data(data)
    write_stream(replace(stream_of(data), columns=columns), path, force=force)


def stream(path: str | os.PathLike[str], options: ReadOptions) -> Stream:
    """Return the file at ``path`` as a stream of blocks."""
    source = existing(path)
    return _input_format(source).stream(source, options)


def write_stream(
    stream: Stream, path: str | os.PathLike[str], *, force: bool = False, progress: Callable[[int], None] = lambda rows: None
) -> None:
    """Write a stream in the format of the path's suffix; ``progress`` is called with the number of rows of each block."""
    with stream_writer(path, force=force) as write_to:
        write_to(stream, progress)


@contextmanager
def stream_writer(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Callable[[Stream, Callable[[int], None]], None]]:
    """Open a file, and yield the function that writes a stream and reports progress; fails early if the file cannot be written."""
    target = checked_path(path)
    suffix = "txt" if is_stream(target) else _suffix(target)
    if suffix not in FORMATS or (target.suffix == ".gz" and suffix in UNZIPPED):
        suffixes = ", ".join(f".{name}" for name in FORMATS if name != "qrels")
        wrong = f"{target}: the suffix {''.join(target.suffixes)!r} names no format to write"
        raise DataError(f"{wrong}; use one of {suffixes} (text also with .gz)")
    format_ = FORMATS[suffix]()
    with whole_file(target, force=force) as file:

        def write_to(stream: Stream, progress: Callable[[int], None]) -> None:
            if stream.preferences is not None and suffix != "xr":
                raise DataError(f"{target}: the data has {len(stream.preferences):,} pairs, which only a cache keeps; write to a file .xr")
            if stream.columns and suffix != "xr":
                raise DataError(f"{target}: only an .xr cache keeps features by column; leave out columns (--columns), or write .xr")

            def report_blocks() -> Iterator[Block]:
                for block in stream.blocks:
                    progress(len(block.y))
                    yield block

            reported = replace(stream, blocks=report_blocks())
            if target.suffix == ".gz":
                with gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as compressed:
                    format_.write(cast(BinaryIO, compressed), reported)
            else:
                format_.write(file, reported)

        yield write_to


def existing(path: str | os.PathLike[str]) -> Path:
    """Return ``path``; raise unless it is a regular file that is not empty."""
    source = checked_path(path)
    if source.name == MANIFEST or (source / MANIFEST).is_file():
        raise DataError(f"{source} stands for data in several files; read it with er.read_shards, or give one of its files")
    if source.is_dir():
        raise DataError(f"{source} is a folder; give a file, or read a Fold1..Fold5 tree with er.read_folds")
    if not source.exists():
        raise missing_file(source)
    if not source.is_file():
        raise DataError(f"{source} is not a regular file, and is read more than once; write it to a file first")
    if source.stat().st_size == 0:
        raise DataError(f"{source} is empty; expected lines such as '2 qid:7 1:0.5', a table or a cache")
    return source


def _suffix(path: Path) -> str:
    """Return the suffix of the format, before any ``.gz``."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower().removeprefix(".")


def _input_format(path: Path) -> Format:
    """Return the format by the first bytes if they are unambiguous, otherwise by the name."""
    with open_bytes(path) as file:
        start = file.read(1 << 16)
    for magic, binary in MAGIC_BYTES.items():
        if start.startswith(magic):
            return FORMATS[binary]()
    suffix = _suffix(path)
    if suffix not in TEXT and suffix in FORMATS:
        return FORMATS[suffix]()
    first = next((line for line in start.splitlines() if line.strip()), b"")
    return FORMATS["qrels" if looks_like_qrels(first) else "txt"]()
