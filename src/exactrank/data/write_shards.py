"""Write data as several caches with a manifest that lists them, and read several files as one stream."""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np

from exactrank._support.files import whole_file
from exactrank.data.blocks import wide_blocks
from exactrank.data.files import MANIFEST, stream, write
from exactrank.data.formats.base import Block, Stream
from exactrank.data.ranking_data import RankingData
from exactrank.data.shards import Shard, Shards, file_checksum, local_copy, manifest_of, query_range, read_shards
from exactrank.errors import DataError, OutputExistsError

OURS = re.compile(r"part-\d{4}(-b)?\.xr")  #: the names of files that are written here


def write_shards(data: RankingData, folder: Path, count: int, *, force: bool = False) -> Path:
    """Write ``data`` as ``count`` caches of about equal size into ``folder``, and their manifest last; return its path.

    Until then an earlier manifest and its files stay unchanged: new files get other names.
    """
    if count > data.n_queries:
        raise DataError(f"--shards {count} is more than the {data.n_queries:,} queries, and a query is whole in one file; give fewer")
    manifest, old = folder / MANIFEST, replaceable_files(folder, force)
    blocks = wide_blocks(data.indptr)
    edges = blocks if len(blocks) > 4 * count else np.arange(data.n_queries + 1)  # where blocks end, so that few lie in two files
    targets = np.linspace(0, data.n_documents, count + 1)[1:-1]
    ends = [0, *edges[np.searchsorted(data.indptr[edges], targets)].tolist(), data.n_queries]
    if len(set(ends)) < len(ends):
        ends = np.linspace(0, data.n_queries, count + 1).astype(int).tolist()
    shards, mark = list[Shard](), "-b" if any(not name.endswith("-b.xr") for name in old) else ""
    try:
        for number, (first, last) in enumerate(pairwise(ends)):
            name, part = f"part-{number:04}{mark}.xr", query_range(data, first, last)
            write(part, folder / name, force=force)
            shards.append(Shard(name, part.n_queries, part.n_documents, file_checksum(folder / name)))
        with whole_file(manifest, force=force) as file:
            file.write(manifest_of(shards).encode())
    except BaseException:
        for shard in shards:
            (folder / shard.path).unlink(missing_ok=True)
        raise
    for name in old - {shard.path for shard in shards}:
        (folder / name).unlink(missing_ok=True)
    return manifest


def replaceable_files(folder: Path, force: bool) -> set[str]:
    """Return the files that an earlier `write_shards` wrote into ``folder``; raise if there is a manifest and no ``force``."""
    manifest = folder / MANIFEST
    if not manifest.exists():
        return set()
    if not force:
        raise OutputExistsError(f"{manifest} already exists; give another folder, or --force to replace it")
    with suppress(DataError):  # it is damaged, or something else
        listed = (Path(shard.path) for shard in read_shards(manifest).files)
        return {path.name for path in listed if path.parent == folder.absolute() and OURS.fullmatch(path.name)}
    return set()


def stream_of_shards(shards: Shards) -> Stream:
    """Return the rows of all files as one stream, which opens one file at a time."""
    first = shards.files[0].path
    with local_copy(first) as file:
        first_stream = stream(file, shards.options)

    def blocks() -> Iterator[Block]:
        for shard in shards.files:
            with local_copy(shard.path) as file:
                rows = stream(file, shards.options)
                for kind in ("feature_names", "levels", "preferences", "offset"):
                    if not np.array_equal(getattr(rows, kind), getattr(first_stream, kind)):
                        raise DataError(f"{shard.path} and {first} differ in their {kind.replace('_', ' ')}; convert them one by one")
                yield from rows.blocks

    return Stream(first_stream.feature_names, blocks(), first_stream.offset, first_stream.levels)
