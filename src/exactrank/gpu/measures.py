"""Measures on the GPU: what a document is worth, the discounts of ranks, and the value of each query.

The families are those of `exactrank.measures.families`. Ties are broken by the order given or pessimistically; `supports` names what
has to be asked on the processor instead.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from exactrank.errors import DataError
from exactrank.gpu.device import Array, Device
from exactrank.gpu.lists import Lists
from exactrank.measures.base import Measure
from exactrank.measures.binary import AP, Binary
from exactrank.measures.families import Cascade, Discounted, Positional
from exactrank.measures.graded import DCG, ERR, NDCG


def supports(measure: Measure) -> bool:
    """Can it be computed on the GPU?"""
    if measure.ties not in ("input", "pessimistic") or isinstance(getattr(measure, "gain", None), tuple):
        return False
    known = type(measure).__module__.startswith("exactrank.")  # others have a usefulness of their own
    return known and (isinstance(measure, AP | Cascade) or (isinstance(measure, Positional) and measure.normaliser != "mean_ideal"))


@dataclass(frozen=True, eq=False)
class MeasureOnGpu:
    """A measure on the grades of some lists, to be asked of scores."""

    measure: Measure
    lists: Lists
    useful: Array  #: one number per document: what it is worth, for positional measures as a share of the normaliser
    discount: Array | None  #: of the ranks that count
    empty: Array | None  #: which queries have nothing useful; None where that needs no looking at
    tie_key: Array | None

    @classmethod
    def of(cls, measure: Measure, lists: Lists, grades: Array, pessimistic: bool = False) -> "MeasureOnGpu":
        """``measure`` on ``grades``, doubles on the device; with ``pessimistic`` ties whatever the measure says."""
        xp = lists.device.xp
        useful = usefulness(measure, lists, grades)
        discount = None
        if isinstance(measure, Discounted):
            discount = discounts(lists.device, measure, min(measure.cutoff, lists.longest))
        empty = ~(lists.largest(useful) > 0) if isinstance(measure, Positional) or measure.empty != 0 else None
        if isinstance(measure, Positional):
            assert discount is not None
            assert empty is not None
            lists.scale(useful, xp.where(empty, 0.0, 1 / xp.where(empty, 1.0, _normaliser(measure, lists, grades, useful, discount))))
        tie_key = grades if pessimistic or measure.ties == "pessimistic" else None
        return cls(measure, lists, useful, discount, empty, tie_key)

    @property
    def cutoff(self) -> np.int32:
        """Of the measure."""
        return np.int32(self.measure.cutoff)

    def values(self, scores: Array, order: Array | None = None, placed: Array | None = None, retrieved: Array | None = None) -> Array:
        """The value of each query, NaN where it is skipped.

        ``placed`` is filled with what exchanges change, where given; to train on, a query that is skipped is worth 0.
        ``retrieved`` comes from `Lists.retrieved`, where a score of -inf says that a document was not.
        """
        lists, xp = self.lists, self.lists.device.xp
        order = lists.order(scores, self.tie_key) if order is None else order
        values = xp.empty(lists.queries)
        rest = retrieved, order, lists.indptr, np.int32(lists.queries), values
        if isinstance(self.measure, AP):
            limit = np.int32(self.measure.norm == "cutoff")
            lists.by_query("average_precision", scores, self.useful, self.cutoff, limit, *rest, placed, real=scores.dtype)
        elif isinstance(self.measure, Cascade):
            lists.by_query("cascade", scores, self.useful, self.discount, self.cutoff, *rest, placed, real=scores.dtype)
        else:
            lists.by_query("discounted_sums", self.useful, self.discount, self.cutoff, *rest, real=scores.dtype)
            if placed is not None:
                where = self.cutoff, order, lists.indptr, np.int32(lists.queries), np.int64(lists.documents)
                lists.by_document("place", scores.dtype, scores, self.useful, self.discount, *where, placed)
        if self.measure.empty == 0 or (placed is not None and self.measure.empty == "skip"):
            return values  # nothing useful adds up to nothing
        return xp.where(self.empty, self.measure.empty_value, values)


def usefulness(measure: Measure, lists: Lists, grades: Array) -> Array:
    """What documents of those grades are worth, for nDCG as a share of what the best grade of the query is."""
    xp = lists.device.xp
    if isinstance(measure, Binary):
        return (grades >= measure.rel).astype(np.float64)
    above = xp.maximum(grades, 0.0)
    if isinstance(measure, ERR):
        highest = float(grades.max())
        if highest > measure.max_grade:
            raise DataError(f"grade {highest:g} exceeds ERR's max_grade={measure.max_grade:g}; use ERR(max_grade={highest:g})")
        return (xp.exp2(above) - 1) / 2**measure.max_grade
    assert isinstance(measure, DCG)
    if measure.gain == "linear":
        return above
    if not isinstance(measure, NDCG):
        return xp.exp2(above) - 1
    best = xp.ones(lists.documents)
    lists.scale(best, lists.largest(above))
    return xp.exp2(above - best) - xp.exp2(-best)


def discounts(device: Device, measure: Discounted, ranks: int) -> Array:
    """The discounts of that many ranks on the device."""
    return _discounts(device, measure, 1 << max(0, ranks - 1).bit_length())


@cache
def _discounts(device: Device, measure: Discounted, ranks: int) -> Array:
    return device.xp.asarray(np.ascontiguousarray(measure.discounts(ranks), np.float64))


def _normaliser(measure: Positional, lists: Lists, grades: Array, useful: Array, discount: Array) -> Array:
    """What the sum over ranks is divided by, one number per query; infinite where a list is too short to count."""
    xp, sizes = lists.device.xp, lists.sizes
    total: Any = xp.ones(lists.queries)
    if measure.normaliser == "length":
        total = xp.minimum(sizes, measure.cutoff).astype(np.float64)
    elif measure.normaliser == "total":
        total = lists.sums(useful)
    elif measure.normaliser == "ideal":
        counts = np.int32(lists.queries)
        lists.by_query(
            "discounted_sums", useful, discount, np.int32(measure.cutoff), None, lists.order(grades), lists.indptr, counts, total
        )
    return xp.where(sizes < measure.cutoff, np.inf, total) if measure.short_is_zero else total
