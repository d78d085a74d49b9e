"""Weaviate: hybrid search with relative score fusion.

    weaviate-relative-score   (s - min) / (max - min) in single precision;  1 where all are equal                 (1)
    score = (1 - alpha) keyword + alpha vector,  with nothing for an object that a search did not return          (2)

There are two systems, the keyword search and then the vector search. Fused scores within 1e-7 of each other are ordered by the score of
one of the searches. A query says how many objects it returns, not how many each search looks at: the limit is the depth.
"""

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank.fusion.engines.base import EngineSettings, SearchEngine, min_max_scores, pretty, single_sum
from exactrank.fusion.lists import ScoreLists


def relative_score(lists: ScoreLists, k: int) -> PerDocument:
    """(1)."""
    single = lists.single
    return min_max_scores(single, single.high, single.high == single.low, np.ones_like(single.high))


def write(settings: EngineSettings) -> str:
    """Write the arguments of a hybrid query."""
    query = settings.parts.get(settings.systems[0], "QUERY")
    return pretty({"hybrid": {"query": query, "alpha": settings.weights[1], "fusionType": "relativeScoreFusion"}, "limit": settings.depth})


WEAVIATE = SearchEngine("weaviate", {"weaviate-relative-score": relative_score}, write, systems=2, combine=single_sum)
