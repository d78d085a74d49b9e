"""Rankers: scikit-learn estimators, one file a published method.

A ranker is one file and one line in `RANKERS`, which gives it its command ``exactrank train NAME``.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exactrank.rankers.base import Ranker

#: Where each ranker is, by its name on the command line; imported when asked for.
RANKERS: Mapping[str, str] = {
    "directrank": "exactrank.rankers.directrank:DirectRank",
    "coordinate-ascent": "exactrank.rankers.coordinate_ascent:CoordinateAscent",
    "ranknet": "exactrank.rankers.ranknet:RankNet",
    "lambdarank": "exactrank.rankers.lambdarank:LambdaRank",
    "listnet": "exactrank.rankers.listnet:ListNet",
    "listmle": "exactrank.rankers.listmle:ListMLE",
    "rankcosine": "exactrank.rankers.rank_cosine:RankCosine",
    "smoothrank": "exactrank.rankers.smooth_rank:SmoothRank",
    "approxndcg": "exactrank.rankers.approx_ndcg:ApproxNDCG",
    "ridge": "exactrank.rankers.ridge:Ridge",
    "structuredrank": "exactrank.rankers.structured_rank:StructuredRank",
    "svmmap": "exactrank.rankers.svm_map:SVMMAP",
    "ranksvm": "exactrank.rankers.rank_svm:RankSVM",
    "spsarank": "exactrank.rankers.spsarank:SPSARank",
    "mart": "exactrank.rankers.mart:MART",
    "lambdamart": "exactrank.rankers.lambdamart:LambdaMART",
    "directrank-trees": "exactrank.rankers.directrank_trees:DirectRankTrees",
    "adarank": "exactrank.rankers.adarank:AdaRank",
    "rankboost": "exactrank.rankers.rankboost:RankBoost",
}


def find_ranker(name: str) -> "type[Ranker]":
    """The class of the ranker called ``name``."""
    module, _, found = RANKERS[name].partition(":")
    ranker: type[Ranker] = getattr(import_module(module), found)
    return ranker
