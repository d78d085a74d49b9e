"""Measures on the GPU: the usefulness of documents, the discounts of ranks, and the value of each query.

The families are those of `exactrank.measures.families`; the processor evaluates measures that the GPU does not support.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from exactrank.backends.cuda.device import Array, Device, on_host
from exactrank.backends.cuda.lists import Lists
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.binary import AP, Binary
from exactrank.measures.families import Cascade, Discounted, Positional
from exactrank.measures.graded import DCG, ERR, NDCG, MeanNDCG
from exactrank.measures.pairwise import Bpref, PairwiseCorrect


def supports(measure: Measure) -> bool:
    """Return whether ``measure`` can be evaluated on the GPU, which knows no ids of documents and no measures of other packages."""
    is_known = isinstance(measure, AP | Cascade | Positional | Bpref | PairwiseCorrect)
    return is_known and type(measure).__module__.startswith("exactrank.") and measure.ties != "docid"


def has_exchanges(measure: Measure) -> bool:
    """Return whether the GPU also computes what exchanges of documents change."""
    return supports(measure) and measure.ties != "expected" and isinstance(measure, AP | Cascade | Positional)


@dataclass(frozen=True, eq=False)
class CudaMeasure:
    """A measure on the grades of some lists, a function of scores."""

    measure: Measure
    lists: Lists
    useful: Array  #: the usefulness of each document, for positional measures as a share of the normalizer
    discount: Array | None  #: of the ranks that count; for MeanNDCG those of each query
    empty: Array | None  #: which queries have nothing useful; None if that does not matter
    ties: Array | None  #: as `Lists.order` takes them

    @classmethod
    def of(cls, measure: Measure, lists: Lists, grades: Array, pessimistic: bool = False) -> "CudaMeasure":
        """``measure`` on ``grades``, doubles on the device; with ``pessimistic`` ties whatever the measure says."""
        xp = lists.device.xp
        useful = usefulness(measure, lists, grades)
        discount, empty = None, None
        if isinstance(measure, Discounted):
            discount = discounts(lists.device, measure, min(measure.cutoff, lists.longest))
        if isinstance(measure, PairwiseCorrect):
            empty = lists.largest(useful) == -lists.largest(-useful)
        elif isinstance(measure, Positional) or measure.empty != 0:
            empty = ~(lists.largest(useful) > 0)
        if isinstance(measure, Positional):
            assert discount is not None
            assert empty is not None
            lists.scale(useful, xp.where(empty, 0.0, 1 / xp.where(empty, 1.0, _normalizer(measure, lists, useful, discount))))
            discount = _mean_discounts(lists, measure, useful, discount) if measure.normalizer == "mean_ideal" else discount
        ties = lists.least_first(grades if pessimistic or measure.ties == "pessimistic" else None)
        return cls(measure, lists, useful, discount, empty, ties)

    @property
    def cutoff(self) -> np.int32:
        """The cutoff of the measure."""
        return np.int32(self.measure.cutoff)

    def values(self, scores: Array, order: Array | None = None, placed: Array | None = None, retrieved: Array | None = None) -> Array:
        """Return the value of each query, NaN if it is skipped.

        What exchanges change is written to ``placed`` if it is not None; to train on, a query that is skipped is worth 0. ``retrieved``
        comes from `Lists.retrieval_counts`: documents with a score of -inf do not count.
        """
        lists, xp, measure = self.lists, self.lists.device.xp, self.measure
        order = lists.order(scores, self.ties) if order is None else order
        if measure.ties == "expected" or isinstance(measure, Bpref | PairwiseCorrect):
            values = self._mean_values(scores, order, lists.retrieval_counts(scores) if retrieved is None else retrieved)
        else:
            values = self._values_in_order(scores, order, placed, retrieved)
        if self.empty is None or measure.empty == 0 or (placed is not None and measure.empty == "skip"):
            return values  # nothing useful adds up to nothing
        return xp.where(self.empty, measure.empty_value, values)

    def _values_in_order(self, scores: Array, order: Array, placed: Array | None, retrieved: Array | None) -> Array:
        """Return the values of documents in that order."""
        lists, real, values = self.lists, scores.dtype, self.lists.device.xp.empty(self.lists.queries)
        rest = retrieved, order, lists.indptr, np.int32(lists.queries), values
        if isinstance(self.measure, AP):
            lists.by_query("average_precision", scores, self.useful, self.cutoff, self._limit, *rest, placed, real=real)
        elif isinstance(self.measure, Cascade):
            lists.by_query("cascade", scores, self.useful, self.discount, self.cutoff, *rest, placed, real=real)
        else:
            lists.by_query("discounted_sums", self.useful, self.discount, self._by_query, self.cutoff, *rest, real=real)
            if placed is not None:
                where = self._by_query, self.cutoff, order, lists.indptr, np.int32(lists.queries), np.int64(lists.documents)
                lists.by_document("place", real, scores, self.useful, self.discount, *where, placed)
        return values

    def _mean_values(self, scores: Array, order: Array, retrieved: Array) -> Array:
        """Return the mean over all orders of tied documents, where the measure asks for that; measures of pairs also without ties."""
        lists, xp, real = self.lists, self.lists.device.xp, scores.dtype
        values = xp.empty(lists.queries)
        rest = scores if self.measure.ties == "expected" else None, retrieved, order, lists.indptr, np.int32(lists.queries)
        if isinstance(self.measure, PairwiseCorrect):
            less_useful, twice_below = (xp.empty(lists.documents) for _ in range(2))
            lists.by_document("pairs_in_order", real, self.useful, *rest, np.int64(lists.documents), less_useful, twice_below)
            return lists.sums(twice_below) / xp.maximum(2 * lists.sums(less_useful), 1.0)
        if isinstance(self.measure, Bpref):
            lists.by_query("preferences", self.useful, *rest, values, real=real)
        elif isinstance(self.measure, AP):
            lists.by_query("expected_precision", self.useful, self.cutoff, self._limit, *rest, values, real=real)
        elif isinstance(self.measure, Cascade):
            room = xp.empty(lists.documents + lists.queries)
            lists.by_query("expected_cascade", self.useful, self.discount, self.cutoff, *rest, values, room, real=real)
        else:
            lists.by_query("expected_sums", self.useful, self.discount, self._by_query, self.cutoff, *rest, values, real=real)
        return values

    @property
    def _limit(self) -> np.int32:
        """1 if average precision divides by the cutoff at most, otherwise 0."""
        return np.int32(isinstance(self.measure, AP) and self.measure.norm == "cutoff")

    @property
    def _by_query(self) -> np.int32:
        """1 if each query has its own discounts, otherwise 0."""
        return np.int32(isinstance(self.measure, MeanNDCG))


def usefulness(measure: Measure, lists: Lists, grades: Array) -> Array:
    """Return the usefulness of documents with these grades, for nDCG as a share of that of the query's best grade."""
    xp = lists.device.xp
    if isinstance(measure, Bpref):  # less where a document is not judged
        return xp.where(grades >= measure.rel, 1.0, xp.where(grades >= 0, 0.0, -1.0))
    if isinstance(measure, Binary) or (isinstance(measure, PairwiseCorrect) and measure.rel is not None):
        return (grades >= measure.rel).astype(np.float64)
    if isinstance(measure, PairwiseCorrect):
        return grades
    above = xp.maximum(grades, 0.0)
    if isinstance(measure, ERR):
        highest = float(grades.max())
        if highest > measure.max_grade:
            raise DataError(f"grade {highest:g} exceeds ERR's max_grade={measure.max_grade:g}; use ERR(max_grade={highest:g})")
        return (xp.exp2(above) - 1) / 2**measure.max_grade
    assert isinstance(measure, DCG)
    if not isinstance(measure.gain, str):  # a table
        return xp.asarray(measure.usefulness(on_host(grades)))
    if measure.gain == "linear":
        return above
    if not isinstance(measure, NDCG | MeanNDCG):
        return xp.exp2(above) - 1
    best = xp.ones(lists.documents)
    lists.scale(best, lists.largest(above))
    return xp.exp2(above - best) - xp.exp2(-best)


def discounts(device: Device, measure: Discounted, ranks: int) -> Array:
    """Return the discounts of that number of ranks on the device."""
    return _discounts(device, measure, 1 << max(0, ranks - 1).bit_length())


@cache
def _discounts(device: Device, measure: Discounted, ranks: int) -> Array:
    return device.xp.asarray(np.ascontiguousarray(measure.discounts(ranks), np.float64))


def _normalizer(measure: Positional, lists: Lists, useful: Array, discount: Array) -> Array:
    """Return the divisor of the sum over ranks, one number per query; infinity if a list is too short to count."""
    xp, sizes = lists.device.xp, lists.sizes
    total: Any = xp.ones(lists.queries)
    if measure.normalizer == "length":
        total = xp.minimum(sizes, measure.cutoff).astype(np.float64)
    elif measure.normalizer == "total":
        total = lists.sums(useful)
    elif measure.normalizer == "ideal":
        one_for_all, rest = np.int32(0), (None, lists.order(useful), lists.indptr, np.int32(lists.queries), total)
        lists.by_query("discounted_sums", useful, discount, one_for_all, np.int32(measure.cutoff), *rest)
    return xp.where(sizes < measure.cutoff, np.inf, total) if measure.short_is_zero else total


def _mean_discounts(lists: Lists, measure: Positional, useful: Array, discount: Array) -> Array:
    """Return the discounts of each query by position, for the mean over all cutoffs of the share of the ideal."""
    mean, rest = lists.device.xp.empty(lists.documents), (lists.order(useful), lists.indptr, np.int32(lists.queries))
    lists.by_query("mean_discounts", useful, discount, np.int32(measure.cutoff), *rest, mean)
    return mean
