"""Coverage of a ranking by judgments, and condensed lists.

The *coverage* of a measure is the mean over queries of `Judged@k`, with the measure's cutoff: the share of judged documents among those
that count. Documents that nobody has judged (`exactrank.measures.unjudged`) count as not relevant, so below a coverage of 80% a mean says
more about the judgments than about the ranking. A *condensed list* (Sakai 2007) leaves them out instead, and those below move up.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument, Rows
from exactrank.data.extra_columns import take_extra_columns
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.judged import Judged
from exactrank.measures.pairwise import Bpref
from exactrank.measures.unjudged import is_unjudged

MeasuredQueries = tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]  #: measures x queries, and numbers of retrieved documents
LEAST_COVERAGE = 0.8


def coverage_measures(measures: Mapping[str, Measure]) -> list[Measure]:
    """Return the measures of coverage, one for each of ``measures``."""
    return [Judged(measure.k, ties=measure.ties if measure.ties == "docid" else "input") for measure in measures.values()]


def coverage_remarks(measures: Mapping[str, Measure], coverage: Mapping[str, float]) -> dict[str, str]:
    """Return a sentence on the measures whose coverage is low, by the first; measures that are made for missing judgments do not count.

    >>> from exactrank.measures import AP, NDCG
    >>> coverage_remarks({"nDCG@10": NDCG(k=10), "AP": AP()}, {"nDCG@10": 0.714, "AP": 0.25})["nDCG@10"]
    "only 71% of the documents that count for nDCG@10 (AP: 25%) are judged, and the others count as not relevant; see unjudged='bounds'"
    """
    shares = {name: f"{100 * coverage[name]:.0f}%" for name, measure in measures.items() if not isinstance(measure, Judged | Bpref)}
    low = [name for name in shares if coverage[name] < LEAST_COVERAGE]
    if not low:
        return {}
    list_of_shares = ", ".join(f"{name}: {shares[name]}" for name in low[1:])
    documents = f"{shares[low[0]]} of the documents that count for {low[0]}" + (f" ({list_of_shares})" if list_of_shares else "")
    return {low[0]: f"only {documents} are judged, and the others count as not relevant; see unjudged='bounds'"}


def judged_part(data: RankingData) -> tuple[RankingData, Rows, Rows]:
    """Return ``data`` without unjudged documents and features, its rows, and the queries that have one."""
    if data.preferences is not None:
        raise DataError("judged_only leaves documents out, and the data has pairs of documents; evaluate without them, or all documents")
    is_judged = ~is_unjudged(data)
    counts = np.add.reduceat(is_judged, data.indptr[:-1], dtype=np.int64)
    queries, rows = np.flatnonzero(counts), np.flatnonzero(is_judged)
    if not len(rows):
        raise DataError("nothing is judged, so judged_only leaves nothing; grades below 0 mean unjudged")
    part = replace(
        data,
        X=np.empty((len(rows), 0), np.float32),
        y=data.y[rows],
        indptr=np.append(0, np.cumsum(counts[queries])),
        qid=data.qid[queries],
        feature_names=(),
        docid=None if data.docid is None else data.docid.take(rows),
        comment=None,
        sample_weight=None,
        query_weight=None if data.query_weight is None else data.query_weight[queries],
        order=None,
        offset=None,
        levels={},
        extra_columns=take_extra_columns(data.extra_columns, rows),
    )
    return part, rows, queries


def condensed_values(
    data: RankingData, scores: PerDocument, values: Callable[[RankingData, PerDocument], MeasuredQueries]
) -> MeasuredQueries:
    """Return ``values`` of condensed lists; NaN for queries without a judged document."""
    part, rows, queries = judged_part(data)
    measured, retrieved = values(part, scores[rows])
    spread = np.full((len(measured), data.n_queries), np.nan)
    spread[:, queries] = measured
    counts = np.zeros((len(measured), data.n_queries), np.int32)
    counts[:, queries] = retrieved
    return spread, counts
