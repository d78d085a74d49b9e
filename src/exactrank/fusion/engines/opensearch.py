"""OpenSearch: the ``normalization-processor`` (``min_max``, ``l2`` or ``z_score``) and the ``score-ranker-processor`` of a hybrid query.

Scores, weights and sums are single precision. With s the scores of a sub-query's first ``pagination_depth`` documents,

    opensearch-min-max   (s - min) / (max - min), but 0.001 where that is 0;  1 where all are equal               (1)
    opensearch-l2        s / sqrt(sum s^2),  the sum in the order of the list;  0 where it is 0                   (2)
    opensearch-z-score   z = (s - mean) / std, the std of a sample (n - 1), but 0.001 where z <= 0;               (3)
                         the largest score, as it is, where s is the mean, so also where all are equal
    opensearch-rrf       1 / (rank_constant + rank), rank from 1, no two documents sharing one, to ten decimals   (4)

They are combined by the weighted arithmetic mean, with 0 for a document that a sub-query did not return. Weights are not negative and
add up to 1; OpenSearch reads them only if they are written as decimals.
"""

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument
from exactrank.fusion.engines.base import LEAST, SearchEngine, Settings, Weights, pretty, scaled, single_sum
from exactrank.fusion.lists import ScoreLists, side_by_side

MIN_SCORE = np.float32(0.001)
TECHNIQUES = {"opensearch-min-max": "min_max", "opensearch-l2": "l2", "opensearch-z-score": "z_score"}


def min_max(lists: ScoreLists, k: int) -> PerDocument:
    """(1)."""
    single = lists.single
    high = np.maximum(single.high, LEAST)
    found = scaled(single, high, high == single.low, np.ones_like(high))
    return np.where(found == 0, MIN_SCORE, found)


def l2(lists: ScoreLists, k: int) -> PerDocument:
    """(2)."""
    single, norm = lists.single, np.empty(len(lists.sizes), np.float32)
    for some, at, real in side_by_side(lists.starts, lists.sizes):
        falling = np.sort(np.where(real, -single.scores[at], np.float32(np.inf)), axis=1)
        norm[some] = np.sqrt(np.cumsum(np.square(np.where(np.isinf(falling), np.float32(0), falling)), axis=1)[:, -1])
    return single.scores / lists.each(np.where(norm == 0, np.float32(np.inf), norm))


def z_score(lists: ScoreLists, k: int) -> PerDocument:
    """(3)."""
    single = lists.single
    double = single.scores.astype(np.float64)
    mean = lists.mean(double)
    spread = np.sqrt(np.add.reduceat((double - lists.each(mean)) ** 2, lists.starts) / np.maximum(lists.sizes - 1, 1))
    low, high, middle, std = (lists.each(each.astype(np.float32)) for each in (single.low, single.high, mean, spread))
    z = (single.scores - middle) / np.where(std == 0, np.float32(1), std)
    return np.where(single.scores == middle, high, np.where(std == 0, low, np.where(z <= 0, MIN_SCORE, z)))


def reciprocal_rank(lists: ScoreLists, k: int) -> PerDocument:
    """(4)."""
    return (np.floor(1e10 / (k + lists.places()) + 0.5) / 1e10).astype(np.float32)


def mean(weights: Weights, values: npt.NDArray[np.float64]) -> PerDocument:
    """The weighted arithmetic mean in single precision."""
    total = np.float32(0)
    for weight in weights.astype(np.float32):
        total += weight
    return (single_sum(weights, values).astype(np.float32) / total).astype(np.float64)


def _write(given: Settings, processor: str, settings: dict[str, object]) -> str:
    """The body of a search, with its pipeline."""
    queries = [given.part(name, "QUERY") for name in given.systems]
    query = {"hybrid": {"queries": queries, "pagination_depth": given.depth}}
    return pretty({"size": given.size, "query": query, "search_pipeline": {"phase_results_processors": [{processor: settings}]}})


def write_normalization(given: Settings) -> str:
    """With the normalization processor."""
    combination = {"technique": "arithmetic_mean", "parameters": {"weights": list(given.weights)}}
    return _write(
        given, "normalization-processor", {"normalization": {"technique": TECHNIQUES[given.normalize]}, "combination": combination}
    )


def write_rrf(given: Settings) -> str:
    """With the score ranker processor."""
    combination = {"technique": "rrf", "rank_constant": given.k, "parameters": {"weights": list(given.weights)}}
    return _write(given, "score-ranker-processor", {"combination": combination})


NORMALIZATION = SearchEngine(
    "opensearch", {"opensearch-min-max": min_max, "opensearch-l2": l2, "opensearch-z-score": z_score}, write_normalization, combine=mean
)
RRF = SearchEngine("opensearch-rrf", {"opensearch-rrf": reciprocal_rank}, write_rrf, combine=single_sum)
