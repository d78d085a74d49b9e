"""Simultaneous perturbation stochastic approximation (Spall 1992; Yue & Burges 2007).

    g = (f(theta + c delta) - f(theta - c delta)) / (2 c)  delta,    delta_i = +-1 evenly                       (1)

Two values estimate the slope along all coordinates at once, whatever their number: the mean of (1) over all delta is the slope
of f, up to its third derivatives times c^2. SPSA:F averages F / 2 such estimates. f may be a step function such as
nDCG, as long as its steps are small over the distance c.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank.errors import SettingError
from exactrank.optimizers.approximation import StochasticApproximation
from exactrank.optimizers.base import Theta
from exactrank.optimizers.counted import Counted
from exactrank.optimizers.surroundings import signs


def simultaneous(problem: Counted, theta: Theta, c: float, deltas: npt.NDArray[np.float64]) -> Theta:
    """The mean of (1) over the rows of ``deltas``."""
    forth, back = problem.both_ways(theta, c * deltas)
    return np.asarray(((forth - back)[:, None] * deltas).mean(axis=0) / (2 * c))


@dataclass(frozen=True)
class SPSA(StochasticApproximation):
    """Ascend from ``evaluations`` values a step, and one more for the value of each state, which is counted too."""

    evaluations: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evaluations < 2 or self.evaluations % 2:
            raise SettingError(
                f"evaluations={self.evaluations} is not even: an estimate takes two; take {max(2, self.evaluations // 2 * 2)}"
            )

    def _slope(self, problem: Counted, theta: Theta, c: float, rng: np.random.Generator) -> Theta:
        return simultaneous(problem, theta, c, signs(rng, self.evaluations // 2, len(theta)))

    def _reach(self, dimension: int) -> float:
        return math.sqrt(dimension)
