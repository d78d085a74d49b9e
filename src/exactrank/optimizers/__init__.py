"""Optimizers: each is a frozen value that knows nothing of ranking and asks its problem only what its protocol names.

``optimizers.Adam`` and the others are imported when first used. What an optimizer ``asks`` is a protocol; `base.fitting` holds a problem
against it before the first step, and names the optimizers that would do.
"""

from collections.abc import Mapping
from importlib import import_module

#: In which module each optimizer is.
OPTIMIZERS: Mapping[str, str] = {
    "SGD": "sgd",
    "Adam": "adam",
    "LBFGS": "lbfgs",
    "StronglyConvex": "strongly_convex",
    "CoordinateSearch": "coordinate",
    "Powell": "powell",
    "SlopeAndCoordinates": "slope_and_coordinates",
    "StepSearch": "step_search",
    "SPSA": "spsa",
    "FDSA": "fdsa",
    "CuttingPlane": "cutting_plane",
    "Bundle": "bundle",
    "Subgradient": "subgradient",
    "ConcaveConvex": "concave_convex",
    "AdaRank": "ada_rank",
    "RankBoost": "rank_boost",
}


def __getattr__(name: str) -> type:
    if name not in OPTIMIZERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: type = getattr(import_module(f"{__name__}.{OPTIMIZERS[name]}"), name)
    return found
