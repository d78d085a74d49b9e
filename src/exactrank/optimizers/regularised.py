"""Convex functions with a quadratic term, as large-margin methods make them small.

    J(theta) = strength/2 |theta - centre|^2 + risk(theta),    risk(theta) = sum_p risk_p(theta)                 (1)
    risk_p(t) >= offset + normal . t    for all t, with equality at theta                                        (2)

The risk need not have a slope everywhere; each answer about it is a plane (2) below it. With any convex combination
(offset, normal) of planes below the whole risk,

    J(t) >= offset + normal . centre - |normal|^2 / (2 strength)    for all t                                    (3)

bounds J from below, so that a method can say how far it still is from the best (Teo, Le, Smola & Vishwanathan 2007).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from exactrank.optimizers.base import Theta

Touching = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]  #: offsets and normals of planes (2), one for each part


class Quadratic(Protocol):
    """The quadratic term of (1)."""

    @property
    def strength(self) -> float:
        """Its weight, above 0."""

    @property
    def centre(self) -> Theta:
        """Where it is 0."""


class Regularised(Quadratic, Protocol):
    """(1), to be made small, where the risk is one convex function."""

    def risk(self, theta: Theta) -> tuple[float, Theta]:
        """The risk at ``theta`` and a subgradient of it there."""


class SumOfMaxima(Regularised, Protocol):
    """(1), where the risk is a sum of parts, each the largest of many planes."""

    @property
    def parts(self) -> int:
        """How many there are."""

    def planes(self, theta: Theta, parts: npt.NDArray[np.int64]) -> Touching:
        """For each of ``parts`` the offset and the normal of the plane that touches it at ``theta``, (2)."""


def penalty(term: Quadratic, theta: Theta) -> float:
    """The quadratic term at ``theta``."""
    away = theta - term.centre
    return 0.5 * term.strength * float(away @ away)


def value_of(term: Quadratic, theta: Theta, risk: float) -> float:
    """-J where the risk at ``theta`` is this: what is to be made large."""
    return -(risk + penalty(term, theta))


@dataclass(frozen=True)
class Pulled:
    """A quadratic term and ``pull``/2 |t - towards|^2: together they are another quadratic term, plus a constant."""

    term: Quadratic
    pull: float
    towards: Theta

    @property
    def strength(self) -> float:
        """The sum of both."""
        return self.term.strength + self.pull

    @property
    def centre(self) -> Theta:
        """Between their centres."""
        return (self.term.strength * self.term.centre + self.pull * self.towards) / self.strength
