"""An order of the documents of each query that depends on what they are, not on where they stand.

Training meets ties: documents of equal grade in ListMLE's ideal ranking, of equal score before the first tree has grown. Whatever breaks
them by the row's place would give another model for the same documents listed otherwise. So rankers get the documents of each
query sorted by a hash of features, grade and weight,

    h(i) = xxh3(x_i, y_i, w_i),    64 bits                                                                      (1)

which draws an order at random, but the same one for the same documents. It is also the same in units that are other powers of two: x is
divided by the power of two next above the largest of its column, by its bits, which loses none. Documents of equal hash are equal, and it
does not matter which of them comes first. So all that follows, sums of floating-point numbers included, has the same bits for any
order of the rows.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from exactrank import _core
from exactrank.data.immutable import sealed
from exactrank.data.ranking_data import RankingData
from exactrank.threads import thread_count

ROWS_PER_BLOCK = 1 << 12
Bits = npt.NDArray[np.int32]


def in_content_order(data: RankingData) -> RankingData:
    """``data`` with the documents of each query by (1), or ``data`` itself where they are; ``order`` still leads to the caller's rows.

    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], group=[3])
    >>> found = in_content_order(data)
    >>> found.X[:, 0].tolist(), found.order.tolist()
    ([3.0, 1.0, 2.0], [2, 0, 1])
    """
    query = np.repeat(np.arange(data.n_queries), data.sizes)
    rows = np.lexsort((_hashes(data), query))
    if np.array_equal(rows, np.arange(len(rows))):
        return data
    return replace(
        data,
        X=sealed(data.X[rows]),
        y=data.y[rows],
        docid=None if data.docid is None else data.docid.take(rows),
        comment=None if data.comment is None else data.comment.take(rows),
        sample_weight=None if data.sample_weight is None else data.sample_weight[rows],
        order=rows if data.order is None else data.order[rows],
    )


def _hashes(data: RankingData) -> npt.NDArray[np.uint64]:
    """(1) of each document, a block of rows at a time, so that a memory-mapped X stays on its disk."""
    hashes, units = np.empty(data.n_documents, np.uint64), _units(data)
    for start in range(0, len(hashes), ROWS_PER_BLOCK):
        packed = _packed(data, slice(start, start + ROWS_PER_BLOCK), units)
        hashes[start : start + len(packed)] = [xxh3_64_intdigest(row) for row in packed]
    return hashes


def _units(data: RankingData) -> Bits:
    """The power of two next above each column's largest size, where the exponent of a float has its bits."""
    low, high, *_ = _core.summarise_columns(data.X, thread_count(None))
    largest = np.maximum(np.abs(low), np.abs(high))
    return np.left_shift(np.frexp(np.where(np.isfinite(largest), largest, 1.0))[1], 23, dtype=np.int32)


def _packed(data: RankingData, rows: slice, units: Bits) -> npt.NDArray[np.uint8]:
    """The bytes of some rows: features, divided by their units, grade and weight."""
    X = data.X[rows]
    bits = X.view(np.int32)
    features = np.where(np.isfinite(X) & (X != 0), bits - units, bits)
    numbers = [data.y] if data.sample_weight is None else [data.y, data.sample_weight]
    return np.hstack([features.view(np.uint8), *(each[rows, None].view(np.uint8) for each in numbers)])
