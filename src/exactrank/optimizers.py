"""Optimizers, each of which says what it asks of a problem; `Composed` joins them with an objective."""

from exactrank.learning.optimizers.approximation import FDSA, SPSA
from exactrank.learning.optimizers.boosting import AdaRankOptimizer, RankBoostOptimizer
from exactrank.learning.optimizers.concave_convex import ConcaveConvex, ConcaveConvexBundle
from exactrank.learning.optimizers.coordinate import CoordinateSearch, Powell, SlopeAndCoordinates
from exactrank.learning.optimizers.cutting_plane import Bundle, CuttingPlane
from exactrank.learning.optimizers.slopes import LBFGS, SGD, Adam, StronglyConvex
from exactrank.learning.optimizers.step_search import StepSearch
from exactrank.learning.optimizers.subgradient import Subgradient

__all__ = [
    "FDSA",
    "LBFGS",
    "SGD",
    "SPSA",
    "AdaRankOptimizer",
    "Adam",
    "Bundle",
    "ConcaveConvex",
    "ConcaveConvexBundle",
    "CoordinateSearch",
    "CuttingPlane",
    "Powell",
    "RankBoostOptimizer",
    "SlopeAndCoordinates",
    "StepSearch",
    "StronglyConvex",
    "Subgradient",
]
