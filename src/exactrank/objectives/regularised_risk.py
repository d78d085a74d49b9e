"""Regularised risk: what large-margin methods make small.

    J(theta) = l2/2 |theta - theta0|^2 + 1/Q sum_q w_q loss_q(s_q(theta)),    the weights w of mean 1          (1)

Where the loss is convex and the scores are linear, each query's loss lies above the plane that touches it anywhere:

    w_q/Q loss_q(theta') >= offset_q + normal_q . theta'        with equality at theta                          (2)

Offsets and normals add over queries: for the structured loss they are sums of the losses and of the joint features of the most
violated rankings. That is all that the optimizers of `exactrank.optimizers.regularised` ask.
"""

from copy import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError
from exactrank.objectives.parametric import Numbers, Parametric
from exactrank.objectives.score_space import Objective
from exactrank.scorers.architecture import Architecture, Theta


class RegularisedRisk(Parametric):
    """(1); ``strength`` is l2 and ``centre`` theta0, by default 0.

    Objectives are to be made large, and so is this one: its value is -J. A risk is made small, and the sign turns in `risk` and `planes`.
    """

    def __init__(
        self,
        objective: Objective,
        architecture: Architecture,
        data: RankingData,
        strength: float = 1.0,
        centre: Theta | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(objective, architecture, data, strength, threads=threads)
        self.centre = np.zeros(architecture.size) if centre is None else centre

    def at(self, strength: float) -> Self:
        """The same with another strength."""
        other = copy(self)
        other.l2 = strength
        return other

    @property
    def strength(self) -> float:
        """How much the quadratic term counts."""
        return self.l2

    @property
    def convex(self) -> bool:
        """Whether planes lie below the losses, which are taken to be convex in the scores."""
        return self.architecture.linear

    def risk(self, theta: Theta) -> tuple[float, Theta]:
        """The sum of (1) and its slope."""
        value, slope = self._unpenalised(theta, np.arange(self.parts))
        return -value, -slope

    def planes(self, theta: Theta, parts: Numbers) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The offsets and, a row each, the normals of (2) that touch at ``theta``, for the queries numbered ``parts``."""
        values, slopes = self.slopes_by_query(theta, parts)
        normals = slopes / -self.parts
        return values / -self.parts - normals @ theta, normals

    def pass_over(self, theta: Theta, order: Numbers, rate: float) -> Theta:
        """As of any objective, where the centre is 0: single updates pull there."""
        if np.any(self.centre):
            raise IncompatibleError("updates query by query pull theta towards 0, and this risk has another centre; use Adam or L-BFGS")
        return super().pass_over(theta, order, rate)

    def _away(self, theta: Theta) -> Theta:
        return theta - self.centre
