"""The forces on one query's documents as a function of their scores."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.objectives.finite_difference import FiniteDifference
from exactrank.objectives.lambdas import Lambdas
from exactrank.objectives.score_space import Objective

Points = npt.NDArray[np.float64]  #: a row of scores, or of forces, for each place looked at


@dataclass(frozen=True, eq=False)
class ForceField:
    """The slope of ``objective`` on a query with grades ``y``."""

    objective: Objective
    y: PerDocument

    def __call__(self, scores: Points) -> Points:
        """The forces at each row of ``scores``."""
        return np.array([self._at(row) for row in np.ascontiguousarray(scores)])

    def _at(self, s: PerDocument) -> PerDocument:
        boundaries, weight = np.array([0, len(s)]), np.ones(1)
        return _core.answers(self._bound, s, boundaries, weight, True, True, 1)[1]

    @cached_property
    def _bound(self) -> _core.Objective:
        """The objective on the query alone: bound once, as what it draws at random must not differ from place to place."""
        return self.objective.on(RankingData.from_arrays(None, self.y, group=[len(self.y)]))

    @property
    def known(self) -> bool:
        """Are there no jumps but those that `jumps` names?"""
        return isinstance(self.objective, Lambdas | FiniteDifference)

    @property
    def jumps(self) -> tuple[float, ...]:
        """Differences of two scores at which forces are known to jump or bend: 0, where ranks are exchanged, and the margin."""
        given = self.objective
        if isinstance(given, Lambdas) and given.link != "logistic":
            return (-given.margin, 0.0, given.margin)
        return (-given.step, 0.0, given.step) if isinstance(given, FiniteDifference) else (0.0,)

    def room(self, s: PerDocument) -> PerDocument:
        """How far each score can move, alone, before the forces jump."""
        gaps = np.abs(np.subtract.outer(s, s)[..., None] - np.array(self.jumps))
        gaps[np.diag_indices(len(s))] = np.inf
        return np.asarray(gaps.min(axis=(1, 2)))
