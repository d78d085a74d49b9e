"""Qdrant: a formula over the scores of prefetches, as they are.

    score = sum_j w_j $score[j],  with 0 for a point that prefetch j did not return                               (1)

Qdrant's own fusions cannot be tuned in this way: its reciprocal ranks take weights in another way, w / (rank + (k - 1) w), and its
distribution-based fusion takes none.
"""

from collections.abc import Mapping

from exactrank._support.json_values import JSONValue
from exactrank.fusion.engines.base import EngineSettings, SearchEngine, pretty, raw


def write(settings: EngineSettings) -> str:
    """Write the body of ``POST /collections/NAME/points/query``."""
    prefetch: list[JSONValue] = []
    for name in settings.systems:
        part = settings.part(name, "QUERY")
        prefetch.append({**(part if isinstance(part, Mapping) else {"query": part, "using": name}), "limit": settings.depth})
    terms: list[JSONValue] = [{"mult": [weight, f"$score[{j}]"]} for j, weight in enumerate(settings.weights)]
    defaults: JSONValue = {f"$score[{j}]": 0.0 for j in range(len(settings.systems))}
    return pretty({"prefetch": prefetch, "query": {"formula": {"sum": terms}, "defaults": defaults}, "limit": settings.size})


QDRANT = SearchEngine("qdrant", {"none": raw}, write, signed=True)
