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
from exactrank._support.json_values import JSONValue
from exactrank.fusion.engines.base import LEAST, EngineSettings, SearchEngine, Weights, min_max_scores, pretty, single_sum
from exactrank.fusion.lists import ScoreLists, side_by_side

MIN_SCORE = np.float32(0.001)
TECHNIQUES = {"opensearch-min-max": "min_max", "opensearch-l2": "l2", "opensearch-z-score": "z_score"}


def min_max(lists: ScoreLists, k: int) -> PerDocument:
    """(1)."""
    single = lists.single
    high = np.maximum(single.high, LEAST)
    scores = min_max_scores(single, high, high == single.low, np.ones_like(high))
    return np.where(scores == 0, MIN_SCORE, scores)


def l2(lists: ScoreLists, k: int) -> PerDocument:
    """(2)."""
    single, norm = lists.single, np.empty(len(lists.sizes), np.float32)
    for numbers, rows, is_real in side_by_side(lists.starts, lists.sizes):
        falling = np.sort(np.where(is_real, -single.scores[rows], np.float32(np.inf)), axis=1)
        norm[numbers] = np.sqrt(np.cumsum(np.square(np.where(np.isinf(falling), np.float32(0), falling)), axis=1)[:, -1])
    return single.scores / lists.repeat(np.where(norm == 0, np.float32(np.inf), norm))


def z_score(lists: ScoreLists, k: int) -> PerDocument:
    """(3)."""
    single = lists.single
    double = single.scores.astype(np.float64)
    mean = lists.mean(double)
    spread = np.sqrt(np.add.reduceat((double - lists.repeat(mean)) ** 2, lists.starts) / np.maximum(lists.sizes - 1, 1))
    low, high, middle, std = (lists.repeat(values.astype(np.float32)) for values in (single.low, single.high, mean, spread))
    z = (single.scores - middle) / np.where(std == 0, np.float32(1), std)
    return np.where(single.scores == middle, high, np.where(std == 0, low, np.where(z <= 0, MIN_SCORE, z)))


def reciprocal_rank(lists: ScoreLists, k: int) -> PerDocument:
    """(4)."""
    return (np.floor(1e10 / (k + lists.places()) + 0.5) / 1e10).astype(np.float32)


def mean(weights: Weights, values: npt.NDArray[np.float64]) -> PerDocument:
    """Return the weighted arithmetic mean in single precision."""
    total = np.float32(0)
    for weight in weights.astype(np.float32):
        total += weight
    return (single_sum(weights, values).astype(np.float32) / total).astype(np.float64)


def _write(settings: EngineSettings, processor: str, processor_settings: JSONValue) -> str:
    """Write the body of a search, with its pipeline."""
    queries = [settings.part(name, "QUERY") for name in settings.systems]
    query: JSONValue = {"hybrid": {"queries": queries, "pagination_depth": settings.depth}}
    return pretty(
        {"size": settings.size, "query": query, "search_pipeline": {"phase_results_processors": [{processor: processor_settings}]}}
    )


def write_normalization(settings: EngineSettings) -> str:
    """Write a search with the normalization processor."""
    combination: JSONValue = {"technique": "arithmetic_mean", "parameters": {"weights": list(settings.weights)}}
    return _write(
        settings, "normalization-processor", {"normalization": {"technique": TECHNIQUES[settings.normalize]}, "combination": combination}
    )


def write_rrf(settings: EngineSettings) -> str:
    """Write a search with the score ranker processor."""
    combination: JSONValue = {"technique": "rrf", "rank_constant": settings.k, "parameters": {"weights": list(settings.weights)}}
    return _write(settings, "score-ranker-processor", {"combination": combination})


NORMALIZATION = SearchEngine(
    "opensearch", {"opensearch-min-max": min_max, "opensearch-l2": l2, "opensearch-z-score": z_score}, write_normalization, combine=mean
)
RRF = SearchEngine("opensearch-rrf", {"opensearch-rrf": reciprocal_rank}, write_rrf, combine=single_sum)
