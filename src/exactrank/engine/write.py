"""Writing data as several caches with a manifest that lists them."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from exactrank.data.blocks import wide_blocks
from exactrank.data.formats import MANIFEST, write
from exactrank.data.ranking_data import RankingData
from exactrank.engine.partitions import Shard, file_checksum, manifest_of, query_range, read_shards
from exactrank.errors import DataError, OutputExistsError
from exactrank.files import whole_file


def write_shards(data: RankingData, folder: Path, count: int, *, force: bool = False) -> Path:
    """Write ``data`` as ``count`` caches of about equally many documents into ``folder``; returns their manifest, which appears last."""
    if count > data.n_queries:
        raise DataError(f"--shards {count} is more than the {data.n_queries:,} queries, and a query is whole in one file; give fewer")
    manifest, old = folder / MANIFEST, set[str]()
    if manifest.exists():
        if not force:
            raise OutputExistsError(f"{manifest} already exists; give another folder, or --force to replace it")
        old = {shard.path for shard in read_shards(manifest).files}
    blocks = wide_blocks(data.indptr)
    edges = blocks if len(blocks) > 4 * count else np.arange(data.n_queries + 1)  # where blocks end, so that few lie in two files
    wanted = np.linspace(0, data.n_documents, count + 1)[1:-1]
    ends = [0, *edges[np.searchsorted(data.indptr[edges], wanted)].tolist(), data.n_queries]
    ends = (
        np.maximum.accumulate(ends).tolist()
        if len(set(ends)) == len(ends)
        else np.linspace(0, data.n_queries, count + 1).astype(int).tolist()
    )
    shards = []
    for number, (first, last) in enumerate(pairwise(ends)):
        name, part = f"part-{number:04}.xr", query_range(data, first, last)
        write(part, folder / name, force=force)
        shards.append(Shard(name, part.n_queries, part.n_documents, file_checksum(folder / name)))
    with whole_file(manifest, force=force) as file:
        file.write(manifest_of(shards).encode())
    for path in old - {f"{folder}/{shard.path}" for shard in shards}:
        Path(path).unlink(missing_ok=True)
    return manifest
