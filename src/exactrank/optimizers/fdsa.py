"""Finite difference stochastic approximation (Kiefer & Wolfowitz 1952; Yue & Burges 2007, section 4).

    g_i = (f(theta + c e_i) - f(theta - c e_i)) / (2 c)                                                         (1)

One coordinate at a time: 2 d values for a step in d dimensions. A problem that has ``differences(theta, c)`` is asked for
all of (1) at once, else one that has ``values(thetas)``.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from exactrank.optimizers.approximation import StochasticApproximation
from exactrank.optimizers.base import Theta
from exactrank.optimizers.counted import Counted


@dataclass(frozen=True, kw_only=True)
class FDSA(StochasticApproximation):
    """Ascend from 2 d values a step, and one more for the value of each state, which is counted too."""

    trials: ClassVar[int] = 1  # every estimate at the start is the same

    def _slope(self, problem: Counted, theta: Theta, c: float, rng: np.random.Generator) -> Theta:
        return problem.differences(theta, c) / (2 * c)

    def _reach(self, dimension: int) -> float:
        return 1.0
