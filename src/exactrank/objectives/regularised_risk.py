"""Regularised risk: what large-margin methods make small.

    J(theta) = lam/2 |theta - theta0|^2 + 1/Q sum_q w_q loss_q(s_q(theta)),    the weights w of mean 1          (1)

Where the loss is convex and the scores are linear, each query's loss lies above the plane that touches it anywhere:

    w_q/Q loss_q(theta') >= offset_q + normal_q . theta'        with equality at theta                          (2)

Offsets and normals add over queries: for the structured loss they are sums of the losses and of the joint features of the most
violated rankings. That is all that the optimizers of `exactrank.optimizers.regularised` ask.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from exactrank.data.ranking_data import RankingData
from exactrank.objectives.parametric import Numbers, Parametric
from exactrank.objectives.score_space import Objective
from exactrank.scorers.architecture import Architecture, Theta


@dataclass(frozen=True, eq=False)
class RegularisedRisk:
    """(1); ``strength`` is lam and ``centre`` theta0.

    Objectives are to be made large, so the sign turns here, once: a loss is a value of ``gain``, negated.
    """

    gain: Parametric  #: without a penalty of its own
    strength: float
    centre: Theta

    @classmethod
    def of(
        cls, objective: Objective, architecture: Architecture, data: RankingData, strength: float = 1.0, threads: int | None = None
    ) -> "RegularisedRisk":
        """About 0, the losses being ``objective``'s values with their sign turned."""
        return cls(Parametric(objective, architecture, data, threads=threads), strength, np.zeros(architecture.size))

    def at(self, strength: float) -> "RegularisedRisk":
        """The same with another strength."""
        return replace(self, strength=strength)

    @property
    def convex(self) -> bool:
        """Whether planes lie below the losses, which are taken to be convex in the scores."""
        return self.architecture.linear

    @property
    def architecture(self) -> Architecture:
        """Whose parameters theta are."""
        return self.gain.architecture

    @property
    def data(self) -> RankingData:
        """Whose queries (1) sums over."""
        return self.gain.data

    @property
    def parts(self) -> int:
        """How many losses (1) sums."""
        return self.gain.parts

    def risk(self, theta: Theta) -> tuple[float, Theta]:
        """The sum of (1) and its slope."""
        value, slope = self.gain.value_and_slope(theta)
        return -value, -slope

    def value(self, theta: Theta) -> float:
        """-J, which is to be made large."""
        return self.gain.value(theta) - self._penalty(theta)

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """-J and its slope."""
        return self.slope_of(theta, np.arange(self.parts))

    def slope_of(self, theta: Theta, queries: Numbers) -> tuple[float, Theta]:
        """The same over some of the queries alone: an estimate of it."""
        value, slope = self.gain.slope_of(theta, queries)
        return value - self._penalty(theta), slope - self.strength * (theta - self.centre)

    def _penalty(self, theta: Theta) -> float:
        away = theta - self.centre
        return self.strength / 2 * float(away @ away)

    def planes(self, theta: Theta, parts: Numbers) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The offsets and, a row each, the normals of (2) that touch at ``theta``, for the queries numbered ``parts``."""
        values, slopes = self.gain.slopes_by_query(theta, parts)
        normals = slopes / -self.parts
        return values / -self.parts - normals @ theta, normals
