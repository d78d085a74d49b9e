"""What objectives that look at pairs of documents cost, said before the work begins.

Such an objective has ``pairs``, how many it looks at in one pass over some data, and ``remedy``, what makes them fewer.
"""

import warnings
from typing import ClassVar, Protocol, runtime_checkable

from exactrank.data.ranking_data import RankingData

#: Passes over more pairs than this are announced.
MANY_PAIRS = 2e9
SECONDS_PER_PAIR = 5e-9  #: about, on one thread


@runtime_checkable
class Pairwise(Protocol):
    """An objective whose cost grows faster than the number of documents."""

    remedy: ClassVar[str]  #: what to do where that is too much

    def pairs(self, data: RankingData) -> float:
        """How many pairs of documents one pass looks at."""


class CostWarning(RuntimeWarning):
    """Long queries make training slow."""


def announce_cost(objective: object, data: RankingData) -> None:
    """Warn where one pass of ``objective`` over ``data`` looks at more than `MANY_PAIRS` pairs."""
    if not isinstance(objective, Pairwise):
        return
    pairs = objective.pairs(data)
    if pairs > MANY_PAIRS:
        warnings.warn(
            f"one pass of {type(objective).__name__} looks at {pairs:.1e} pairs of documents, which takes about"
            f" {pairs * SECONDS_PER_PAIR:.0f} s on one thread; the longest query has {data.longest} documents."
            f" To make it faster {objective.remedy}",
            CostWarning,
            stacklevel=3,
        )
