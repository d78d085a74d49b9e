"""Optimizers: frozen values that know nothing of ranking, and use only those methods of a problem that their protocol names.

``optimizers.Adam`` and the others are imported when first used. What an optimizer ``asks`` is a protocol; `base.fitting` checks a problem
against it before the first step, and names the optimizers that would work.
"""

from collections.abc import Mapping

from exactrank._support.registry import lazy_getattr

#: The module of each optimizer.
OPTIMIZERS: Mapping[str, str] = {
    "SGD": "slopes",
    "Adam": "slopes",
    "LBFGS": "slopes",
    "StronglyConvex": "slopes",
    "CoordinateSearch": "coordinate",
    "Powell": "coordinate",
    "SlopeAndCoordinates": "coordinate",
    "StepSearch": "step_search",
    "SPSA": "approximation",
    "FDSA": "approximation",
    "CuttingPlane": "cutting_plane",
    "Bundle": "cutting_plane",
    "Subgradient": "subgradient",
    "ConcaveConvex": "concave_convex",
    "ConcaveConvexBundle": "concave_convex",
    "AdaRankOptimizer": "boosting",
    "RankBoostOptimizer": "boosting",
}
__getattr__ = lazy_getattr(__name__, OPTIMIZERS)
