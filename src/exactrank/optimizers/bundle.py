"""Cutting planes for the risk as a whole, a bundle of them (Teo, Le, Smola & Vishwanathan 2007).

    strength/2 |t - centre|^2 + max_k (risk(theta_k) + g_k . (t - theta_k))  <=  J(t)                            (1)

with g_k a subgradient at the k-th theta (Chapelle, Le & Smola 2007, equation 13). It is `CuttingPlane` with the whole risk as
its one part: the program has as many variables as there were steps, however many parts the risk sums. One plane says less than
a plane for each part, so there are more steps, and the shorter they are the better: the level is lower.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from exactrank.optimizers.base import Theta
from exactrank.optimizers.cutting_plane import CuttingPlane, PlanesState
from exactrank.optimizers.regularised import Regularised, Touching


@dataclass(frozen=True)
class Whole:
    """A problem as a sum of one part."""

    problem: Regularised
    parts: int = 1

    @property
    def strength(self) -> float:
        """The problem's."""
        return self.problem.strength

    @property
    def centre(self) -> Theta:
        """The problem's."""
        return self.problem.centre

    def risk(self, theta: Theta) -> tuple[float, Theta]:
        """The problem's."""
        return self.problem.risk(theta)

    def planes(self, theta: Theta, parts: npt.NDArray[np.int64]) -> Touching:
        """The tangent at ``theta``, (1)."""
        return tangent(theta, *self.problem.risk(theta))


def tangent(theta: Theta, risk: float, subgradient: Theta) -> Touching:
    """The plane that touches at ``theta``, where risk and subgradient are these."""
    return np.array([risk - subgradient @ theta]), subgradient[np.newaxis]


@dataclass(frozen=True)
class Bundle:
    """Make a risk and its quadratic term small by (1); the settings are those of `CuttingPlane`."""

    asks: ClassVar[type] = Regularised

    tolerance: float = 1e-3
    level: float = 0.1
    keep: int = 20
    inexact: float = 0.1
    sweeps: int = 10_000

    def __post_init__(self) -> None:
        self.method()

    def method(self) -> CuttingPlane:
        """The cutting planes that this is."""
        return CuttingPlane(self.tolerance, self.level, self.keep, self.inexact, sweeps=self.sweeps)

    def init(self, problem: Regularised, theta: Theta, rng: np.random.Generator) -> PlanesState:
        """At ``theta``, with the plane there."""
        return self.method().init(Whole(problem), theta, rng)

    def resumed(self, problem: Regularised, state: PlanesState, rng: np.random.Generator) -> PlanesState:
        """The state to start from in a problem that differs in its strength or centre alone."""
        return self.method().resumed(Whole(problem), state, rng)

    def step(self, problem: Regularised, state: PlanesState) -> PlanesState:
        """To the minimum of (1), held to the best theta."""
        return self.method().step(Whole(problem), state)
