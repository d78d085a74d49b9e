"""Blocks of queries, by which sums of floating-point numbers are taken.

    a block ends with the query that brings it to 4,096 documents; four of them are a wide block                 (1)

Blocks are counted from the first query. Data that begins where a wide block does has the same blocks as the whole that it was cut from,
so sums by blocks do not depend on the cut.
"""

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Boundaries

DOCUMENTS_PER_BLOCK = 4096
BLOCKS_PER_WIDE = 4


def wide_blocks(indptr: Boundaries) -> npt.NDArray[np.int64]:
    """The queries at which the wide blocks (1) begin, and the number of queries.

    >>> wide_blocks(np.arange(0, 100_001, 1000)).tolist()
    [0, 20, 40, 60, 80, 100]
    """
    ends, queries = [0], len(indptr) - 1
    while ends[-1] < queries:
        ends.append(min(int(np.searchsorted(indptr, indptr[ends[-1]] + DOCUMENTS_PER_BLOCK)), queries))
    return np.array([*ends[:-1:BLOCKS_PER_WIDE], queries])
