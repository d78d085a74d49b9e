"""Objectives: what is to be made large, as functions of scores, of parameters, or along lines.

``objectives.ListNet`` and the other objectives of scores (`score_space`) are imported when first used.
"""

from collections.abc import Mapping
from importlib import import_module

#: In which module each objective of scores is.
OBJECTIVES: Mapping[str, str] = {
    "Lambdas": "lambdas",
    "SampledLambdas": "sampled_lambdas",
    "FiniteDifference": "finite_difference",
    "PairForces": "own_lambdas",
    "DocumentForces": "own_lambdas",
    "ListNet": "listnet",
    "ListMLE": "listmle",
    "RankCosine": "rank_cosine",
    "SmoothMeasure": "smooth_measure",
    "ApproxNDCG": "approx_ndcg",
    "SquaredError": "squared_error",
    "PairHinge": "pair_hinge",
}


def __getattr__(name: str) -> type:
    if name not in OBJECTIVES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: type = getattr(import_module(f"{__name__}.{OBJECTIVES[name]}"), name)
    return found
