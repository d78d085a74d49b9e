"""Objectives: what is maximised, as functions of scores, of parameters, or along lines.

``objectives.ListNet`` and the other objectives of scores (`score_space`) are imported when first used.
"""

from exactrank.registry import imported_late

#: In which module each objective of scores is.
OBJECTIVES = {
    **dict.fromkeys(("Lambdas", "SampledLambdas", "FiniteDifference"), "lambdas"),
    **dict.fromkeys(("PairForces", "DocumentForces"), "own_lambdas"),
    **dict.fromkeys(("ListNet", "ListMLE", "RankCosine", "SmoothMeasure", "ApproxNDCG", "SquaredError", "PairHinge"), "losses"),
}
__getattr__ = imported_late(__name__, OBJECTIVES)
