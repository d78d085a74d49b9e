"""Writing data as several caches with a manifest that lists them, and several files as one."""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np

from exactrank._support.files import whole_file
from exactrank.data.blocks import wide_blocks
from exactrank.data.files import MANIFEST, stream, write
from exactrank.data.formats.stream import Block, Stream
from exactrank.data.ranking_data import RankingData
from exactrank.data.shards import Shard, Shards, file_checksum, local_copy, manifest_of, query_range, read_shards
from exactrank.errors import DataError, OutputExistsError

OURS = re.compile(r"part-\d{4}(-b)?\.xr")  #: the names of files that are written here


def write_shards(data: RankingData, folder: Path, count: int, *, force: bool = False) -> Path:
    """Write ``data`` as ``count`` caches of about equally many documents into ``folder``; returns their manifest, which appears last.

    Until then an earlier manifest and its files stay as they are: new files have other names.
    """
    if count > data.n_queries:
        raise DataError(f"--shards {count} is more than the {data.n_queries:,} queries, and a query is whole in one file; give fewer")
    manifest, old = folder / MANIFEST, replaced(folder, force)
    blocks = wide_blocks(data.indptr)
    edges = blocks if len(blocks) > 4 * count else np.arange(data.n_queries + 1)  # where blocks end, so that few lie in two files
    wanted = np.linspace(0, data.n_documents, count + 1)[1:-1]
    ends = [0, *edges[np.searchsorted(data.indptr[edges], wanted)].tolist(), data.n_queries]
    ends = (
        np.maximum.accumulate(ends).tolist()
        if len(set(ends)) == len(ends)
        else np.linspace(0, data.n_queries, count + 1).astype(int).tolist()
    )
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


def replaced(folder: Path, force: bool) -> set[str]:
    """The files of an earlier manifest in ``folder`` that are ours; an error where they are not to be replaced."""
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
    """The rows of all files, one after the other, of which each is opened when its turn comes."""
    first = shards.files[0].path
    with local_copy(first) as file:
        whole = stream(file, shards.options)

    def blocks() -> Iterator[Block]:
        for shard in shards.files:
            with local_copy(shard.path) as file:
                own = stream(file, shards.options)
                for kind in ("feature_names", "levels", "preferences", "offset"):
                    if not np.array_equal(getattr(own, kind), getattr(whole, kind)):
                        raise DataError(f"{shard.path} and {first} differ in their {kind.replace('_', ' ')}; convert them one by one")
                yield from own.blocks

    return Stream(whole.feature_names, blocks(), whole.offset, whole.levels)
