"""An order of the documents of each query that depends on what they are, not on where they stand.

Training meets ties: documents of equal grade in ListMLE's ideal ranking, of equal score before the first tree has grown. Whatever breaks
them by the row's place would give another model for the same documents listed otherwise. So rankers get the documents of each
query sorted by a hash of features, grade and weight,

    h(i) = xxh3(x_i, y_i, w_i),    64 bits                                                                      (1)

which draws an order at random, but the same one for the same documents. Documents of equal hash are equal, and it does not matter which
of them comes first. So all that follows, sums of floating-point numbers included, has the same bits for any order of the rows.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from exactrank.data.ranking_data import RankingData
from exactrank.objectives.within_query import spread_to_documents

ROWS_PER_BLOCK = 1 << 12


def in_content_order(data: RankingData) -> RankingData:
    """``data`` with the documents of each query by (1), or ``data`` itself where they are; ``order`` still leads to the caller's rows.

    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], group=[3])
    >>> found = in_content_order(data)
    >>> found.X[:, 0].tolist(), found.order.tolist()
    ([1.0, 3.0, 2.0], [0, 2, 1])
    """
    query = spread_to_documents(np.arange(data.n_queries), data.indptr)
    rows = np.lexsort((_hashes(data), query))
    if np.array_equal(rows, np.arange(len(rows))):
        return data
    return replace(
        data,
        X=data.X[rows],
        y=data.y[rows],
        docid=None if data.docid is None else data.docid.take(rows),
        comment=None if data.comment is None else data.comment.take(rows),
        sample_weight=None if data.sample_weight is None else data.sample_weight[rows],
        order=rows if data.order is None else data.order[rows],
    )


def _hashes(data: RankingData) -> npt.NDArray[np.uint64]:
    """(1) of each document, a block of rows at a time, so that a memory-mapped X stays on its disk."""
    hashes = np.empty(data.n_documents, np.uint64)
    for start in range(0, len(hashes), ROWS_PER_BLOCK):
        packed = _packed(data, slice(start, start + ROWS_PER_BLOCK))
        hashes[start : start + len(packed)] = [xxh3_64_intdigest(row) for row in packed]
    return hashes


def _packed(data: RankingData, rows: slice) -> npt.NDArray[np.uint8]:
    """The bytes of some rows: features, grade and weight."""
    numbers = [data.y] if data.sample_weight is None else [data.y, data.sample_weight]
    parts = [data.X[rows].view(np.uint8), *(each[rows, None].view(np.uint8) for each in numbers)]
    return np.hstack(parts)
