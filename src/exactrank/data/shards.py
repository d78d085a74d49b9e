"""Data in several files, cut into partitions that workers load themselves.

The files of `Shards`, one after the other, are the dataset. A partition consists of wide blocks (`exactrank.data.blocks`), so sums over
blocks do not depend on the cut, and blocks do not depend on which query lies in which file. A wide block that lies in several files is a
partition of its own, read from all of them; nothing else is copied.
"""

import glob
import json
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from exactrank._support.arguments import checked_list
from exactrank._support.arrays import Boundaries, Ids, PerQuery, starts_of
from exactrank._support.files import checked_path, missing_file
from exactrank.data.blocks import wide_blocks
from exactrank.data.extra_columns import concatenate_extra_columns, take_extra_columns
from exactrank.data.files import MANIFEST, read_with
from exactrank.data.formats.base import Columns, ReadOptions
from exactrank.data.formats.cache import MAGIC, PREAMBLE
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.immutable import seal
from exactrank.data.levels import Levels
from exactrank.data.precision import Offset
from exactrank.data.preferences import concatenate_preferences, preferences_between
from exactrank.data.ranking_data import BLOCK_BYTES, RankingData
from exactrank.data.scratch_arrays import empty_matrix
from exactrank.errors import DataError

FORMAT = "exactrank shards 1"


@dataclass(frozen=True)
class Shard:
    """A file of the dataset, with what a manifest says about it; None without a manifest."""

    path: str  #: a path or a URL
    queries: int | None = None
    documents: int | None = None
    checksum: str | None = None


@dataclass(frozen=True)
class Shards:
    """Ranking data in several files, in this order; build it with [`er.read_shards`][exactrank.read_shards]."""

    files: tuple[Shard, ...]
    options: ReadOptions = field(default_factory=ReadOptions)

    def __repr__(self) -> str:
        return f"Shards({len(self.files):,} files, from {self.files[0].path})"


def read_shards(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    keep_missing: bool = False,
    n_features: int | None = None,
    columns: Columns | None = None,
) -> Shards:
    """Return data in several files, for training and evaluation with a backend; the files are read later.

    ``paths`` is a pattern such as ``"data/part-*.xr"``, the folder or manifest that ``exactrank convert --shards`` wrote, or a list of
    files. Files are caches or of any other format, with the same features and whole queries; URLs such as ``s3://...`` need fsspec.
    ``keep_missing``, ``n_features`` and ``columns`` are those of [`er.read`][exactrank.read].
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else checked_list("paths", paths, "a pattern, a folder, or a list of files")
    for path in listed:
        checked_path(path)
    patterns = [os.fspath(path) for path in listed]
    files = [file for path in patterns for file in _shards_at(path)]
    if not files:
        raise DataError(f"{patterns[0] if patterns else 'paths'}: there is no such file; check the pattern")
    return Shards(tuple(files), ReadOptions(keep_missing, n_features, columns=columns or Columns()))


def _shards_at(path: str) -> list[Shard]:
    """Return the files of a pattern, a manifest, its folder or a file; paths are absolute, since workers may run in other folders."""
    if not is_remote(path):
        path = os.path.join(os.path.abspath(path), MANIFEST) if Path(path).is_dir() else os.path.abspath(path)
    if path.endswith(".json"):
        return _manifest(path)
    if not any(sign in path for sign in "*?["):
        return [Shard(path)]
    if is_remote(path):
        system, inner = _filesystem(path)
        return [Shard(system.unstrip_protocol(name)) for name in sorted(system.glob(inner))]
    return [Shard(name) for name in sorted(glob.glob(path))]


def _manifest(path: str) -> list[Shard]:
    try:
        with local_copy(path) as file:
            record = json.loads(file.read_text())
        if record["format"] != FORMAT:
            raise DataError(f"{path}: has format {record['format']!r}, and this version of exactrank reads {FORMAT!r}; convert again")
        folder = path.rpartition("/")[0] or "."
        return [Shard(**entry | {"path": f"{folder}/{entry['path']}"}) for entry in record["shards"]]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not a list of shards that exactrank convert --shards wrote; convert again") from None


def manifest_of(shards: Sequence[Shard]) -> str:
    """Return the text of a manifest of files in its folder."""
    return json.dumps({"format": FORMAT, "shards": [asdict(shard) for shard in shards]}, indent=1) + "\n"


def is_remote(path: str) -> bool:
    """Return whether ``path`` is a URL."""
    return "://" in path


def _filesystem(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise DataError(f"{url}: to read URLs install fsspec, e.g. pip install exactrank[dask], and what it needs for this one") from None
    try:
        system, inner = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise DataError(f"{url}: {error}") from None
    return system, inner


@contextmanager
def local_copy(path: str) -> Iterator[Path]:
    """Yield the file at ``path``, downloaded if it is a URL; mapped caches stay readable after the copy is deleted."""
    if not is_remote(path):
        yield Path(path)
        return
    system, inner = _filesystem(path)
    with TemporaryDirectory(prefix="exactrank-") as folder:
        target = Path(folder) / inner.rpartition("/")[2]
        try:
            system.get_file(inner, str(target))
        except OSError as error:
            raise DataError(f"{path} cannot be fetched: {error!r}; check the address and the rights") from None
        yield target


@dataclass(frozen=True, eq=False)
class ShardFacts:
    """Facts about a file that the client holds: values per query, but no values per document."""

    checksum: str
    sizes: npt.NDArray[np.int64]
    qid: Ids
    query_weight: PerQuery | None
    feature_names: tuple[str, ...]
    offset: Offset | None
    levels: Levels
    weighs_documents: bool
    has_docid: bool
    extra_columns: tuple[str, ...]  #: names
    pairs: int | None  #: number of pairs of documents; None if the file has no pairs

    @property
    def offset_or_zeros(self) -> Offset:
        """Offset of each feature; zeros without offsets."""
        return np.zeros(len(self.feature_names)) if self.offset is None else self.offset


def describe_shard(shard: Shard, options: ReadOptions) -> ShardFacts:
    """Return the facts about the file of ``shard``, whose checksum must be that of the manifest."""
    data, checksum = _open(shard.path, replace(options, verify=False), shard.checksum)
    return ShardFacts(
        checksum,
        np.diff(data.indptr),
        np.array(data.qid),
        None if data.query_weight is None else np.array(data.query_weight),
        data.feature_names,
        data.offset,
        data.levels,
        data.sample_weight is not None,
        data.docid is not None,
        tuple(sorted(data.extra_columns)),
        None if data.preferences is None else len(data.preferences),
    )


def _open(path: str, options: ReadOptions, expected: str | None) -> tuple[RankingData, str]:
    if not is_remote(path) and os.path.islink(path) and not os.path.exists(path):
        raise missing_file(path)
    if not is_remote(path) and not os.path.isfile(path):
        raise DataError(f"{path} is not there; every worker must find each file under the same path, e.g. in a shared folder")
    with local_copy(path) as file:
        checksum = file_checksum(file)
        if expected is not None and checksum != expected:
            raise DataError(f"{path} is not what it was when training began, or what its manifest says; bring it back, or begin anew")
        return read_with(file, options), checksum


def file_checksum(path: Path) -> str:
    """Return the checksum of a cache's footer, which holds those of everything else, or the checksum of the bytes of any other file."""
    with open(path, "rb") as file:
        start = file.read(PREAMBLE.size)
        if start.startswith(MAGIC):
            try:
                return f"{PREAMBLE.unpack(start)[4]:016x}"
            except struct.error:
                pass  # too short to be a cache; its reader raises the error
        file.seek(0)
        digest = xxhash.xxh3_64()
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def check_alike(shards: Shards, facts: Sequence[ShardFacts]) -> None:
    """Raise if files do not fit together."""
    first = facts[0]
    for file, shard in zip(shards.files, facts, strict=True):
        kinds = {
            "features": shard.feature_names == first.feature_names,
            "categories": shard.levels == first.levels,
            "query weights": (shard.query_weight is None) == (first.query_weight is None),
            "weights of documents": shard.weighs_documents == first.weighs_documents,
            "document ids": shard.has_docid == first.has_docid,
            "extra columns": shard.extra_columns == first.extra_columns,
            "pairs of documents": (shard.pairs is None) == (first.pairs is None),
            "offsets of features": np.array_equal(shard.offset_or_zeros, first.offset_or_zeros),
        }
        for kind, alike in kinds.items():
            if not alike:
                raise DataError(f"{file.path} and {shards.files[0].path} differ in their {kind}; write them by exactrank convert --shards")
    file_of: dict[object, int] = {}
    for number, file_facts in enumerate(facts):
        for query in file_facts.qid.tolist():
            if file_of.setdefault(query, number) != number:
                files = f"{shards.files[file_of[query]].path} and {shards.files[number].path}"
                raise DataError(
                    f"query {query} lies in {files}; a query must be whole in one file, as exactrank convert --shards writes it"
                )


@dataclass(frozen=True)
class Piece:
    """The queries ``first`` to ``last`` of a file, or those of them that ``mask`` selects, which has one bit per query."""

    path: str
    first: int
    last: int
    checksum: str
    mask: bytes | None = None

    def load(self, options: ReadOptions) -> RankingData:
        """Return the queries, after a check of all their bytes."""
        options = replace(options, verify=slice(self.first, self.last))
        data = query_range(_open(self.path, options, self.checksum)[0], self.first, self.last)
        if self.mask is None:
            return data
        return some_queries(data, np.unpackbits(np.frombuffer(self.mask, np.uint8), count=data.n_queries).astype(np.bool_))


@dataclass(frozen=True)
class Partition:
    """Consecutive wide blocks; ``first`` and ``first_document`` are the numbers of their first query and document in the dataset."""

    number: int
    first: int
    first_document: int
    queries: int
    documents: int
    pieces: tuple[Piece, ...]
    options: ReadOptions

    def load(self) -> RankingData:
        """Return the queries."""
        parts = [piece.load(self.options) for piece in self.pieces]
        return parts[0] if len(parts) == 1 else concatenate(parts)


def cut(shards: Shards, facts: Sequence[ShardFacts], limit: int) -> list[Partition]:
    """Return partitions of at most ``limit`` documents, or of a single wide block, each of one file if that is possible."""
    sizes = np.concatenate([file.sizes for file in facts])
    indptr = starts_of(sizes)
    ends = np.cumsum([len(file.sizes) for file in facts])  # the files', in queries
    return [
        _partition(number, first, last, indptr, ends, shards, facts)
        for number, (first, last) in enumerate(pairwise([*begins_of(indptr, ends, limit), int(ends[-1])]))
    ]


def begins_of(indptr: Boundaries, ends: npt.NDArray[np.int64], limit: int) -> list[int]:
    """Return the queries at which partitions of at most ``limit`` documents begin; files end before the queries ``ends``."""
    begins = [0]
    for start, end in pairwise(wide_blocks(indptr).tolist()):
        files = np.searchsorted(ends, [begins[-1], start, end - 1], side="right")
        if start > begins[-1] and (files[0] != files[2] or indptr[end] - indptr[begins[-1]] > limit):
            begins.append(start)
    return begins


def _partition(
    number: int, first: int, last: int, indptr: Boundaries, ends: npt.NDArray[np.int64], shards: Shards, facts: Sequence[ShardFacts]
) -> Partition:
    pieces = []
    for file in range(int(np.searchsorted(ends, first, side="right")), int(np.searchsorted(ends, last - 1, side="right")) + 1):
        begin = int(ends[file] - len(facts[file].sizes))
        bounds = max(first, begin) - begin, min(last, int(ends[file])) - begin
        pieces.append(Piece(shards.files[file].path, *bounds, facts[file].checksum))
    return Partition(number, first, int(indptr[first]), last - first, int(indptr[last] - indptr[first]), tuple(pieces), shards.options)


def query_range(data: RankingData, first: int, last: int) -> RankingData:
    """Return the queries ``first`` to ``last``, without a copy of X; rows are in grouped order."""
    rows = slice(int(data.indptr[first]), int(data.indptr[last]))
    return RankingData(
        X=data.X[rows],
        y=data.y[rows],
        indptr=data.indptr[first : last + 1] - data.indptr[first],
        qid=data.qid[first:last],
        feature_names=data.feature_names,
        docid=None if data.docid is None else TextColumn(data.docid.buffer, data.docid.start[rows], data.docid.stop[rows]),
        sample_weight=None if data.sample_weight is None else data.sample_weight[rows],
        query_weight=None if data.query_weight is None else data.query_weight[first:last],
        offset=data.offset,
        levels=data.levels,
        extra_columns=take_extra_columns(data.extra_columns, rows),
        preferences=preferences_between(data.preferences, rows.start, rows.stop),
    )


def some_queries(data: RankingData, mask: npt.NDArray[np.bool_]) -> RankingData:
    """Return the queries of a part that ``mask`` selects, as a part of the same dataset."""
    part = data.take_queries(mask)
    pairs = preferences_between(data.preferences, 0, 0) if part.preferences is None else part.preferences
    return replace(part, global_facts=data.global_facts, preferences=pairs)


def concatenate(parts: Sequence[RankingData]) -> RankingData:
    """Return the queries of all ``parts``, which have the same features; missing weights become 1."""
    first = parts[0]
    X = empty_matrix((sum(part.n_documents for part in parts), first.n_features), first.X)
    np.concatenate([part.X for part in parts], out=X)
    ids = [part.docid for part in parts if part.docid is not None]
    sample_weights = [np.ones(part.n_documents) if part.sample_weight is None else part.sample_weight for part in parts]
    return RankingData(
        X=seal(X),
        y=np.concatenate([part.y for part in parts]),
        indptr=starts_of(np.concatenate([part.sizes for part in parts])),
        qid=np.concatenate([part.qid for part in parts]),
        feature_names=first.feature_names,
        docid=TextColumn.concatenate(ids) if len(ids) == len(parts) else None,
        sample_weight=None if all(part.sample_weight is None for part in parts) else np.concatenate(sample_weights),
        query_weight=None if all(part.query_weight is None for part in parts) else np.concatenate([part.weights for part in parts]),
        offset=first.offset,
        levels=first.levels,
        extra_columns=concatenate_extra_columns([part.extra_columns for part in parts]),
        preferences=concatenate_preferences([part.preferences for part in parts], [part.n_documents for part in parts]),
        global_facts=first.global_facts,
        kernels=first.kernels,
    )
