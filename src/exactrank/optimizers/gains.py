"""Gain sequences of stochastic approximation (Spall 1992).

    a_k = a0 / (A + k^alpha),    c_k = c0 / k^gamma,    k = 1, 2, ...                                           (1)

Steps a_k times an estimated slope converge if a_k and c_k fall to 0, the sum of a_k is infinite and that of (a_k / c_k)^2 is
finite; alpha = 0.602 and gamma = 0.101 are nearly the smallest that theory allows. A keeps the first steps from being much
longer than later ones: Yue & Burges (2007) take 50.
"""

import math
from dataclasses import dataclass

from exactrank.errors import SettingError
from exactrank.stored import storable


@storable
@dataclass(frozen=True)
class Gains:
    """The gains (1): ``a`` scales steps, ``c`` is how far estimates look.

    >>> gains = Gains(a0=5.1, c0=0.5, A=50.0, alpha=0.602, gamma=0.101)
    >>> [(round(gains.a(k), 4), round(gains.c(k), 4)) for k in (1, 10, 1000)]
    [(0.1, 0.5), (0.0944, 0.3963), (0.0447, 0.2489)]
    """

    a0: float
    c0: float
    A: float
    alpha: float
    gamma: float

    def __post_init__(self) -> None:
        for name in ("a0", "c0"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingError(f"{name} must be a number above 0, or None to have it chosen; got {getattr(self, name)}")
        for name in ("A", "alpha", "gamma"):
            if not 0 <= getattr(self, name) < math.inf:
                raise SettingError(f"{name} must be a number of at least 0, got {getattr(self, name)}")

    def a(self, k: int) -> float:
        """a_k."""
        return float(self.a0 / (self.A + k**self.alpha))

    def c(self, k: int) -> float:
        """c_k."""
        return float(self.c0 / k**self.gamma)
