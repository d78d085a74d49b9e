"""Objectives of scores: losses, lambda functions and structured bounds, for `Composed` and for PyTorch."""

from exactrank.learning.objectives.lambdas import FiniteDifference, Lambdas, SampledLambdas
from exactrank.learning.objectives.losses import (
    ApproxNDCGLoss,
    ListMLELoss,
    ListNetLoss,
    PairHinge,
    RankCosineLoss,
    SmoothMeasure,
    SquaredError,
)
from exactrank.learning.objectives.own_lambdas import DocumentForces, PairForces, Pairs, RankedQuery
from exactrank.learning.objectives.score_space import Slopes, slopes
from exactrank.learning.objectives.structured import Separated, Structured, separate

__all__ = [
    "ApproxNDCGLoss",
    "DocumentForces",
    "FiniteDifference",
    "Lambdas",
    "ListMLELoss",
    "ListNetLoss",
    "PairForces",
    "PairHinge",
    "Pairs",
    "RankCosineLoss",
    "RankedQuery",
    "SampledLambdas",
    "Separated",
    "Slopes",
    "SmoothMeasure",
    "SquaredError",
    "Structured",
    "separate",
    "slopes",
]
