"""Ties when a measure selects: iterates, numbers of trees, settings, or models.

A measure is reported with the ties that were requested. But a model that scores many documents equally must not be selected because the
order of the rows, or of the document ids, happens to be good. So every selection counts tied documents in their worst order, unless the
measure averages over all their orders. Training, comparisons and tuning share this rule.
"""

from dataclasses import replace

from exactrank.measures.base import Measure


def worst_tie_order(measure: Measure) -> Measure:
    """Return ``measure`` with tied documents in their worst order, or as it is if it has ``ties='expected'``.

    >>> from exactrank.measures import NDCG
    >>> [worst_tie_order(NDCG(ties=ties)).ties for ties in ("input", "docid", "pessimistic", "expected")]
    ['pessimistic', 'pessimistic', 'pessimistic', 'expected']
    """
    return measure if measure.ties == "expected" else replace(measure, ties="pessimistic")
