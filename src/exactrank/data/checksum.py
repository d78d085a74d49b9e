"""A fingerprint of ranking data, to tell later whether a model saw this data or other."""

from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from exactrank.data.ranking_data import RankingData

BLOCK_BYTES = 1 << 24


def checksum(data: RankingData) -> str:
    """The xxh3 hash (128 bits, hexadecimal) of X, y, indptr and any offset; block by block, so a memory-mapped X stays on its disk.

    >>> checksum(RankingData.from_arrays([[1.0], [2.0]], [0, 1], group=[2]))
    'f1b04bc65a90abcceb02f1a58c2318cf'
    """
    digest = xxhash.xxh3_128()
    for array in (data.X, data.y, data.indptr, data.offset):
        if array is not None:
            _feed(digest, array)
    return digest.hexdigest()


def _feed(digest: xxhash.xxh3_128, array: npt.NDArray[Any]) -> None:
    rows = max(1, BLOCK_BYTES // max(1, array[:1].nbytes))
    for start in range(0, len(array) if array.size else 0, rows):
        digest.update(np.ascontiguousarray(array[start : start + rows]).data)
