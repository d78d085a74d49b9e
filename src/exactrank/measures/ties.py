"""Ties when a measure selects (iterates, numbers of trees, settings, or models), and what their order may do to a reported value.

A measure is reported with the ties that were requested. But a model that scores many documents equally must not be selected because the
order of the rows, or of the document ids, happens to be good. So every selection counts tied documents in their worst order, unless the
measure averages over all their orders. Training, comparisons and tuning share this rule.

The order of rows or ids says nothing about a ranking. So a value that depends on it is reported with the smallest and the largest one that
tied documents can give, which are those of their worst and their best order.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from exactrank.measures.base import Measure, Ties
from exactrank.measures.bound import BoundMeasure

#: Orders of tied documents that say nothing about the ranking.
ARBITRARY: tuple[Ties, ...] = ("input", "docid")
#: A range is worth a remark if it is at least this share of its larger end.
NOTABLE_RANGE = 0.005


def worst_tie_order(measure: Measure) -> Measure:
    """Return ``measure`` with tied documents in their worst order, or as it is if it has ``ties='expected'``.

    >>> from exactrank.measures import NDCG
    >>> [worst_tie_order(NDCG(ties=ties)).ties for ties in ("input", "docid", "pessimistic", "expected")]
    ['pessimistic', 'pessimistic', 'pessimistic', 'expected']
    """
    return measure if measure.ties == "expected" else replace(measure, ties="pessimistic")


def worst_order_of(bound: BoundMeasure) -> BoundMeasure:
    """Return ``bound`` with documents that tie in an arbitrary order in their worst one."""
    return replace(bound, tie_key=bound.measure.worst_first(bound.data)) if bound.measure.ties in ARBITRARY else bound


def best_order_of(bound: BoundMeasure) -> BoundMeasure:
    """Return ``bound`` with documents that tie in an arbitrary order in their best one."""
    return replace(bound, tie_key=-bound.measure.worst_first(bound.data)) if bound.measure.ties in ARBITRARY else bound


#: The order of tied documents as requested, their worst and their best one.
TIE_ORDERS: tuple[Callable[[BoundMeasure], BoundMeasure] | None, ...] = (None, worst_order_of, best_order_of)


def tie_remarks(means: Mapping[str, float], ranges: Mapping[str, tuple[float, float]], measures: Mapping[str, Measure]) -> dict[str, str]:
    """Return a sentence on each mean that the order of tied documents moves by a notable share.

    >>> from exactrank.measures import NDCG
    >>> remarks = tie_remarks({"nDCG@10": 0.6}, {"nDCG@10": (0.2, 0.7)}, {"nDCG@10": NDCG(k=10)})
    >>> print(*remarks["nDCG@10"].split("; "), sep=";\\n")
    nDCG@10: documents of different grades have equal scores, and their order can move the mean, 0.6000, between 0.2000 and 0.7000;
    nDCG(ties='expected')@10 is the mean over all their orders
    """
    return {
        name: f"{name}: documents of different grades have equal scores, and their order can move the mean, {means[name]:.4f}, between"
        f" {low:.4f} and {high:.4f}; {replace(measures[name], ties='expected')} is the mean over all their orders"
        for name, (low, high) in ranges.items()
        if high - low >= NOTABLE_RANGE * high
    }
