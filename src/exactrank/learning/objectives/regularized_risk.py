"""The regularized risk, which large-margin methods minimize.

    J(theta) = l2/2 |theta - theta0|^2 + 1/Q sum_q w_q loss_q(s_q(theta)),    the weights w of mean 1          (1)

If the loss is convex and the scores are linear, each query's loss lies above every plane that touches it:

    w_q/Q loss_q(theta') >= offset_q + normal_q . theta'        with equality at theta                          (2)

Offsets and normals add over queries: for the structured loss they are sums of the losses and of the joint features of the most
violated rankings. The optimizers of `exactrank.learning.optimizers.cutting_plane` need nothing else.

The ramp bound is not convex, but has convex risks above it:

    loss_q = max_y [delta(y) + c(y).s] - max_y c(y).s  <=  max_y [delta(y) + c(y).s] - c(y').s                  (3)

with equality if y' is the ranking by the scores s: the right side is the convex structured loss with y' as its target in place of a
perfect ranking. Both maxima are convex in theta, and the second has the slope of c(y').
"""

from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from exactrank._support.numerics import dot, matmul
from exactrank.data.dataset import Dataset, EachBlock, Part
from exactrank.learning.objectives.parametric import Numbers, Parametric
from exactrank.learning.objectives.score_space import Objective
from exactrank.learning.objectives.structured import Structured, TowardsRanking
from exactrank.learning.objectives.within_query import pull_backs
from exactrank.models.architecture import Architecture, Theta


class RegularizedRisk(Parametric):
    """(1); ``strength`` is l2 and ``center`` theta0, by default 0.

    Like all objectives it is maximized: its value is -J. `risk` and `planes` have the sign of a risk, which is minimized.
    """

    def __init__(
        self,
        objective: Objective,
        architecture: Architecture,
        data: Dataset,
        strength: float = 1.0,
        center: Theta | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(objective, architecture, data, strength, threads)
        self.center = self._origin = np.zeros(architecture.size) if center is None else center

    def at(self, strength: float) -> Self:
        """Return the same risk with another strength."""
        risk = copy(self)
        risk.l2 = strength
        return risk

    @property
    def strength(self) -> float:
        """The weight of the quadratic term."""
        return self.l2

    @property
    def convex(self) -> bool:
        """True if planes lie below the losses, which are assumed to be convex in the scores."""
        return self.architecture.linear

    def risk(self, theta: Theta) -> tuple[float, Theta]:
        """Return the sum of (1) and its slope."""
        value, slope = self._mean_objective(theta, np.arange(self.parts))
        return -value, -slope

    def planes(self, theta: Theta, parts: Numbers) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the offsets and the normals (one row per query) of the planes (2) at ``theta``, for the queries numbered ``parts``."""
        values, slopes = self.slopes_by_query(theta, parts)
        normals = slopes / -self.parts
        return values / -self.parts - matmul(normals, theta), normals


class RampRisk(RegularizedRisk):
    """The risk of a structured loss whose bound is the ramp, below the convex risks (3)."""

    objective: Structured
    convex = False

    def split(self, theta: Theta) -> tuple[tuple[float, Theta], tuple[float, Theta]]:
        """Return the two maxima of (3), summed as in (1), with their slopes, for a linear model."""
        rankings = _TopRankings(self.objective, self.architecture, theta, self._sum.unit * self.parts, self.threads)
        slope = np.sum(self._parts.ask(EachBlock(rankings)), axis=0) / self.architecture.scale
        value, (risk, risk_slope) = dot(slope, theta), self.risk(theta)
        return (risk + value, risk_slope + slope), (value, slope)

    def convexify(self, theta: Theta) -> RegularizedRisk:
        """Return the convex risk of (3) that touches this one at ``theta``."""
        target = TowardsRanking(self.objective, self.architecture, theta)
        return RegularizedRisk(target, self.architecture, self.data, self.strength, self.center, self.threads)


@dataclass(frozen=True, eq=False)
class _TopRankings:
    """The sums over wide blocks of c(y') of (3) times features, with y' the ranking at ``theta`` and queries weighted over ``unit``."""

    structured: Structured
    architecture: Architecture
    theta: Theta
    unit: float
    threads: int

    def __call__(self, part: Part) -> list[Theta]:
        data = part.data
        separation = part.once(("separation", self.structured), lambda: self.structured.separation(data))
        coefficients = separation.coefficients(self.architecture.scores(self.theta, data.X, self.threads), data.indptr, None)
        return pull_backs(data, np.repeat(data.weights / self.unit, data.sizes) * coefficients, self.threads)
