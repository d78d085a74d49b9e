"""The queries of a batch on a device: where their documents begin, how they rank, and sums by query."""

from dataclasses import dataclass

import numpy as np

from exactrank.backends.cuda.device import REAL, Array, Device, Real

#: Longer lists are sorted in main memory; there are many of the shorter ones, so that fewer threads sort each.
IN_SHARED_MEMORY, THREADS, THREADS_IF_LONG = 2048, 64, 1024


@dataclass(frozen=True, eq=False)
class Lists:
    """Documents grouped by query: those of query q from ``indptr[q]`` to ``indptr[q + 1]``."""

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

    def by_document(self, kernel: str, real: Real, *args: object) -> None:
        """Run ``kernel`` with one thread per document."""
        self.device.launch(kernel, self.documents, real, *args)

    def by_query(self, kernel: str, *args: object, real: Real = REAL) -> None:
        """Run ``kernel`` with one thread per query."""
        self.device.launch(kernel, self.queries, real, *args)

    def order(self, scores: Array, ties: Array | None = None, weight: Array | None = None, factor: Array | None = None) -> Array:
        """Return documents by position, the largest score of each query first; of equal scores the first in ``ties``, or in the data.

        ``ties`` holds documents by position too. `factors` are written to ``factor`` if it is not None.
        """
        xp, real = self.device.xp, scores.dtype
        order, bytes_per_document = xp.empty(self.documents, np.int64), 2 * real.itemsize

        def sort(threads: int, shared: int, room: Array | None, shortest: int, longest: int) -> None:
            arguments = scores, ties, self.indptr, np.int32(shortest), np.int32(longest), room, order, weight, factor
            self.device.launch_blocks("sort_documents", self.queries, threads, shared, real, *arguments)

        sort(THREADS, bytes_per_document * min(self.longest, IN_SHARED_MEMORY), None, 1, IN_SHARED_MEMORY)
        if self.longest > IN_SHARED_MEMORY:
            sort(THREADS_IF_LONG, 0, xp.empty(self.documents * bytes_per_document, np.uint8), IN_SHARED_MEMORY + 1, self.longest)
        return order

    def retrieval_counts(self, scores: Array) -> Array:
        """Return the number of documents of each query with a score above -inf."""
        counts = self.device.xp.empty(self.queries, np.int32)
        self.by_query("count_retrieved", scores, self.indptr, np.int32(self.queries), counts, real=scores.dtype)
        return counts

    def factors(self, scores: Array, weight: Array | None) -> Array:
        """Return the weight of each query, 1 if there are none, and NaN if one of its scores is not a finite number."""
        factors = self.device.xp.empty(self.queries)
        self.by_query("query_factors", scores, weight, self.indptr, np.int32(self.queries), factors, real=scores.dtype)
        return factors

    def least_first(self, key: Array | None) -> Array | None:
        """Return the ``ties`` of `order` by which the least key comes first; None for None."""
        return None if key is None else self.order(-key)

    def sums(self, numbers: Array) -> Array:
        """Return the sum of ``numbers``, one per document, over each query."""
        sums = self.device.xp.empty(self.queries)
        self.by_query("sum_by_query", numbers, self.indptr, np.int32(self.queries), sums)
        return sums

    def largest(self, numbers: Array) -> Array:
        """Return the largest of ``numbers``, one per document, of each query."""
        largest = self.device.xp.empty(self.queries)
        self.by_query("largest_by_query", numbers, self.indptr, np.int32(self.queries), largest)
        return largest

    def scale(self, numbers: Array, factor: Array) -> None:
        """Multiply ``numbers``, one per document, by the factor of their query, in place."""
        self.by_document("scale_by_query", numbers.dtype, numbers, factor, self.indptr, *self._counts)

    @property
    def _counts(self) -> tuple[np.int32, np.int64]:
        return np.int32(self.queries), np.int64(self.documents)
