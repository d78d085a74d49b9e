"""Qdrant: a formula over the scores of prefetches, as they are.

    score = sum_j w_j $score[j],  with 0 for a point that prefetch j did not return                               (1)

Qdrant's own fusions cannot be tuned so: its reciprocal ranks take weights in another way, w / (rank + (k - 1) w), and its
distribution-based fusion takes none.
"""

from exactrank.fusion.engines.base import SearchEngine, Settings, pretty, raw


def write(given: Settings) -> str:
    """The body of ``POST /collections/NAME/points/query``."""
    prefetch = []
    for name in given.systems:
        part = given.part(name, "QUERY")
        prefetch.append((part if isinstance(part, dict) else {"query": part, "using": name}) | {"limit": given.depth})
    terms = [{"mult": [weight, f"$score[{j}]"]} for j, weight in enumerate(given.weights)]
    defaults = {f"$score[{j}]": 0.0 for j in range(len(given.systems))}
    return pretty({"prefetch": prefetch, "query": {"formula": {"sum": terms}, "defaults": defaults}, "limit": given.size})


QDRANT = SearchEngine("qdrant", {"none": raw}, write, signed=True)
