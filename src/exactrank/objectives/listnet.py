"""ListNet: cross entropy of top-one chances (Cao, Qin, Liu, Tsai & Li 2007).

Scores say how likely each document is to be drawn first, and so do grades; the scores' chances should be the grades':

    loss = -sum_i t_i log p_i,    p_i = e^{s_i} / sum_l e^{s_l}                                                 (1)
    t_i = e^{y_i} / sum_l e^{y_l}                  target="softmax", as published                               (2)
    t_i = u_i / sum_l u_l,  u = 2^y - 1            target="gain": the share of what there is to find            (3)

The loss is convex, and least where p = t: under (2) at scores equal to the grades. It is there the entropy of t, not 0. A
query in which nothing is useful has no (3), and contributes nothing. Grades further apart than `bounded_gain.MOST` are scaled down.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.errors import SettingError
from exactrank.measures.gains import gain_values
from exactrank.objectives.bounded_gain import MOST, bounded_grades
from exactrank.objectives.within_query import query_sums


@dataclass(frozen=True)
class ListNet:
    """(1), negated; its curvature is p (1 - p)."""

    target: Literal["softmax", "gain"] = "softmax"

    def __post_init__(self) -> None:
        if self.target not in ("softmax", "gain"):
            raise SettingError(f'target={self.target!r} is not one of "softmax", "gain"')

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""
        mass = _powers(data) if self.target == "softmax" else _gains(data)
        total = query_sums(mass, data.indptr)
        return _core.listnet(np.asarray(mass / np.repeat(np.where(total > 0, total, 1.0), data.sizes)))


def _powers(data: RankingData) -> PerDocument:
    """e^y, over that of the query's best document; of grades that are further apart than MOST, scaled down to that."""
    below = data.y - np.repeat(np.maximum.reduceat(data.y, data.indptr[:-1]), data.sizes)
    return np.asarray(np.exp(below * (MOST / max(MOST, float(np.ptp(data.y))))))


def _gains(data: RankingData) -> PerDocument:
    """2^y - 1."""
    return gain_values("exp2", bounded_grades(data.y))
