"""Squared error on the grades, for trees.

    value = -1/2 sum_i r_i^2,    r_i = y_i - mean - s_i,    mean that of all grades                              (1)
    r_i <- r_i - (mean of r over the query of i)                                                               (2)

A constant added to all scores changes no ranking; the mean of the grades is taken off so that scores may start at 0. Nor does a
constant added to the scores of one query: (2) leaves it free, so that no tree is spent on telling queries apart.
"""

from dataclasses import dataclass

import numpy as np

from exactrank import _core
from exactrank.data.ranking_data import RankingData


@dataclass(frozen=True)
class SquaredError:
    """(1), or ``within`` queries (2); its curvature is 1."""

    within: bool = False

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""
        return _core.squared_error(np.ascontiguousarray(data.y - data.y.mean()), self.within)
