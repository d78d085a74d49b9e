"""Bounds of measures where judgments are missing: unjudged is not 0.

A grade below 0 (-1 in TREC files and in `er.from_trec`) means that nobody has judged the document. Without being asked, such documents
gain nothing, like those of grade 0. But their true grades y_i can be any numbers from 0 to g, the highest grade, so a measure f of a query
lies between

    lower = min f(y),   upper = max f(y)    over all grades y_i in [0, g] of the unjudged documents i            (1)

and so do its mean over queries, where each query has its own documents, and the difference of two rankings by the same grades. Judging a
document restricts (1), so bounds only shrink. If judged grades are whole, the extremes are at whole grades: it does not matter whether
grades are whole numbers or any between.

**Sums.** DCG, P, RBP and totals are sum_r u_r d_r with u_r between u(0) and u(g), so the extremes have all unjudged documents at one
end. For the difference of two rankings each document has the sign of its own coefficient. RBP's upper minus lower is its residual (Moffat
& Zobel 2008) for the documents of the list.

**Cascades.** RR, Success and ERR do not fall if a document becomes more useful: with c_r falling, d/du_i = P_{i-1} (c_i - later), and
what comes later is a mean of smaller c_r. So the extremes again have all documents at one end. The difference of two RR is largest if only
one unjudged document, or none, is relevant: the first relevant one of the better ranking. Others could only help the other ranking. (2)

**Ratios.** nDCG and R, and their differences, are

    f = sum_i c_i u_i / I(u),    I(u) = sum_j d_j u_(j),   u_(1) >= u_(2) >= ... all documents of the query           (3)

where c_i is the discount of the document's rank, or the difference of its discounts in two rankings; for R all d_j are 1. With levels
v_1 < v_2 < ... of usefulness above v_0 = u(0), namely those of the judged documents and u(g), and with n_l documents that are judged at
least v_l,

    I = v_0 S(n) + sum_l (v_l - v_{l-1}) S(n_l + m_l),    S(m) = d_1 + ... + d_m                                     (4)

if m_l unjudged documents are worth at least v_l. Given all m_l, the numerator is largest if these are the ones with the largest c_i, since
exchanging two unjudged documents leaves I alone. It is the same sum with U(m), the sum of the m largest c_i, in place of S.

I is convex, being the largest sum of any order. If the numerator is nowhere positive, {f >= t} with t < 0 is the complement of a convex
set, so the maximum is at a corner of the box: all documents at v_0 or at u(g), one m for all levels. (5)

Otherwise {f >= t} is convex for t >= 0, and the maximum need not be at a corner: of three documents of which the first and the third have
grade 1, the second one is best at grade 1. Where the order of the documents is fixed, f is a ratio of linear functions, whose extremes are
at corners of that region, where each u_i equals a level. The maximum is the t at which

    max_m sum_l (v_l - v_{l-1}) (U_l + U(m_l) - t S(n_l + m_l)) = 0,    U_l the sum of c_i over the n_l documents          (6)

and each m_l can be chosen by itself, because n_l falls in l, so that the best m_l does too; Dinkelbach's iteration (1967) raises t until
it stays. The minimum of f is minus the maximum of -f, so the lower bound of nDCG is at a corner by (5): documents that are not in the list
or stand at its end are at g, the others at 0. (7)

**Average precision** is largest, among all ways to have m relevant unjudged documents, if these are the first m, and smallest for the last
m, since moving a relevant document up never lowers it; so each m is tried. (8)

Queries that have nothing relevant by their judged documents may or may not be empty: if unjudged documents can be worth nothing, the
measure's value for empty queries is among those of (1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument, PerQuery
from exactrank._support.threads import thread_count
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError, MeasureError
from exactrank.measures.base import Measure
from exactrank.measures.binary import AP, RR, Success
from exactrank.measures.families import Cascade, Discounted, Positional
from exactrank.measures.graded import DCG
from exactrank.measures.judged import Judged

Side = Literal["lower", "upper"]
BOUNDED = "DCG, nDCG, P, R, RBP, RR, AP, Success, ERR, Total and Judged"
COMPARED = "DCG, nDCG, P, R, RBP, RR, Success and Total"


def is_unjudged(data: RankingData) -> npt.NDArray[np.bool_]:
    """Return a mask of the documents that nobody has judged."""
    return np.asarray(data.y < 0)


def highest_grade(data: RankingData, highest: float | None) -> float:
    """Return g of (1): ``highest``, or the largest grade of the data."""
    largest = float(data.y.max())
    if highest is None:
        if largest <= 0:
            what = "nothing is judged" if largest < 0 else "no judged document is relevant"
            raise DataError(f"{what}, so the data does not say how high grades can be; give highest_grade, e.g. 3")
        return largest
    if isinstance(highest, bool) or not isinstance(highest, int | float | np.integer) or not max(largest, 0.0) <= highest < np.inf:
        raise DataError(f"highest_grade={highest!r}: expected a number of at least {max(largest, 0.0):g}, the largest grade of the data")
    return float(highest)


@dataclass(frozen=True, repr=False)
class UnjudgedBound(Measure):
    """The smallest or the largest value (1) of a measure, as a measure of the same data."""

    of: Measure | None = None
    side: Side = "lower"
    highest: float = 0.0  #: g

    has_cutoff: ClassVar[bool] = True

    @classmethod
    def pair(cls, measure: Measure, highest: float) -> "tuple[UnjudgedBound, UnjudgedBound]":
        """Return both bounds of ``measure``; raise unless they are known exactly."""
        check_bounds_exist(measure)
        lower, upper = (cls(measure.k, measure.empty, measure.ties, None, measure, side, highest) for side in ("lower", "upper"))
        return lower, upper

    @property
    def measure(self) -> Measure:
        """The measure whose bound this is."""
        assert self.of is not None
        return self.of

    def kernel(self, y: PerDocument, longest: int) -> tuple[_core.Kernel, PerDocument]:
        measure, unjudged, is_upper = self.measure, y < 0, self.side == "upper"
        if isinstance(measure, Judged):
            return measure.kernel(y, longest)
        if isinstance(measure, Cascade) or _is_sum(measure):
            worst, best = grade_ends(measure, self.highest)
            return measure.kernel(np.where(unjudged, best if is_upper else worst, y), longest)
        useful, low, high = usefulness_range(measure, y, self.highest)
        if isinstance(measure, AP):
            kernel = _core.precision_bound(low, high, is_upper, measure.cutoff, measure.norm == "cutoff", measure.empty_value)
            return kernel, useful
        assert isinstance(measure, Positional)
        ranks, is_ideal = min(measure.cutoff, longest), measure.normalizer == "ideal"
        discounts = falling_discounts(measure, ranks)
        short = measure.short_is_zero
        return _core.ratio_bound(low, high, is_upper, discounts, measure.cutoff, is_ideal, short, measure.empty_value), useful

    def _kernel_on(self, data: RankingData) -> tuple[_core.Kernel, PerDocument]:
        check_empty(self.measure, data, self.highest)
        return super()._kernel_on(data)

    def swap_deltas(self, y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Refuse: an exchange may change the grades at which the bound is reached."""
        raise MeasureError(f"{self} has no swap deltas; use those of {self.measure}")

    def __repr__(self) -> str:
        return f"{self.side} bound of {self.measure!r} for grades up to {self.highest:g}"

    def __str__(self) -> str:
        return f"{self.side} bound of {self.measure}"


def _is_sum(measure: Measure) -> bool:
    return isinstance(measure, Positional) and measure.normalizer in ("one", "length")


def check_bounds_exist(measure: Measure) -> None:
    """Raise unless there is an exact algorithm for the bounds of ``measure``."""
    is_ratio = isinstance(measure, Positional) and measure.normalizer in ("ideal", "total")
    if not (isinstance(measure, AP | Cascade | Judged) or _is_sum(measure) or is_ratio):
        raise MeasureError(f"{measure}: its bounds over unknown grades have no exact algorithm; there is one for {BOUNDED}")
    if measure.ties not in ("input", "docid"):
        raise MeasureError(
            f"{measure}: with ties={measure.ties!r} the order of tied documents depends on unknown grades; give ties='input'"
        )
    if measure.column is not None:
        raise MeasureError(f"{measure} reads the column {measure.column!r}, on which judgments have no effect; leave it out of the bounds")
    if isinstance(measure, Discounted) and not isinstance(measure, Judged):
        falling_discounts(measure, 64, may_rise=_is_sum(measure))


def falling_discounts(measure: Discounted, ranks: int, *, may_rise: bool = False) -> PerDocument:
    """Return the discounts of ``ranks``; raise if one is negative or, unless it ``may_rise``, larger than the one before."""
    discounts = np.ascontiguousarray(measure.discounts(ranks), np.float64)
    if np.any(discounts < 0) or (not may_rise and np.any(np.diff(discounts) > 0)):
        rule = "be negative" if may_rise else "be negative or rise"
        raise MeasureError(f"{measure}: bounds over unknown grades need discounts that do not {rule}")
    return discounts


def grade_ends(measure: Measure, highest: float) -> tuple[float, float]:
    """Return the grades up to ``highest`` of the smallest and of the largest usefulness."""
    if isinstance(measure, DCG) and not isinstance(measure.gain, str):
        choices = [(gain, grade) for grade, gain in dict(measure.gain).items() if 0 <= grade <= highest]
        if not choices:
            raise MeasureError(f"{measure}: the gain table has no grade from 0 to {highest:g}; add them")
        return min(choices)[1], max(choices)[1]
    return 0.0, highest


def usefulness_range(measure: Measure, y: PerDocument, highest: float) -> tuple[PerDocument, float, float]:
    """Return the usefulness of each document, -1 if it is unjudged, and the ends of what that may be."""
    assert isinstance(measure, AP | Discounted)
    worst, best = grade_ends(measure, highest)
    unjudged = y < 0
    low, high = (float(u) for u in measure.usefulness(np.array([worst, best])))
    useful = measure.usefulness(np.where(unjudged, worst, y))
    if not (low >= 0 and useful.min() >= low and useful.max() <= high < np.inf):
        raise MeasureError(f"{measure}: bounds over unknown grades need gains that are finite, at least 0, and rise with the grade")
    return np.ascontiguousarray(np.where(unjudged, -1.0, useful)), low, high


def check_empty(measure: Measure, data: RankingData, highest: float) -> None:
    """Raise if unknown grades decide whether a query is empty, and so whether it counts, or has a value of its own."""
    if measure.empty == 0 or isinstance(measure, Judged):
        return
    if measure.empty == 1 and not isinstance(measure, Cascade) and not _is_sum(measure):
        return  # their kernels know
    useful, low, high = usefulness_range(measure, data.y, highest)
    judged, unjudged = np.add.reduceat(useful > 0, data.indptr[:-1]), np.add.reduceat(useful < 0, data.indptr[:-1])
    undecided = np.flatnonzero((judged == 0) & (unjudged > 0) & (low <= 0 < high))
    if len(undecided):
        raise DataError(
            f"{measure}: whether query {str(data.qid[undecided[0]])!r} has anything relevant depends on documents that nobody has judged; "
            "give empty=0 for bounds"
        )


def check_differences_exist(measure: Measure, data: RankingData, highest: float) -> None:
    """Raise unless there is an exact algorithm for the bounds of the difference of two rankings of ``data``."""
    if isinstance(measure, AP | Judged) or (isinstance(measure, Cascade) and not isinstance(measure, RR | Success)):
        raise MeasureError(f"{measure}: bounds of the difference of two rankings have no exact algorithm; there is one for {COMPARED}")
    check_bounds_exist(measure)
    check_empty(measure, data, highest)
    assert isinstance(measure, Discounted)
    falling_discounts(measure, min(measure.cutoff, data.longest), may_rise=_is_sum(measure))


def difference_bounds(
    measure: Measure, data: RankingData, first: PerDocument, second: PerDocument, highest: float, threads: int | None = None
) -> tuple[PerQuery, PerQuery]:
    """Return the smallest and the largest difference of two rankings of the same documents by each query's measure, (1).

    Scores are in the order of the documents. Both rankings have the same unknown grades, so the bounds are narrower than the difference of
    the bounds of each.
    """
    check_differences_exist(measure, data, highest)
    assert isinstance(measure, Discounted)
    d1, d2 = discounts_by_document(measure, data, [first, second], threads)
    return bounds_of_discounts(measure, data, d1, d2, highest, threads)


def discounts_by_document(
    measure: Discounted, data: RankingData, rankings: Sequence[PerDocument], threads: int | None = None
) -> list[PerDocument]:
    """Return, for each of the rankings, the discount of each document's rank; 0 beyond the cutoff, and if it was not retrieved."""
    ranks, is_docid = min(measure.cutoff, data.longest), measure.ties == "docid"
    if is_docid and data.docid is None:
        raise IncompatibleError(f"{measure}: ties='docid' needs document ids, and there are none")
    tie_key = data.docid.places_from_last if is_docid and data.docid is not None else None
    discounts = np.ascontiguousarray(measure.discounts(ranks), np.float64)
    compared = [scores.astype(np.float32).astype(np.float64) if is_docid else np.ascontiguousarray(scores) for scores in rankings]
    return [_core.discounts_of_documents(scores, data.indptr, tie_key, discounts, ranks, thread_count(threads)) for scores in compared]


def bounds_of_discounts(
    measure: Discounted, data: RankingData, first: PerDocument, second: PerDocument, highest: float, threads: int | None = None
) -> tuple[PerQuery, PerQuery]:
    """Return `difference_bounds` of two rankings whose documents have these discounts."""
    useful, low, high = usefulness_range(measure, data.y, highest)
    starts, sizes = data.indptr[:-1], np.diff(data.indptr)
    if isinstance(measure, Cascade):
        bounds = _first_relevant(useful, first, second, data, low, high)
    elif _is_sum(measure):
        c = first - second
        assert isinstance(measure, Positional)
        total = np.minimum(measure.cutoff, sizes) if measure.normalizer == "length" else 1.0
        judged = c * useful
        smallest, largest = np.minimum(c * low, c * high), np.maximum(c * low, c * high)
        lower, upper = (np.add.reduceat(np.where(useful < 0, ends, judged), starts) / total for ends in (smallest, largest))
        bounds = lower, upper
    else:
        assert isinstance(measure, Positional)
        ranks = min(measure.cutoff, data.longest)
        ideal = np.ascontiguousarray(measure.discounts(ranks), np.float64) if measure.normalizer == "ideal" else None
        cutoff = ranks if ideal is not None else int(np.iinfo(np.int32).max)
        c = np.ascontiguousarray(first - second)
        bounds = _core.ratio_extremes(c, useful, data.indptr, low, high, ideal, cutoff, thread_count(threads))
        if measure.short_is_zero:
            bounds = tuple(np.where(sizes < measure.cutoff, 0.0, ends) for ends in bounds)  # type: ignore[assignment]
    if measure.empty == "skip":
        is_empty = np.maximum.reduceat(np.where(useful < 0, high, useful), starts) <= 0
        bounds = np.where(is_empty, np.nan, bounds[0]), np.where(is_empty, np.nan, bounds[1])
    return bounds


def _first_relevant(
    useful: PerDocument, first: PerDocument, second: PerDocument, data: RankingData, low: float, high: float
) -> tuple[PerQuery, PerQuery]:
    """Return (2): the extremes of the difference of the largest discounts of relevant documents."""
    starts, sizes = data.indptr[:-1], np.diff(data.indptr)
    is_relevant = (useful > 0) | ((useful < 0) & (low > 0))
    best = [np.maximum.reduceat(np.where(is_relevant, discount, 0.0), starts) for discount in (first, second)]
    without = best[0] - best[1]
    if high <= 0 or low > 0:
        return without, without
    ours, theirs = (np.maximum(discount, np.repeat(value, sizes)) for discount, value in zip((first, second), best, strict=True))
    change = np.where(useful < 0, ours - theirs, np.repeat(without, sizes))
    return np.minimum.reduceat(change, starts), np.maximum.reduceat(change, starts)
