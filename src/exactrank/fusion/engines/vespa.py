"""Vespa: ``normalize_linear`` or ``reciprocal_rank`` of each system's rank feature, in the global phase.

All is double precision, over the documents that are reranked, N = ``rerank-count`` at most. With s a rank feature of theirs,

    vespa-linear            0.5 + (s - (max + min) / 2) / (max - min);  0.5 where all are equal                   (1)
    vespa-reciprocal-rank   1 / (k + rank), rank from 1, no two documents sharing one                             (2)

Every document has every rank feature: if a term or the nearest neighbors did not match it, the feature is 0, and enters (1) and (2) as 0.
So a document that a system lacks has score 0 before scores are made comparable. The union of the lists is reranked, at most depth
documents times the number of systems.
"""

import re

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank.errors import IncompatibleError
from exactrank.fusion.engines.base import EngineSettings, SearchEngine
from exactrank.fusion.lists import ScoreLists


def linear(lists: ScoreLists, k: int) -> PerDocument:
    """(1)."""
    varied = lists.high > lists.low
    scale = np.divide(1.0, lists.high - lists.low, out=np.zeros(len(varied)), where=varied)
    middle = np.where(varied, (lists.low + lists.high) * 0.5, 0.0)
    return 0.5 + lists.repeat(scale) * (lists.scores - lists.repeat(middle))


def reciprocal_rank(lists: ScoreLists, k: int) -> PerDocument:
    """(2)."""
    return 1 / (k + lists.places())


def write(settings: EngineSettings) -> str:
    """Write a rank profile."""
    functions = {name: "score_" + re.sub(r"\W", "_", name, flags=re.ASCII) for name in settings.systems}
    if len(set(functions.values())) < len(functions):
        raise IncompatibleError(f"systems {', '.join(settings.systems)} would be functions of the same name in Vespa; rename them")
    normalizer = "normalize_linear({})" if settings.normalize == "vespa-linear" else f"reciprocal_rank({{}}, {settings.k})"
    terms = [f"{weight!r} * {normalizer.format(functions[name])}" for name, weight in zip(settings.systems, settings.weights, strict=True)]
    lines = ["rank-profile hybrid {"]
    for name, function in functions.items():
        lines += [f"    function {function}() {{", f"        expression: {settings.part(name, 'RANK FEATURE')}", "    }"]
    lines += ["    global-phase {", f"        rerank-count: {settings.depth * len(settings.systems)}", "        expression {"]
    lines += ["            " + "\n            + ".join(terms), "        }", "    }", "}"]
    return "\n".join(lines) + "\n"


VESPA = SearchEngine("vespa", {"vespa-linear": linear, "vespa-reciprocal-rank": reciprocal_rank}, write, absent="zero-score", signed=True)
