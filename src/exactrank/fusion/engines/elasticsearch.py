"""Elasticsearch: the ``linear`` retriever (normalizer ``minmax``, ``l2_norm`` or ``none``), and the ``rrf`` retriever with weights.

Scores, weights and sums are single precision. With s the scores of a retriever's first ``rank_window_size`` documents,

    elasticsearch-min-max   (s - min) / (max - min);  min itself where max - min < 1e-6                           (1)
    elasticsearch-l2        s / sqrt(sum s^2);        s itself where the root is below 1e-6                       (2)
    none                    s
    elasticsearch-rrf       1 / (rank_constant + rank), rank from 1, no two documents sharing one                 (3)

Where all scores of a list are equal, versions differ: some give 1 instead of (1)'s min. The maximum in (1) is always positive.
A document that a retriever did not return gets nothing from it. Weights are not negative.
"""

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.json_values import JSONValue
from exactrank.fusion.engines.base import LEAST, EngineSettings, SearchEngine, min_max_scores, pretty, raw, single_sum
from exactrank.fusion.lists import ScoreLists

EPSILON = np.float32(1e-6)
NORMALIZERS = {"elasticsearch-min-max": "minmax", "elasticsearch-l2": "l2_norm", "none": "none"}


def min_max(lists: ScoreLists, k: int) -> PerDocument:
    """(1)."""
    single = lists.single
    high = np.maximum(single.high, LEAST)
    return min_max_scores(single, high, high - single.low < EPSILON, single.low)


def l2(lists: ScoreLists, k: int) -> PerDocument:
    """(2)."""
    single = lists.single
    norm = np.sqrt(np.add.reduceat((single.scores * single.scores).astype(np.float64), lists.starts))
    return (single.scores / lists.repeat(np.where(norm < EPSILON, 1.0, norm))).astype(np.float32)


def reciprocal_rank(lists: ScoreLists, k: int) -> PerDocument:
    """(3)."""
    return (1 / (k + lists.places())).astype(np.float32)


def _retrievers(settings: EngineSettings, **options: str) -> list[JSONValue]:
    pairs = zip(settings.systems, settings.weights, strict=True)
    return [{"retriever": settings.part(name, "RETRIEVER"), "weight": weight} | options for name, weight in pairs]


def write_linear(settings: EngineSettings) -> str:
    """Write the body of a search."""
    retrievers = _retrievers(settings, normalizer=NORMALIZERS[settings.normalize])
    return pretty({"size": settings.size, "retriever": {"linear": {"retrievers": retrievers, "rank_window_size": settings.depth}}})


def write_rrf(settings: EngineSettings) -> str:
    """Write the body of a search."""
    rrf: JSONValue = {"retrievers": _retrievers(settings), "rank_constant": settings.k, "rank_window_size": settings.depth}
    return pretty({"size": settings.size, "retriever": {"rrf": rrf}})


LINEAR = SearchEngine(
    "elasticsearch", {"elasticsearch-min-max": min_max, "elasticsearch-l2": l2, "none": raw}, write_linear, combine=single_sum
)
RRF = SearchEngine("elasticsearch-rrf", {"elasticsearch-rrf": reciprocal_rank}, write_rrf, combine=single_sum)
