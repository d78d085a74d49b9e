"""The queries of a batch on a device: where their documents begin, how they rank, and sums by query."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactrank.gpu.device import Array, Device

#: Up to this many comparisons documents are ranked by counting; beyond, by sorting.
COUNTED = 2e10


@dataclass(frozen=True, eq=False)
class Lists:
    """Documents grouped by query, those of query q from ``indptr[q]`` to ``indptr[q + 1]``."""

    device: Device
    indptr: Array  #: int64
    documents: int
    longest: int  #: number of documents of the longest query, or more than that

    @property
    def queries(self) -> int:
        """Number of queries."""
        return int(self.indptr.shape[0]) - 1

    @property
    def sizes(self) -> Array:
        """Number of documents of each query."""
        return self.device.xp.diff(self.indptr)

    def by_document(self, kernel: str, real: np.dtype[Any], *args: object) -> None:
        """Run ``kernel`` with one thread per document."""
        self.device.launch(kernel, self.documents, real, *args)

    def by_query(self, kernel: str, *args: object, real: np.dtype[Any] = np.dtype(np.float64)) -> None:  # noqa: B008
        """Run ``kernel`` with one thread per query."""
        self.device.launch(kernel, self.queries, real, *args)

    def order(self, scores: Array, tie_key: Array | None = None, factor: Array | None = None) -> Array:
        """Documents by position, the largest score of each query first; of equal scores the least key, then the order given.

        ``factor``, one number per query, becomes NaN where a score of the query is no finite number.
        """
        xp = self.device.xp
        if self.documents * self.longest > COUNTED:
            query = xp.repeat(xp.arange(self.queries), self.sizes.tolist())
            if factor is not None:
                factor += self.sums(scores.astype(np.float64) * 0.0)
            keys = [xp.arange(self.documents), -scores.astype(np.float64), query]
            if tie_key is not None:
                keys.insert(1, tie_key)
            return xp.lexsort(xp.stack([xp.asarray(key, np.float64) for key in keys]))
        order = xp.empty(self.documents, np.int64)
        self.by_document("rank_documents", scores.dtype, scores, tie_key, self.indptr, *self._counts, order, factor)
        return order

    def retrieved(self, scores: Array) -> Array:
        """How many documents of each query have a score above -inf."""
        retrieved = self.device.xp.empty(self.queries, np.int32)
        self.by_query("count_retrieved", scores, self.indptr, np.int32(self.queries), retrieved, real=scores.dtype)
        return retrieved

    def sums(self, numbers: Array) -> Array:
        """The sum of ``numbers``, one per document, over each query."""
        sums = self.device.xp.empty(self.queries)
        self.by_query("sum_by_query", numbers, self.indptr, np.int32(self.queries), sums)
        return sums

    def largest(self, numbers: Array) -> Array:
        """The largest of ``numbers``, one per document, of each query."""
        largest = self.device.xp.empty(self.queries)
        self.by_query("largest_by_query", numbers, self.indptr, np.int32(self.queries), largest)
        return largest

    def scale(self, numbers: Array, factor: Array) -> None:
        """Multiply ``numbers``, one per document, by the factor of their query, in place."""
        self.by_document("scale_by_query", np.dtype(np.float64), numbers, factor, self.indptr, *self._counts)

    @property
    def _counts(self) -> tuple[np.int32, np.int64]:
        return np.int32(self.queries), np.int64(self.documents)
